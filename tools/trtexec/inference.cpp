// SPDX-License-Identifier: Apache-2.0
#include "trtexec/inference.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

namespace lathe::trtexec {
namespace {

std::atomic<bool> interrupted{false};

// While this lives, the first interrupt ends measuring; the second one, the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ {};
};

bool goes_on(int done, const RunLimits& limits, const Timebase& base) {
  if (interrupted) return false;
  return done < limits.iterations || limits.seconds < 0 || base.milliseconds() < limits.seconds * 1e3;
}

// Each stream has as many queries under way as it takes; all of them get their turn.
void run_in_turn(const std::vector<QueryStream*>& streams, const RunLimits& limits, const Timebase& base,
                 std::vector<QueryTimes>& times) {
  std::vector<size_t> under_way(streams.size(), 0);
  const auto finish = [&](size_t i) {
    times.push_back(streams[i]->finish(base));
    --under_way[i];
  };
  for (int done = 0; goes_on(done, limits, base); ++done) {
    for (size_t i = 0; i < streams.size(); ++i) {
      if (under_way[i] == streams[i]->depth()) finish(i);
      streams[i]->enqueue(base);
      ++under_way[i];
    }
    if (limits.idle_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(limits.idle_ms));
  }
  for (size_t i = 0; i < streams.size(); ++i)
    while (under_way[i]) finish(i);
}

}  // namespace

RunTrace run_queries(const std::vector<std::unique_ptr<QueryStream>>& streams, const RunLimits& limits) {
  const InterruptGuard guard;
  const std::unique_ptr<Timebase> base = streams.front()->begin();
  RunTrace trace;
  std::vector<QueryStream*> all;
  for (const auto& stream : streams) all.push_back(stream.get());
  if (limits.sleep_ms > 0)
    for (QueryStream* stream : all) stream->delay(limits.sleep_ms);
  if (!limits.thread_each || all.size() == 1) {
    run_in_turn(all, limits, *base, trace.queries);
  } else {
    std::mutex mutex;
    std::exception_ptr failure;
    std::vector<std::thread> threads;
    for (QueryStream* stream : all)
      threads.emplace_back([&, stream] {
        std::vector<QueryTimes> times;
        try {
          const std::unique_ptr<GpuContext> current =
              limits.calls ? std::make_unique<GpuContext>(*limits.calls, limits.ordinal) : nullptr;
          run_in_turn({stream}, limits, *base, times);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        trace.queries.insert(trace.queries.end(), times.begin(), times.end());
      });
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    std::stable_sort(trace.queries.begin(), trace.queries.end(), [](const QueryTimes& a, const QueryTimes& b) {
      return std::max(a.compute_end, a.d2h_end) < std::max(b.compute_end, b.d2h_end);
    });
  }
  trace.seconds = base->milliseconds() / 1e3;
  return trace;
}

}  // namespace lathe::trtexec
