// SPDX-License-Identifier: Apache-2.0
#include "tuning/tactic.h"

#include <cstring>

#include "ops/pack_bytes.h"

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

Result<Packed> Packed::later(WeightsOrder order) {
  const Tensor& weights = order.weights.content;
  LATHE_TRY(check_packing(order.packing, weights));
  LATHE_ASSIGN(Tensor memory, Tensor::allocate(weights.dtype(), order.packing.dims));
  Packed packed(std::move(memory), std::move(order));
  packed.pending_ = std::make_shared<std::once_flag>();
  return packed;
}

const Tensor& Packed::content(int threads) const {
  if (!pending_) return content_;
  std::call_once(*pending_, [&] {
    const Tensor& weights = order->weights.content;
    auto* const to = static_cast<std::byte*>(const_cast<void*>(content_.data()));  // which nobody has read yet
    if (!is_dense(order->packing)) std::memset(to, 0, content_.bytes());
    const PackingWork work{&order->packing, size_of(weights.dtype()), static_cast<const std::byte*>(weights.data()),
                           to};
    pack_all({&work, 1}, threads);
  });
  return content_;
}

void Packed::reshape(const Dims& dims) {
  content_ = content_.reshaped(dims);
  if (order) order->packing.dims = dims;
}

Known known_of(const Packed& packed) {
  const bool stays = !packed.order || !packed.order->weights.derivation;
  return {packed.content(),
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
