// SPDX-License-Identifier: Apache-2.0
// What device code may use on every device of a target.
#pragma once

#include <cstdint>

namespace lathe {

struct KernelLimits {
  int64_t shared_bytes = 48 << 10;  // of a block
  int cluster = 1;                  // blocks of a cluster (Launch::cluster); 1 = there are none
  bool warpgroups = false;          // four warps may multiply together (wgmma)
};

}  // namespace lathe
