// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit integers: kernel "conv_integer".
#include "kernels/cpu/choices_tactic.h"
#include "kernels/cpu/conv/conv_problem_tactic.h"
#include "kernels/cpu/conv_integer/conv_integer.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/integer_tactic.h"

namespace lathe::cpu {
namespace {

using conv::ConvConfig;

std::vector<ConvConfig> choices(const Problem& problem, const ConvShape& shape) {
  std::vector<ConvConfig> found = conv::candidates(conv_problem(problem, shape), problem.target.cores);
  std::erase_if(found, [](const ConvConfig& config) { return config.algorithm != conv::Algorithm::direct; });
  return found;
}

Result<Emission> emit(const Problem& problem, const ConvShape& shape, const ConvConfig& config) {
  if (!problem.inputs[1].constant || problem.inputs[1].dtype != DType::i8)
    return emission_of(problem, conv::ConvIntegerParams{{shape, config}, types_of(problem), false}, {0, 1});
  const int8_t* weights = problem.inputs[1].constant->as<int8_t>();
  const int64_t channels = 4 * shape.group_inputs(), volume = shape.volume();
  std::vector<int8_t> columns(static_cast<size_t>(shape.out_channels * channels * volume));
  for (int64_t o = 0; o < shape.out_channels; ++o)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < volume; ++t)
        columns[(o * volume + t) * channels + c] = weights[(o * channels + c) * volume + t];
  const gemm::Panels fours{volume * shape.group_inputs(), shape.group_outputs(), config.blocking.width};
  const conv::ConvIntegerParams params{{shape, config}, types_of(problem)};
  return emit_integers(problem, encode_params(params), fours, shape.groups, columns.data());
}

Matched match_conv_integer(const Problem& problem) {
  if (!problem.is(OpKind::convolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {.mixed_factors = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_integers(problem, 1)) return refuse(*std::move(reason));
  auto shape = conv_shape(problem);
  if (!shape) return refuse(shape.error().reason);
  const Operand& x = problem.inputs[0];
  if (auto reason = refuse_layout(problem.outputs[0], "the output")) return refuse(*std::move(reason));
  if (x.strides[1] != Expr(1)) return refuse("the input is not channels-last");
  if (shape->group_inputs() % 4 != 0) return refuse("channels of a group are no multiple of 4");
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (d != 1 && x.dims[d] != Expr(1) && mod(x.strides[d], 4) != Expr(0))
      return refuse("pixels do not start at fours");
  shape->in_channels /= 4;
  const auto text = [](const ConvConfig& config) {
    return to_text(config.blocking) + (config.row_aligned ? " aligned" : "");
  };
  return match_choices(
      problem, [&problem, shape = *shape] { return choices(problem, shape); }, text,
      [&problem, shape = *shape](const ConvConfig& config) { return emit(problem, shape, config); });
}

}  // namespace

const Tactic& conv_integer_tactic() {
  static const FunctionTactic tactic("conv_integer", match_conv_integer);
  return tactic;
}

}  // namespace lathe::cpu
