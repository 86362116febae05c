// SPDX-License-Identifier: Apache-2.0
// Maximum, average and p-norm pooling over any dimensions in any layout.
#include <numeric>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/memory_order.h"
#include "kernels/cuda/source.h"
#include "ops/windows.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxTaps = 4096;

// The window along every dimension of x; those that are not pooled have the window 1.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation, pad, end;
  int64_t taps() const { return std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>()); }
  // Dimensions that the windows change.
  std::vector<bool> changed() const {
    std::vector<bool> changed;
    for (size_t d = 0; d < kernel.size(); ++d)
      changed.push_back(kernel[d] != 1 || stride[d] != 1 || pad[d] != 0 || end[d] != 0);
    return changed;
  }
};

// Nothing when SAME padding depends on a dimension that is not known yet.
std::optional<Windows> windows_of(const Problem& problem) {
  const auto& attrs = problem.attrs<PoolingAttrs>();
  const Shape& dims = problem.inputs[0].dims;
  const size_t lead = dims.size() - attrs.window.size();
  const Result<WindowAttrs> window = window_attrs(attrs, attrs.window.size());
  if (!window) return std::nullopt;
  const std::vector<int64_t> ones(lead, 1), zeros(lead, 0);
  Windows out{ones, ones, ones, zeros, zeros};
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    const Window rule = window_rule(dims[lead + i], attrs.window[i], window->stride[i], window->dilation[i],
                                    window->pads_begin[i], window->pads_end[i], window->mode);
    if (!rule.pad_begin.is_constant() || !rule.pad_end.is_constant()) return std::nullopt;
    out.kernel.push_back(attrs.window[i]);
    out.stride.push_back(window->stride[i]);
    out.dilation.push_back(window->dilation[i]);
    out.pad.push_back(*rule.pad_begin.as_constant());
    out.end.push_back(*rule.pad_end.as_constant());
  }
  return out;
}

Windows permuted(const Windows& windows, const std::vector<size_t>& order) {
  const auto take = [&](const std::vector<int64_t>& values) {
    std::vector<int64_t> taken;
    for (const size_t d : order) taken.push_back(values[d]);
    return taken;
  };
  return {take(windows.kernel), take(windows.stride), take(windows.dilation), take(windows.pad), take(windows.end)};
}

std::string kind_type(const PoolingAttrs& attrs) {
  if (attrs.op == PoolingOp::max) return "MaxPool";
  if (attrs.op == PoolingOp::lp) return fmt::format("LpPool<{}>", attrs.p);
  return attrs.count_include_pad ? "AveragePool<true>" : "AveragePool<false>";
}

std::string window_text(const Windows& windows) {
  std::vector<int64_t> whole;
  for (const bool changed : windows.changed()) whole.push_back(!changed);
  return "struct Window {\n" + dim_function("kernel", windows.kernel) + dim_function("stride", windows.stride) +
         dim_function("dilation", windows.dilation) + dim_function("pad", windows.pad) +
         dim_function("end", windows.end) + dim_function("is_whole", whole) + "};";
}

class PoolingMatch final : public RunMatch {
 public:
  PoolingMatch(const Problem& problem, const Windows& windows)
      : RunMatch(problem, windows.changed(), windows.taps()), windows_(permuted(windows, order_)) {}

  Result<Emission> emit(const Config& config) const override {
    const auto& shape = config.as<RunShape>();
    Emission emission;
    emission.inputs = {{StepInput::input, 0}};
    Source source("pooling/pooling.cuh");
    source.input(0, x_, "X");
    source.output(0, y_, "Y");
    declare_epilogue(source, emission);
    source.declare(window_text(windows_));
    const bool packed = is_packed(shape.width);
    if (packed) source.include("pooling/packed_max.cuh");
    const std::string call =
        packed
            ? fmt::format("max_pool<Window, {}, {}, {}>(X_, Y_, fusion_);", windows_.taps(), shape.threads, shape.width)
            : fmt::format("pool<{0}, Window, {1}, {2}, {3}>(X_, Y_, {0}{{}}, fusion_);",
                          kind_type(problem_.attrs<PoolingAttrs>()), windows_.taps(), shape.threads, shape.width);
    emission.launches.push_back(finish(source, call, shape));
    return emission;
  }

 private:
  // Whether vectors of so many elements are compared in pairs of 16 bits (pooling/packed_max.cuh), for which sm_80,
  // which multiplies bf16, has an instruction of floats, and sm_90, which has clusters, one of integers.
  bool is_packed(int64_t width) const {
    constexpr int64_t kWordBytes = 4;
    const DType dtype = x_.dtype;
    const Target::Limits& limits = problem_.target.limits;
    const bool is_float = (dtype == DType::f16 || dtype == DType::bf16) && limits.bfloat16;
    // Of integers, what is not in a window at all would not be infinity for a program.
    const bool is_level =
        (dtype == DType::i8 || dtype == DType::u8) && problem_.program.is_identity() && limits.cluster > 1;
    const int last = x_.rank() - 1;
    const auto fits = [&](const Operand& operand) {
      return unit_dim(operand) == last && vector_width(operand) >= width;
    };
    return problem_.attrs<PoolingAttrs>().op == PoolingOp::max && (is_float || is_level) && fits(x_) && fits(y_) &&
           !windows_.changed().back() && width * static_cast<int64_t>(size_of(dtype)) >= kWordBytes &&
           mod(y_.dims.back(), width) == Expr(0);
  }

  Windows windows_;
};

}  // namespace

Matched match_pooling(const Problem& problem) {
  if (!problem.is(OpKind::pooling)) return refuse("not a pooling");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  if (dtype == DType::f64 || (is_integer(dtype) && size_of(dtype) > 2))
    return refuse(fmt::format("floats do not hold {}", name_of(dtype)));
  const std::optional<Windows> windows = windows_of(problem);
  if (!windows) return refuse("SAME padding depends on a dynamic dimension");
  if (windows->taps() > kMaxTaps) return refuse(fmt::format("its window has {} elements", windows->taps()));
  return std::make_unique<PoolingMatch>(problem, *windows);
}

}  // namespace lathe::cuda
