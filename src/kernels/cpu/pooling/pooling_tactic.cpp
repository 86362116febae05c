// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling: kernel "pooling".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/pooling/pooling.h"
#include "ops/rules.h"

namespace lathe::cpu {
namespace {

Matched match_pooling(const Problem& problem) {
  if (!problem.is(OpKind::pooling)) return refuse("not a pooling");
  if (auto reason = beyond(problem, {})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<PoolingAttrs>();
  if (attrs.op == PoolingOp::lp) return refuse("lp pooling");
  const Operand& x = problem.inputs[0];
  if (x.rank() < 3 || x.rank() > 5)
    return refuse(fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2));
  if (attrs.window.size() + 2 != x.dims.size()) return refuse("the window is not of all dimensions but two");
  const auto get = [](const Ints& values, size_t i, int64_t fallback) {
    return i < values.size() ? values[i] : fallback;
  };
  PoolingParams params{attrs.op == PoolingOp::max, attrs.count_include_pad, {}};
  for (size_t i = 0; i + 2 < x.dims.size(); ++i) {
    PoolingAxis axis{get(attrs.window, i, 1), get(attrs.stride, i, 1), get(attrs.pads_begin, i, 0),
                     get(attrs.pads_end, i, 0), get(attrs.dilation, i, 1)};
    if (attrs.padding_mode == PaddingMode::same_upper || attrs.padding_mode == PaddingMode::same_lower) {
      const Window window = window_rule(x.dims[2 + i], axis.kernel, axis.stride, axis.dilation, axis.pad_begin,
                                        axis.pad_end, attrs.padding_mode);
      if (!window.pad_begin.is_constant() || !window.pad_end.is_constant())
        return refuse("SAME padding depends on a dynamic dimension");
      axis.pad_begin = *window.pad_begin.as_constant();
      axis.pad_end = *window.pad_end.as_constant();
    }
    params.axes.push_back(axis);
  }
  return match_one(emission_of(problem, params, {0}), predicted_us(problem, 0));
}

}  // namespace

const Tactic& pooling_tactic() {
  static const FunctionTactic tactic("pooling", match_pooling);
  return tactic;
}

}  // namespace lathe::cpu
