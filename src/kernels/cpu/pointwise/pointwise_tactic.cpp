// SPDX-License-Identifier: Apache-2.0
// Pointwise expressions: kernel "pointwise".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {

Matched match_pointwise(const Problem& problem) {
  if (problem.attributes) return refuse("not a pointwise expression");
  if (problem.is_copy()) return refuse("a plain copy");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  for (const auto* list : {&problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      if (operand.dtype != DType::f32 && operand.dtype != DType::u8 && operand.dtype != DType::i8)
        return refuse(fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype)));
  return match_one(emission_of(problem, {}, {}), predicted_us(problem));
}

}  // namespace lathe::cpu
