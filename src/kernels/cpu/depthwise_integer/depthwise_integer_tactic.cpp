// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit integers: kernel "depthwise_integer".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/depthwise/depthwise_cost_tactic.h"
#include "kernels/cpu/depthwise_integer/depthwise_integer.h"
#include "kernels/cpu/gemm/integer_tactic.h"
#include "kernels/match_tactic.h"

namespace lathe::cpu {
namespace {

using depthwise::DepthwiseConfig;

std::vector<Config> configs(const Problem& problem, const depthwise::Shape& shape) {
  return configs_of(depthwise::candidates(problem.target.cores), depthwise::to_text,
                    [&](const DepthwiseConfig& config) { return depthwise::predicted_us(problem, shape, config, 4); });
}

Result<Emission> emit(const Problem& problem, const depthwise::Shape& shape, const Config& choice) {
  const int64_t count = depthwise::packed_integers(shape);
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::i32, {count}));
  depthwise::pack_weights(shape, problem.inputs[1].constant->as<int8_t>(),
                          {packed.mutable_as<int32_t>(), static_cast<size_t>(count)});
  const depthwise::DepthwiseIntegerParams params{shape, choice.as<DepthwiseConfig>(), types_of(problem)};
  return emission_with_weights(problem, encode_params(params), std::move(packed));
}

}  // namespace

Matched match_depthwise_integer(const Problem& problem) {
  if (!problem.is(OpKind::convolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {.mixed_factors = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_integers(problem, 1)) return refuse(*std::move(reason));
  const Operand& w = problem.inputs[1];
  if (!w.constant || w.dtype != DType::i8) return refuse("the weights are no constants of i8");
  const auto shape = depthwise::shape_of(problem);
  if (!shape) return refuse(shape.error());
  return match_form(problem, *shape, configs, emit);
}

}  // namespace lathe::cpu
