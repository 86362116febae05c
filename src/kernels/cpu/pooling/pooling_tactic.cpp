// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling: kernel "pooling".
#include "kernels/cpu/byte_scale_tactic.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/pooling/pooling.h"
#include "kernels/padding_rule_tactic.h"
#include "ops/windows.h"

namespace lathe::cpu {
namespace {

std::optional<std::string> refuse_types(const Problem& problem) {
  const bool is_maximum = problem.attrs<PoolingAttrs>().op == PoolingOp::max;
  const Operand& x = problem.inputs[0];
  if (!x.is_computed()) {
    const bool takes_bytes = is_maximum && problem.outputs.size() == 1 && problem.program.is_identity();
    return is_byte_integer(x.dtype) && takes_bytes ? std::nullopt : refuse_non_f32(problem);
  }
  if (!byte_scale_of(x)) return "its input is computed otherwise than from levels";
  if (is_maximum) return "maxima of computed inputs";
  if (x.strides[1] != Expr(1) && x.dims[1] != Expr(1)) return "channels of levels are not contiguous";
  for (const Operand& operand : problem.operands)
    if (operand.dtype != DType::f32) return "an operand is not f32";
  const DType to = problem.outputs[0].dtype;
  return to == DType::f32 || is_byte_integer(to) ? std::nullopt
                                                 : std::optional<std::string>("its result has another type");
}

}  // namespace

Matched match_pooling(const Problem& problem) {
  if (!problem.is(OpKind::pooling)) return refuse("not a pooling");
  if (auto reason = unsupported_feature(problem, {.prologues = 1})) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<PoolingAttrs>();
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  if (attrs.op == PoolingOp::lp) return refuse("lp pooling");
  const Operand& x = problem.inputs[0];
  if (x.rank() < 3 || x.rank() > 5)
    return refuse(fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2));
  if (attrs.window.size() + 2 != x.dims.size()) return refuse("the window is not of all dimensions but two");
  PoolingParams params{attrs.op == PoolingOp::max, attrs.count_include_pad, rule_of(attrs.padding_mode), {}};
  if (x.is_computed()) params.levels = *byte_scale_of(x);
  for (size_t i = 0; i + 2 < x.dims.size(); ++i)
    params.axes.push_back({value_at(attrs.window, i, 1), value_at(attrs.stride, i, 1), value_at(attrs.pads_begin, i, 0),
                           value_at(attrs.pads_end, i, 0), value_at(attrs.dilation, i, 1)});
  return match_one(emission_of(problem, params, {0}), predicted_us(problem));
}

}  // namespace lathe::cpu
