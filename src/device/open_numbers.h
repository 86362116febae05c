// SPDX-License-Identifier: Apache-2.0
// Launches of code that is given sizes.
#pragma once

#include <algorithm>

#include "device/launch.h"

namespace lathe {

// Whether numbers that the code is given depend on sizes.
inline bool has_open_numbers(const Launch& launch) {
  const auto is_open = [](const LaunchArg& arg) { return arg.kind == LaunchArg::number && !arg.value.is_constant(); };
  return launch.library.empty() && std::any_of(launch.args.begin(), launch.args.end(), is_open);
}

}  // namespace lathe
