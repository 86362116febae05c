// SPDX-License-Identifier: Apache-2.0
// Pointwise expressions: kernel "pointwise".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class PointwiseTactic final : public Tactic {
 public:
  std::string_view name() const override { return "pointwise"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (problem.attributes) return "not a pointwise expression";
    if (problem.is_copy()) return "a plain copy";
    for (const auto* list : {&problem.operands, &problem.outputs})
      for (const Operand& operand : *list)
        if (operand.dtype != DType::f32 && operand.dtype != DType::u8 && operand.dtype != DType::i8)
          return fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype));
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "pointwise";
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }
};

}  // namespace

const Tactic& pointwise_tactic() {
  static const PointwiseTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
