// SPDX-License-Identifier: Apache-2.0
#include "tuning/all_cores.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace lathe {

int threads_of(size_t most_threads) {
  return static_cast<int>(std::min<size_t>(most_threads, static_cast<size_t>(allowed_cpus())));
}

Result<> on_all_cores(size_t count, const std::function<void(size_t)>& work, double seconds,
                      const std::function<Result<>(double)>& progress, size_t most_threads) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  std::exception_ptr failure;  // want of memory; out of a thread it would end the program
  const auto share = [&](const auto& after_each) {
    try {
      for (size_t i; !stopped && (i = next++) < count && Clock::now() < end; after_each(i)) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      stopped = true;
    }
  };
  std::vector<std::jthread> threads;
  const auto most = static_cast<size_t>(threads_of(most_threads));
  for (size_t i = 1; i < std::min(most, count); ++i) threads.emplace_back([&] { share([](size_t) {}); });
  Result<> told;
  share([&](size_t i) {
    if (told) told = progress(static_cast<double>(i) / static_cast<double>(count));
    if (!told) stopped = true;
  });
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return told;
}

}  // namespace lathe
