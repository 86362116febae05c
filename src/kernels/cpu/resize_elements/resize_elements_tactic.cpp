// SPDX-License-Identifier: Apache-2.0
// Resizing of any type and by any rule: kernel "resize_elements".
#include <numeric>

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/resize/sample_rule_tactic.h"
#include "kernels/cpu/resize_elements/resize_elements.h"

namespace lathe::cpu {
namespace {

constexpr size_t kSizes = 3;

// The params have the numbers of the op's enumeration.
static_assert(static_cast<int>(SizePolicy::not_larger) == static_cast<int>(AspectPolicy::not_larger));
static_assert(static_cast<int>(SizePolicy::not_smaller) == static_cast<int>(AspectPolicy::not_smaller));

// For each result of an image: one element, four or sixteen are read, with their weights.
double clocks_of(ResizeMode mode) { return mode == ResizeMode::nearest ? 2 : mode == ResizeMode::linear ? 8 : 40; }

}  // namespace

Matched match_resize_elements(const Problem& problem) {
  if (!problem.is(OpKind::resize)) return refuse("not a resize");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (auto reason = refuse_epilogue(problem)) return refuse(*std::move(reason));
  if (problem.inputs[0].rank() == 0) return refuse("a scalar");
  const auto& attrs = problem.attrs<ResizeAttrs>();
  ResizeElementsParams params;
  params.rule = sample_rule(attrs);
  params.extrapolation = attrs.extrapolation;
  params.by_sizes = problem.has_input(kSizes);
  params.policy = static_cast<SizePolicy>(attrs.aspect);
  for (const int64_t axis : attrs.axes) params.axes.push_back(axis_from_start(axis, problem.inputs[0]));
  if (attrs.axes.empty()) {
    params.axes.resize(problem.inputs[0].dims.size());
    std::iota(params.axes.begin(), params.axes.end(), 0);
  }
  return match_one(emission_of(problem, params, all_inputs(problem)),
                   predicted_us(problem, {.clocks = clocks_of(attrs.mode)}));
}

}  // namespace lathe::cpu
