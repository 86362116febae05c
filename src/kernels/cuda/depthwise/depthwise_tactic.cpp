// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last images.
#include <algorithm>

#include "base/divide.h"
#include "kernels/conv_shape_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"

namespace lathe::cuda {
namespace {

constexpr double kMemoryShare = 0.875, kCachedShare = 0.522;  // of the rates of memory and first caches
constexpr double kLeastFill = 0.25;                           // a thread's own loads overlap
constexpr uint32_t kThreads = 128;
constexpr int64_t kMostUnrolledTaps = 11;
constexpr int64_t kMostExactTaps = 1024;  // products of 8-bit integers that f32 adds up exactly

// Channels of a thread: 16 bytes of them, but no more than registers have room for.
int64_t width_of(DType dtype) { return std::min<int64_t>(16 / static_cast<int64_t>(size_of(dtype)), 8); }

Result<Packed> pack_filter(const Operand& filter) {
  const Tensor& weights = *filter.weights;
  const int64_t channels = weights.dims()[0], taps = channels == 0 ? 0 : weights.volume() / channels;
  const int64_t pitch = round_up(channels, width_of(weights.dtype()));
  return pack(Known{weights, filter.derivation}, {taps, pitch}, {{channels, taps, 1}, {taps, 1, pitch}});
}

// The choice: pixels of a thread.
std::vector<Config> configs(const Problem& problem, const ConvShape& a) {
  const Dims &x = problem.inputs[0].opt_dims, &y = problem.outputs[0].opt_dims;
  int64_t in = 1, rows = y[0];
  for (int64_t dim : x) in *= dim;
  for (size_t d = 2; d + 1 < y.size(); ++d) rows *= y[d];
  const auto size = static_cast<double>(size_of(problem.inputs[0].dtype));
  const int64_t vectors = ceil_div(x[1], width_of(problem.inputs[0].dtype));
  const Target& target = problem.target;
  std::vector<Config> configs;
  for (const int64_t strip : {4, 2, 8, 1}) {
    if (strip > 1 && strip / 2 >= y.back()) continue;
    // The program stands in the code once for each pixel of a strip.
    if (strip > 4 && (problem.program.code.size() > 4 || a.stride[2] > 1)) continue;
    const int64_t strips = ceil_div(y.back(), strip);
    const auto threads = static_cast<double>(rows * strips * vectors);
    // Each thread reads its filter and its pixels, mostly from caches.
    const double columns =
        static_cast<double>((strip - 1) * a.stride[2] + (a.kernel[2] - 1) * a.dilation[2] + 1 + a.kernel[2]);
    const double cached = threads * 16 * static_cast<double>(a.kernel[0] * a.kernel[1]) * columns;
    const double memory = static_cast<double>(in + rows * y.back() * y[1]) * size;
    const double fill =
        std::min(1.0, threads / static_cast<double>(target.busy_threads()));  // few threads leave the device idle
    const double time =
        target.launch_us + std::max(memory / (kMemoryShare * target.memory_rate),
                                    cached / (kCachedShare * target.shared_rate()) / std::max(fill, kLeastFill));
    configs.push_back({.text = fmt::format("strip={}", strip), .predicted_us = time, .choice = strip});
  }
  return best_first(std::move(configs));
}

Result<Emission> emit(const Problem& problem, const ConvShape& a, const Config& config) {
  const auto strip = config.as<int64_t>();
  const Operand &x = problem.inputs[0], &y = problem.outputs[0];
  const int64_t width = width_of(x.dtype);
  LATHE_ASSIGN(Packed packed, pack_filter(problem.inputs[1]));
  Source source("depthwise/depthwise.cuh");
  source.input(0, x, "X");
  source.input(1, packed_operand(packed), "F");
  Emission emission = with_weights(std::move(packed));
  add_operand_inputs(problem, emission);
  source.output(0, y, "Y");
  source.rounding_fusion(problem, 2);
  const std::string call =
      fmt::format("depthwise::run<{}, {}, {}, {}, {}>(X_, F_, Y_, fusion_, {});", conv::window_type(a), strip, width,
                  a.kernel[2] > kMostUnrolledTaps, mod(x.dims[1], width) == Expr(0), conv::pixels(source, y));
  Expr work = y.dims[0] * ceildiv(y.dims[1], width) * ceildiv(y.dims.back(), strip);
  for (size_t d = 2; d + 1 < y.dims.size(); ++d) work *= y.dims[d];
  emission.launches.push_back(source.finish(call, {ceildiv(work, kThreads), 1, 1}, kThreads, 0));
  return emission;
}

}  // namespace

Matched match_depthwise(const Problem& problem) {
  if (!problem.is(OpKind::convolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  if (!is_short_float(x.dtype) && x.dtype != DType::i8)
    return refuse(fmt::format("elements of type {}", name_of(x.dtype)));
  if (!w.weights) return refuse("the weights are not constant");
  if (x.dtype == DType::i8 && w.weights->volume() > kMostExactTaps * w.weights->dims()[0])
    return refuse("floats do not hold the sums of so many products");
  ConvShape attributes;
  if (auto reason = resolve_conv_shape(problem, attributes)) return refuse(*std::move(reason));
  const Dims& dims = w.weights->dims();
  if (dims[1] != 1 || dims[0] != attributes.groups) return refuse("not one input and one output channel in each group");
  for (const Operand* operand : {&x, &problem.outputs[0]})
    if (operand->strides[1] != Expr(1)) return refuse("channels are not side by side");
  return match_form(problem, attributes, configs, emit);
}

}  // namespace lathe::cuda
