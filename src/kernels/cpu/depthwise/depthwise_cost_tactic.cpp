// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/depthwise_cost_tactic.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"
#include "kernels/cpu/conv/conv_problem_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "tuning/work.h"

namespace lathe::cpu::depthwise {

tl::expected<Shape, std::string> shape_of(const Problem& problem) {
  const auto conv = conv_shape(problem);
  if (!conv) return tl::unexpected(conv.error().reason);
  const Operand& w = problem.inputs[1];
  if (conv->groups == 1 || w.dims[0] != Expr(conv->groups) || w.dims[1] != Expr(1))
    return tl::unexpected<std::string>("not one filter per channel");
  if (auto reason = refuse_layout(problem.inputs[0], "the input")) return tl::unexpected(*std::move(reason));
  if (auto reason = refuse_layout(problem.outputs[0], "the output")) return tl::unexpected(*std::move(reason));
  return Shape{conv->spatial, conv->groups, conv->kernel, conv->stride, conv->dilation, conv->pad, conv->padding_rule};
}

std::string to_text(const DepthwiseConfig& config) {
  return fmt::format("{} pixels split={}", config.pixels, config.split_channels ? "channels" : "pixels");
}

double predicted_us(const Problem& problem, const Shape& shape, const DepthwiseConfig& config, int64_t rows_at_once) {
  // Clocks: of a strip, of each of its vectors, of each of those' pixels; of the multiplications, times as many as with
  // no waiting.
  constexpr double kStripClocks = 89, kVectorClocks = 31, kPixelClocks = 8, kWaiting = 2.5;
  const Target& target = problem.target;
  const gemm::TileCost core(target);
  const Dims& y = problem.outputs[0].opt_dims;
  const int64_t across = ceil_div(y.back(), config.pixels);
  int64_t strips = std::accumulate(y.begin() + 2, y.end() - 1, y[0], std::multiplies<>()) * across;
  int64_t vectors = ceil_div<int64_t>(shape.channels, core.lanes());
  if (config.split_channels) {
    const int64_t blocks = ceil_div(ceil_div<int64_t>(shape.channels, kMaxTileColumns), target.cores);
    vectors = std::min(vectors, blocks * kMaxTileColumns / core.lanes());
  } else {
    strips = ceil_div(strips, target.cores);
  }
  const double pixels = static_cast<double>(y.back()) / static_cast<double>(across);
  const auto rows = static_cast<double>(shape.kernel[0] * ceil_div(shape.kernel[1], rows_at_once)),
             taps = static_cast<double>(shape.kernel[2]);
  const double columns = (pixels - 1) * static_cast<double>(shape.stride[2]) + taps;  // that a strip reads
  const double multiplications = std::max(pixels * taps * core.lanes() / target.products.f32, (columns + taps) / 2);
  const double vector = kWaiting * rows * multiplications + pixels * kPixelClocks + kVectorClocks;
  const double clocks = static_cast<double>(strips) * (kStripClocks + static_cast<double>(vectors) * vector);
  return core.launch_us(clocks, 0, moved_bytes(problem) / target.cores);
}

}  // namespace lathe::cpu::depthwise
