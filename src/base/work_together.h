// SPDX-License-Identifier: Apache-2.0
// Work that several threads share.
#pragma once

#include <cstddef>
#include <functional>

namespace lathe {

// Calls `work` on at most `threads` threads, the calling one among them, and returns when all have returned; on fewer
// where the system cannot start more. `work` takes pieces of what there is to do until nothing is left.
void work_together(size_t threads, const std::function<void()>& work);

}  // namespace lathe
