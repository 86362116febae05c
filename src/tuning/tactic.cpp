// SPDX-License-Identifier: Apache-2.0
#include "tuning/tactic.h"

namespace lathe {
namespace {

class OnlyMatch final : public Match {
 public:
  OnlyMatch(std::function<Result<Emission>()> emit, double predicted_us)
      : emit_(std::move(emit)), predicted_us_(predicted_us) {}
  std::vector<Config> configs() const override { return {{.predicted_us = predicted_us_}}; }
  Result<Emission> emit(const Config&) const override { return emit_(); }

 private:
  std::function<Result<Emission>()> emit_;
  double predicted_us_;
};

}  // namespace

Matched match_one(Emission emission, double predicted_us) {
  return match_later([emission = std::move(emission)] { return emission; }, predicted_us);
}

Matched match_later(std::function<Result<Emission>()> emit, double predicted_us) {
  return std::make_unique<OnlyMatch>(std::move(emit), predicted_us);
}

Known known_of(const Packed& packed) {
  const bool stays = !packed.order || !packed.order->weights.derivation;
  return {packed.content,
          stays ? nullptr : Derivation::of_packing(packed.order->packing, packed.order->weights.derivation)};
}

const Program* program_of(const Problem& problem, const Emission& emission) {
  const bool is_there = emission.with_program && !(problem.attributes && problem.program.is_identity());
  return is_there ? &problem.program : nullptr;
}

const Operand& operand_of(const Problem& problem, const StepInput& input) {
  if (input.inlined) {
    StepInput own = input;
    own.inlined.reset();
    return operand_of(problem.inlined[*input.inlined].problem, own);
  }
  switch (input.kind) {
    case StepInput::operand:
      return problem.operands[input.index];
    case StepInput::input_operand:
      return problem.inputs[input.index].operands[input.of_program];
    default:
      return problem.inputs[input.index];
  }
}

}  // namespace lathe
