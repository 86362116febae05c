// SPDX-License-Identifier: Apache-2.0
// Attention of floats: kernel "attention".
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/cpu_tactic.h"
#include "ops/attention_inputs.h"

namespace lathe::cpu {
namespace {

using attention_input::kDistances, attention_input::kMask, attention_input::kSinks;

// Only -inf is -inf.
float as_float(double hidden) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  return static_cast<float>(std::isinf(hidden) ? hidden : std::max(hidden, kLowest));
}

}  // namespace

Matched match_attention(const Problem& problem) {
  if (!problem.is(OpKind::attention)) return refuse("not an attention");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b111})) return refuse(*std::move(reason));
  const bool masked = problem.has_input(kMask), has_sinks = problem.has_input(kSinks),
             has_distances = problem.has_input(kDistances);
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list) {
      const bool is_mask = masked && &operand == &problem.inputs[kMask];
      if (!operand.omitted && operand.dtype != DType::f32 && !(is_mask && operand.dtype == DType::boolean))
        return refuse(fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype)));
    }
  const Operand& out = problem.outputs[0];
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  const auto& attrs = problem.attrs<AttentionAttrs>();
  const attention::AttentionParams params{static_cast<float>(attrs.scale),
                                          static_cast<float>(attrs.softcap),
                                          as_float(attrs.hidden),
                                          attrs.causal,
                                          attrs.zeros_for_nan,
                                          masked,
                                          attrs.factors == DType::bf16,
                                          has_sinks,
                                          attrs.window,
                                          attrs.mean_for_none,
                                          attrs.factors == DType::f8e4m3fn,
                                          has_distances};
  std::vector<size_t> inputs = {0, 1, 2};
  if (masked) inputs.push_back(kMask);
  if (has_sinks) inputs.push_back(kSinks);
  if (has_distances) inputs.push_back(kDistances);
  constexpr double kOfWeights = 1.1;  // what the products are not
  return match_one(emission_of(problem, params, inputs), predicted_us(problem, {.vectors = kOfWeights}));
}

}  // namespace lathe::cpu
