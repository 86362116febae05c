// SPDX-License-Identifier: Apache-2.0
// What moves elements axis by axis and is not done by strides: kernel "movement".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/movement/movement.h"

namespace lathe::cpu {
namespace {

std::optional<Movement> movement_of(const Problem& problem) {
  if (!problem.attributes) return std::nullopt;
  switch (problem.attributes->kind()) {
    case OpKind::slice:
      return Movement::slice;
    case OpKind::tile:
    case OpKind::expand:
      return Movement::repeat;
    case OpKind::pad:
      break;
    default:
      return std::nullopt;
  }
  switch (problem.attrs<PadAttrs>().mode) {
    case PadMode::constant:
      return Movement::pad_constant;
    case PadMode::reflect:
      return Movement::pad_reflect;
    case PadMode::edge:
      return Movement::pad_edge;
    case PadMode::wrap:
      break;
  }
  return Movement::pad_wrap;
}

class MovementTactic final : public Tactic {
 public:
  std::string_view name() const override { return "movement"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!movement_of(problem)) return "no movement along axes";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "movement";
    emission.params = {static_cast<int64_t>(*movement_of(problem))};
    for (size_t i = 0; i < problem.inputs.size(); ++i) emission.inputs.push_back({StepInput::input, i});
    return emission;
  }
};

}  // namespace

const Tactic& movement_tactic() {
  static const MovementTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
