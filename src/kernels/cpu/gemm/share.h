// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lathe::cpu::gemm {

// One thread's rows [first_row, last_row) x panels [first_panel, last_panel), panels counted over all groups.
struct Share {
  int64_t first_row, last_row, first_panel, last_panel;
};

}  // namespace lathe::cpu::gemm
