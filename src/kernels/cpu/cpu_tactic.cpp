// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {

#define LATHE_CPU_TACTIC(name) const Tactic& name##_tactic();
#include "cpu_tactics.inc"
#undef LATHE_CPU_TACTIC

const TacticList& cpu_tactics() {
  static const TacticList list = {
#define LATHE_CPU_TACTIC(name) &name##_tactic(),
#include "cpu_tactics.inc"
#undef LATHE_CPU_TACTIC
  };
  return list;
}

std::optional<std::string> refuse_non_f32(const Problem& problem) {
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      if (!operand.omitted && operand.dtype != DType::f32)
        return fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype));
  return std::nullopt;
}

std::optional<std::string> refuse_layout(const Operand& operand, std::string_view what) {
  if (operand.rank() >= 3 && operand.strides[1] != Expr(1) && operand.dims[1] != Expr(1))
    return fmt::format("{} is not channels-last", what);
  return std::nullopt;
}

}  // namespace lathe::cpu
