// SPDX-License-Identifier: Apache-2.0
// The number of a tactic, by which the inspector, the timing cache and the log name the same one.
#pragma once

#include <string_view>

#include "base/hash.h"

namespace lathe {

// Of "conv: 6x64 kb512". 0: there is none.
inline uint64_t tactic_value(std::string_view tactic) { return tactic.empty() ? 0 : Hasher().add(tactic).value(); }

}  // namespace lathe
