// SPDX-License-Identifier: Apache-2.0
// Which input of op attention is which.
#pragma once

#include <cstddef>

namespace lathe::attention_input {

inline constexpr size_t kQ = 0, kK = 1, kV = 2, kMask = 3, kSinks = 4, kDistances = 5;

}  // namespace lathe::attention_input
