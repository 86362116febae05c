// SPDX-License-Identifier: Apache-2.0
// The CPU backend's threads: pinned workers that spin briefly between parallel regions and park on a futex when idle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/divide.h"
#include "base/result.h"

namespace lathe::cpu {

struct ThreadPoolOptions {
  int threads = 0;    // including the caller; 0 = the number of CPUs this process may use (affinity and cgroup quota)
  bool pin = true;    // bind workers to CPUs of the allowed set; the calling thread is never bound
  int spin_us = 100;  // how long a worker spins for the next region before it parks
};

// One parallel region at a time; run() may be called from any one thread at a time, the caller works as worker 0.
class ThreadPool {
 public:
  // A pool of fewer threads (see size()) where the system cannot start all.
  static Result<std::unique_ptr<ThreadPool>> create(const ThreadPoolOptions& options);
  virtual ~ThreadPool() = default;

  virtual int size() const = 0;

  // Calls task(worker) once for each worker in [0, size()), and returns when all have returned.
  template <class F>
  void run(F&& task) {
    run_raw([](void* f, int worker) { (*static_cast<std::remove_reference_t<F>*>(f))(worker); },
            const_cast<void*>(static_cast<const void*>(&task)));
  }

  // Splits [0, n) into at most size() contiguous ranges of at least `grain` items, the same split every time, and calls
  // body(begin, end, worker). Runs on the caller alone when n <= grain.
  template <class F>
  void parallel_for(int64_t n, int64_t grain, F&& body) {
    if (n <= 0) return;
    const int64_t ranges = std::min<int64_t>(size(), ceil_div(n, grain));
    if (ranges <= 1) return body(int64_t{0}, n, 0);
    run([&](int worker) {
      if (worker < ranges) body(n * worker / ranges, n * (worker + 1) / ranges, worker);
    });
  }

 protected:
  virtual void run_raw(void (*task)(void*, int), void* context) = 0;
};

}  // namespace lathe::cpu
