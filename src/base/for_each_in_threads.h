// SPDX-License-Identifier: Apache-2.0
// Work that several threads share.
#pragma once

#include <cstddef>
#include <functional>

namespace lathe {

// Calls work(i, thread) once for each i < count, on at most so many threads, of which the calling one is 0, and returns
// when all is done. `work` throws nothing. Where the system gives fewer threads, those that there are do it.
void for_each_in_threads(size_t count, int threads, const std::function<void(size_t i, size_t thread)>& work);

}  // namespace lathe
