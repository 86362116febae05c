// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace lathe {

// Calls work(i, thread) once for each i < count, on at most so many threads, of which the calling one is 0, and returns
// when all is done. `work` throws nothing. Where the system gives fewer threads, those that there are do it.
template <class F>
void for_each_in_threads(size_t count, int threads, const F& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&](size_t thread) noexcept {
    for (size_t i = next++; i < count; i = next++) work(i, thread);
  };
  std::vector<std::thread> helpers;
  const size_t most = std::min(static_cast<size_t>(std::max(threads, 1)), count);
  try {
    for (size_t i = 1; i < most; ++i) helpers.emplace_back(run, i);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  run(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace lathe
