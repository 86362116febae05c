// SPDX-License-Identifier: Apache-2.0
// The attributes of a convolution with defaults filled in and SAME padding resolved.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "tuning/problem.h"

namespace lathe::cpu {

// Dimensions D H W; what the network's rank lacks has extent 1.
struct ConvAttributes {
  int spatial = 2;
  int64_t groups = 1;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
};

// A reason in words when they cannot be resolved while building.
std::optional<std::string> resolve(const Problem& problem, ConvAttributes& out);

}  // namespace lathe::cpu
