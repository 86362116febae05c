// SPDX-License-Identifier: Apache-2.0
// Independent work of a build on all cores.
#pragma once

#include <functional>

#include "base/result.h"

namespace lathe {

inline constexpr double kUnlimited = 1e9;  // seconds

// One for each core, at most so many.
int threads_of(size_t most_threads);

// Calls work(i) for each i < count, in any order and from several threads; what has not begun after so many seconds is
// left. `most_threads` counts the calling one. `progress` is called by the calling thread alone; its error ends the
// work and is returned. What work() throws is thrown here once all threads have ended.
Result<> on_all_cores(size_t count, const std::function<void(size_t)>& work, double seconds,
                      const std::function<Result<>(double)>& progress, size_t most_threads = SIZE_MAX);

}  // namespace lathe
