// SPDX-License-Identifier: Apache-2.0
#include "kernels/axes_tactic.h"

#include <numeric>

namespace lathe {

tl::expected<std::vector<int>, Refusal> reduced_axes(const Problem& problem) {
  const auto& attrs = problem.attrs<ReduceAttrs>();
  const Operand& x = problem.inputs[0];
  if (x.rank() == 0) return refuse("a scalar");
  Ints listed = attrs.axes;
  if (problem.has_input(1)) {
    const Tensor* list = problem.inputs[1].constant;
    if (!list) return refuse("its axes are not constant");
    listed.clear();
    for (int64_t i = 0; i < list->volume(); ++i) listed.push_back(list->at(i));
  }
  if (listed.empty() && attrs.noop_with_empty_axes) return refuse("its axes leave the input as it is");
  std::vector<int> axes;
  for (const int64_t axis : listed) axes.push_back(axis_from_start(axis, x));
  if (axes.empty()) {
    axes.resize(x.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

std::optional<RowNormalization> row_normalization(const Problem& problem) {
  const auto epsilon = [](const auto& attrs) { return static_cast<float>(attrs.epsilon); };
  if (problem.is(OpKind::layer_normalization)) {
    const auto& attrs = problem.attrs<LayerNormalizationAttrs>();
    return RowNormalization{.first_axis = axis_from_start(attrs.axis, problem.inputs[0]), .epsilon = epsilon(attrs)};
  }
  if (problem.is(OpKind::rms_normalization)) {
    const auto& attrs = problem.attrs<RmsNormalizationAttrs>();
    return RowNormalization{.first_axis = axis_from_start(attrs.axis, problem.inputs[0]),
                            .subtracts_mean = false,
                            .epsilon = epsilon(attrs)};
  }
  if (problem.is(OpKind::instance_normalization))
    return RowNormalization{
        .first_axis = 2, .epsilon = epsilon(problem.attrs<InstanceNormalizationAttrs>()), .by_channel = true};
  if (problem.is(OpKind::group_normalization)) {
    const auto& attrs = problem.attrs<GroupNormalizationAttrs>();
    return RowNormalization{.first_axis = 2, .epsilon = epsilon(attrs), .by_channel = true, .groups = attrs.groups};
  }
  return std::nullopt;
}

}  // namespace lathe
