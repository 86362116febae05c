// SPDX-License-Identifier: Apache-2.0
// Maximum, average and p-norm pooling over any dimensions in any layout.
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
  int64_t taps() const {
    int64_t product = 1;
    for (const int64_t extent : kernel) product *= extent;
    return product;
  }
  bool is_whole(size_t d) const { return kernel[d] == 1 && stride[d] == 1 && pad[d] == 0 && end[d] == 0; }
};

// Nothing when SAME padding depends on a dimension that is not known yet.
std::optional<Windows> windows_of(const Problem& problem) {
  const auto& attrs = problem.attrs<PoolingAttrs>();
  const Shape& dims = problem.inputs[0].dims;
  const size_t lead = dims.size() - attrs.window.size();
  const Result<WindowAttrs> window = window_attrs(attrs, attrs.window.size());
  if (!window) return std::nullopt;
  Windows out;
  const auto add = [&](int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t end) {
    out.kernel.push_back(kernel);
    out.stride.push_back(stride);
    out.dilation.push_back(dilation);
    out.pad.push_back(pad);
    out.end.push_back(end);
  };
  for (size_t d = 0; d < lead; ++d) add(1, 1, 1, 0, 0);
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    const Window rule = window_rule(dims[lead + i], attrs.window[i], window->stride[i], window->dilation[i],
                                    window->pads_begin[i], window->pads_end[i], window->mode);
    if (!rule.pad_begin.is_constant() || !rule.pad_end.is_constant()) return std::nullopt;
    add(attrs.window[i], window->stride[i], window->dilation[i], *rule.pad_begin.as_constant(),
        *rule.pad_end.as_constant());
  }
  return out;
}

Windows permuted(const Windows& windows, const std::vector<size_t>& order) {
  Windows out;
  for (const size_t d : order) {
    out.kernel.push_back(windows.kernel[d]);
    out.stride.push_back(windows.stride[d]);
    out.dilation.push_back(windows.dilation[d]);
    out.pad.push_back(windows.pad[d]);
    out.end.push_back(windows.end[d]);
  }
  return out;
}

std::string kind_type(const PoolingAttrs& attrs) {
  if (attrs.op == PoolingOp::max) return "MaxPool";
  if (attrs.op == PoolingOp::lp) return fmt::format("LpPool<{}>", attrs.p);
  return attrs.count_include_pad ? "AveragePool<true>" : "AveragePool<false>";
}

std::string window_text(const Windows& windows) {
  std::vector<int64_t> whole;
  for (size_t d = 0; d < windows.kernel.size(); ++d) whole.push_back(windows.is_whole(d));
  return "struct Window {\n" + dim_function("kernel", windows.kernel) + dim_function("stride", windows.stride) +
         dim_function("dilation", windows.dilation) + dim_function("pad", windows.pad) +
         dim_function("end", windows.end) + dim_function("is_whole", whole) + "};";
}

class PoolingTactic final : public Tactic {
 public:
  std::string_view name() const override { return "pooling"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::pooling)) return "not a pooling";
    if (problem.outputs.size() > 1) return "it gives indices too";
    const DType dtype = problem.inputs[0].dtype;
    if (dtype == DType::f64 || (is_integer(dtype) && size_of(dtype) > 2))
      return fmt::format("floats do not hold {}", name_of(dtype));
    const std::optional<Windows> windows = windows_of(problem);
    if (!windows) return "SAME padding depends on a dynamic dimension";
    if (windows->taps() > kMaxTaps) return fmt::format("its window has {} elements", windows->taps());
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    const std::vector<size_t> order = memory_order(problem.outputs[0]);
    const Windows windows = *windows_of(problem);
    const Operand x = cuda::permuted(problem.inputs[0], order), y = cuda::permuted(problem.outputs[0], order);
    return run_configs(problem.target, y, widest_run(x, y, windows.is_whole(order.back())), windows.taps());
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const std::vector<size_t> order = memory_order(problem.outputs[0]);
    const Windows windows = permuted(*windows_of(problem), order);
    const RunShape shape = RunShape::of(config);
    const Operand y = cuda::permuted(problem.outputs[0], order);
    Source source("pooling/pooling.cuh");
    source.input(0, cuda::permuted(problem.inputs[0], order), "X");
    source.output(0, y, "Y");
    source.fusion(permuted_epilogue(problem, order), 1);
    source.declare(window_text(windows));
    const std::string call =
        fmt::format("pool<{0}, Window, {1}, {2}, {3}>(X_, Y_, {0}{{}}, fusion_);",
                    kind_type(problem.attrs<PoolingAttrs>()), windows.taps(), shape.threads, shape.width);
    Emission emission;
    emission.inputs = {{StepInput::input, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    emission.launches.push_back(source.finish(call, {run_blocks(y, shape.width, shape.threads), 1, 1},
                                              static_cast<uint32_t>(shape.threads), 0));
    return emission;
  }
};

}  // namespace

const Tactic& pooling_tactic() {
  static const PoolingTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
