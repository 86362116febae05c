// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/padding_rule.h"
#include "ops/op.h"

namespace lathe {

inline PaddingRule rule_of(PaddingMode mode) {
  if (mode == PaddingMode::same_upper) return PaddingRule::lower_half;
  return mode == PaddingMode::same_lower ? PaddingRule::upper_half : PaddingRule::given;
}

}  // namespace lathe
