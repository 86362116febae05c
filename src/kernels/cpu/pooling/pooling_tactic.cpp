// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling: kernel "pooling".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/pooling/pooling.h"
#include "kernels/padding_rule_tactic.h"
#include "ops/windows.h"

namespace lathe::cpu {

Matched match_pooling(const Problem& problem) {
  if (!problem.is(OpKind::pooling)) return refuse("not a pooling");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<PoolingAttrs>();
  const DType type = problem.inputs[0].dtype;
  const bool takes_bytes = attrs.op == PoolingOp::max && problem.outputs.size() == 1 && problem.program.is_identity();
  if (!is_byte_integer(type) || !takes_bytes)
    if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  if (attrs.op == PoolingOp::lp) return refuse("lp pooling");
  const Operand& x = problem.inputs[0];
  if (x.rank() < 3 || x.rank() > 5)
    return refuse(fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2));
  if (attrs.window.size() + 2 != x.dims.size()) return refuse("the window is not of all dimensions but two");
  PoolingParams params{attrs.op == PoolingOp::max, attrs.count_include_pad, rule_of(attrs.padding_mode), {}};
  for (size_t i = 0; i + 2 < x.dims.size(); ++i)
    params.axes.push_back({value_at(attrs.window, i, 1), value_at(attrs.stride, i, 1), value_at(attrs.pads_begin, i, 0),
                           value_at(attrs.pads_end, i, 0), value_at(attrs.dilation, i, 1)});
  return match_one(emission_of(problem, params, {0}), predicted_us(problem));
}

}  // namespace lathe::cpu
