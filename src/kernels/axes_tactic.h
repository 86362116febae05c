// SPDX-License-Identifier: Apache-2.0
// Which axes an op works along, counted from the first.
#pragma once

#include <optional>

#include "tuning/tactic.h"

namespace lathe {

// An axis as the op says it, where negative ones count from the end.
inline int axis_from_start(int64_t axis, const Operand& operand) {
  return static_cast<int>(axis) + (axis < 0 ? operand.rank() : 0);
}

// Of a reduction: at least one. Refused where they are not known, or the input stays as it is.
tl::expected<std::vector<int>, Refusal> reduced_axes(const Problem& problem);

// What a normalisation does to its rows. Those of `groups` begin at axis 2 of [N, groups, C / groups, spatial...].
struct RowNormalization {
  int first_axis = 0;  // of a row, which has all that follow, too
  bool subtracts_mean = true;
  float epsilon = 0;
  bool by_channel = false;  // scale and bias have one value for each channel
  int64_t groups = 0;       // 0 = the channels are not in groups
};
// nullopt where the op is none of layer, RMS, instance and group normalization.
std::optional<RowNormalization> row_normalization(const Problem& problem);

}  // namespace lathe
