// SPDX-License-Identifier: Apache-2.0
// Which keys a row of a mask leaves out at either end.
#pragma once

#include "base/seen_keys.h"

namespace lathe::cpu::attention {

// What is hidden by this number, or by one below, has no weight beside a key that is not: scores are far from it.
inline constexpr float kLow = -1e30f;
inline constexpr int64_t kKeyBlock = 64;

// Those of a row. If it `is_mean`, it sees none, and all have the same weight.
struct RowKeys : KeyRange {
  bool is_mean = false;
};

// The keys without the blocks at either end that the mask, which has an element for each key, hides whole: by zeros, or
// by numbers up to kLow that are added. All of them where it shows none, or where it is not clear whether it does.
KeyRange shown_keys(const uint8_t* mask, KeyRange keys);
KeyRange shown_keys(const float* mask, KeyRange keys);

}  // namespace lathe::cpu::attention
