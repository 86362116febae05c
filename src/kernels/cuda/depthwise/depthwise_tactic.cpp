// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last images.
#include <algorithm>

#include "kernels/cpu/conv/conv_attributes_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"

namespace lathe::cuda {
namespace {

constexpr double kMemoryShare = 0.875, kCachedShare = 0.522;  // of the rates of memory and first caches
constexpr double kLeastFill = 0.25;                           // a thread's own loads overlap
constexpr uint32_t kThreads = 128;
constexpr int64_t kMostUnrolledTaps = 11;
constexpr int64_t kMostExactTaps = 1024;  // products of 8-bit integers that f32 adds up exactly

// Channels of a thread: 16 bytes of them, but no more than registers have room for.
int64_t width_of(DType dtype) { return std::min<int64_t>(16 / static_cast<int64_t>(size_of(dtype)), 8); }

Result<Tensor> pack_filter(const Tensor& weights) {
  const int64_t channels = weights.dims()[0], taps = channels == 0 ? 0 : weights.volume() / channels;
  const auto width = width_of(weights.dtype());
  const size_t size = size_of(weights.dtype());
  const int64_t pitch = (channels + width - 1) / width * width;
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(weights.dtype(), {taps, pitch}));
  std::fill_n(static_cast<std::byte*>(packed.mutable_data()), packed.bytes(), std::byte{0});
  const auto* from = static_cast<const std::byte*>(weights.data());
  auto* to = static_cast<std::byte*>(packed.mutable_data());
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < taps; ++tap, from += size)
      std::copy_n(from, size, to + static_cast<size_t>(tap * pitch + c) * size);
  return packed;
}

class DepthwiseTactic final : public Tactic {
 public:
  std::string_view name() const override { return "depthwise"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::convolution)) return "not a convolution";
    const Operand &x = problem.inputs[0], &w = problem.inputs[1];
    if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
    if (x.dtype != DType::f32 && x.dtype != DType::f16 && x.dtype != DType::bf16 && x.dtype != DType::i8)
      return fmt::format("elements of type {}", name_of(x.dtype));
    if (!w.constant) return "the weights are not constant";
    if (x.dtype == DType::i8 && w.constant->volume() > kMostExactTaps * w.constant->dims()[0])
      return "floats do not hold the sums of so many products";
    cpu::ConvAttributes attributes;
    if (auto reason = cpu::resolve(problem, attributes)) return reason;
    const Dims& dims = w.constant->dims();
    if (dims[1] != 1 || dims[0] != attributes.groups) return "not one input and one output channel in each group";
    for (const Operand* operand : {&x, &problem.outputs[0]})
      if (operand->strides[1] != Expr(1)) return "channels are not side by side";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    const Dims &x = problem.inputs[0].opt_dims, &y = problem.outputs[0].opt_dims;
    cpu::ConvAttributes a;
    cpu::resolve(problem, a);  // refuse() has seen to it that this works
    int64_t in = 1, rows = y[0];
    for (int64_t dim : x) in *= dim;
    for (size_t d = 2; d + 1 < y.size(); ++d) rows *= y[d];
    const auto size = static_cast<double>(size_of(problem.inputs[0].dtype));
    const int64_t vectors = (x[1] + width_of(problem.inputs[0].dtype) - 1) / width_of(problem.inputs[0].dtype);
    const Target& target = problem.target;
    std::vector<Config> configs;
    for (int64_t strip : {4, 2, 8, 1}) {
      if (strip > 1 && strip / 2 >= y.back()) continue;
      // The program stands in the code once for each pixel of a strip.
      if (strip > 4 && (problem.program.code.size() > 4 || a.stride[2] > 1)) continue;
      const int64_t strips = (y.back() + strip - 1) / strip;
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
      configs.push_back({fmt::format("strip={}", strip), {strip}, time});
    }
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& l, const Config& r) { return l.predicted_us < r.predicted_us; });
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    cpu::ConvAttributes a;
    if (const auto refusal = cpu::resolve(problem, a)) return fail(ErrorCode::internal, "depthwise: {}", *refusal);
    const int64_t strip = config.values[0];
    const Operand &x = problem.inputs[0], &y = problem.outputs[0];
    const int64_t width = width_of(x.dtype);
    Emission emission;
    emission.with_program = false;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    LATHE_ASSIGN(Tensor packed, pack_filter(*problem.inputs[1].constant));
    Source source("depthwise/depthwise.cuh");
    source.input(0, x, "X");
    source.input(1, gemm::packed_operand(packed), "F");
    emission.packed.push_back(std::move(packed));
    source.output(0, y, "Y");
    source.fusion(problem, 2);
    const std::string call =
        fmt::format("depthwise::run<{}, {}, {}, {}, {}>(X_, F_, Y_, fusion_, {});", conv::window_type(a), strip, width,
                    a.kernel[2] > kMostUnrolledTaps, mod(x.dims[1], width) == Expr(0), conv::pixels(source, y));
    Expr work = y.dims[0] * ceildiv(y.dims[1], width) * ceildiv(y.dims.back(), strip);
    for (size_t d = 2; d + 1 < y.dims.size(); ++d) work *= y.dims[d];
    emission.launches.push_back(source.finish(call, {ceildiv(work, kThreads), 1, 1}, kThreads, 0));
    return emission;
  }
};

}  // namespace

const Tactic& depthwise_tactic() {
  static const DepthwiseTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
