// SPDX-License-Identifier: Apache-2.0
// Where random numbers of ops without a seed come from.
#pragma once

#include <cstdint>
#include <optional>

namespace lathe {

// For the whole process. With a seed, fresh_seed gives the same number each time, another for each stream, so that
// two evaluations of a network can be compared; without (as the process begins) it never gives a number again.
// Returns what was set before.
std::optional<uint64_t> set_random_seed(std::optional<uint64_t> seed);

}  // namespace lathe
