// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit integers: kernel "conv_integer".
#include "kernels/cpu/conv/conv_cost_tactic.h"
#include "kernels/cpu/conv/conv_problem_tactic.h"
#include "kernels/cpu/conv_integer/conv_integer.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/integer_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "kernels/match_tactic.h"
#include "kernels/pack_tactic.h"

namespace lathe::cpu {
namespace {

using conv::ConvConfig;

std::string text_of(const ConvConfig& config) {
  return to_text(config.blocking) + (config.row_aligned ? " aligned" : "");
}

std::vector<Config> configs(const Problem& problem, const ConvShape& shape) {
  conv::ConvProblem p = conv_problem(problem, shape);
  p.is_narrow = gemm::fills_matrix_registers(shape.volume() * shape.group_inputs());
  std::vector<ConvConfig> choices = conv::candidates(p, problem.target.cores);
  std::erase_if(choices, [&](const ConvConfig& config) {
    return config.algorithm != conv::Algorithm::direct || !gemm::has_whole_tiles(problem.target, config.blocking);
  });
  const double packing = problem.inputs[1].constant ? 0 : packing_us(problem);
  return configs_of(choices, text_of,
                    [&](const ConvConfig& config) { return packing + conv::predicted_us(problem.target, p, config); });
}

Result<Emission> emit(const Problem& problem, const ConvShape& shape, const Config& choice) {
  const auto& config = choice.as<ConvConfig>();
  if (!problem.inputs[1].constant || problem.inputs[1].dtype != DType::i8)
    return emission_of(problem, conv::ConvIntegerParams{{shape, config}, types_of(problem), false}, {0, 1});
  const int8_t* weights = problem.inputs[1].constant->as<int8_t>();
  const int64_t channels = 4 * shape.group_inputs(), volume = shape.volume();
  std::vector<int8_t> columns(static_cast<size_t>(shape.out_channels * channels * volume));
  copy_elements(std::as_bytes(std::span(weights, columns.size())).data(),
                std::as_writable_bytes(std::span(columns)).data(), 1,
                std::array{PackedAxis{shape.out_channels, channels * volume, channels * volume},
                           PackedAxis{channels, volume, 1}, PackedAxis{volume, 1, channels}});
  const gemm::Panels fours{volume * shape.group_inputs(), shape.group_outputs(), config.blocking.width};
  const conv::ConvIntegerParams params{{shape, config}, types_of(problem)};
  return emit_integers(problem, encode_params(params), fours, shape.groups, columns.data());
}

}  // namespace

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
  return match_form(problem, *shape, configs, emit);
}

}  // namespace lathe::cpu
