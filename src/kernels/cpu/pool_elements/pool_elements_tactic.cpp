// SPDX-License-Identifier: Apache-2.0
// Pooling of any type and window, with positions: kernel "pool_elements".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/pool_elements/pool_elements.h"
#include "kernels/padding_rule_tactic.h"
#include "ops/windows.h"

namespace lathe::cpu {
namespace {

constexpr double kMostTaps = 1 << 24;

// The params have the numbers of the op's enumeration.
static_assert(static_cast<int>(PoolKind::average) == static_cast<int>(PoolingOp::average));
static_assert(static_cast<int>(PoolKind::norm) == static_cast<int>(PoolingOp::lp));

}  // namespace

Matched match_pool_elements(const Problem& problem) {
  if (!problem.is(OpKind::pooling)) return refuse("not a pooling");
  if (auto reason = unsupported_feature(problem, {.further_results = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_epilogue(problem)) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<PoolingAttrs>();
  PoolElementsParams params;
  params.kind = static_cast<PoolKind>(attrs.op);
  params.count_include_pad = attrs.count_include_pad;
  params.column_major = attrs.column_major_indices;
  params.exponent = attrs.p;
  double taps = 1;
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    PoolElementsParams::Axis axis{attrs.window[i], value_at(attrs.stride, i, 1), value_at(attrs.dilation, i, 1)};
    taps *= static_cast<double>(axis.kernel);
    axis.rule = rule_of(attrs.padding_mode);
    axis.begin = value_at(attrs.pads_begin, i, 0);
    axis.end = value_at(attrs.pads_end, i, 0);
    params.axes.push_back(axis);
  }
  if (taps > kMostTaps) return refuse("a window of too many elements");
  return match_one(emission_of(problem, params, {0}), predicted_us(problem, {.clocks = 3.5}));
}

}  // namespace lathe::cpu
