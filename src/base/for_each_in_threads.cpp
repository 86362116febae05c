// SPDX-License-Identifier: Apache-2.0
#include "base/for_each_in_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace lathe {

void for_each_in_threads(size_t count, int threads, const std::function<void(size_t i, size_t thread)>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&](size_t thread) noexcept {
    for (size_t i = next++; i < count; i = next++) work(i, thread);
  };
  std::vector<std::thread> helpers;
  const size_t most = std::min(static_cast<size_t>(std::max(threads, 1)), count);
  try {
    for (size_t i = 1; i < most; ++i) helpers.emplace_back(run, i);
  } catch (const std::exception&) {  // no thread, or no memory, for one more
  }
  run(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace lathe
