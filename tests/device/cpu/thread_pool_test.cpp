// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace lathe::cpu {
namespace {

std::unique_ptr<ThreadPool> make_pool(ThreadPoolOptions options) {
  auto pool = ThreadPool::create(options);
  EXPECT_TRUE(pool);
  return pool ? std::move(*pool) : nullptr;
}

TEST(ThreadPool, CallsEveryWorkerOncePerRegion) {
  for (const int spin_us : {0, 50}) {
    const auto pool = make_pool({4, false, spin_us});
    ASSERT_EQ(pool->size(), 4);
    std::vector<int> calls(4);  // plain: each worker touches its own, and the region's end publishes it
    for (int region = 1; region <= 2000; ++region) {
      pool->run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
      for (const int count : calls) ASSERT_EQ(count, region);
    }
  }
}

TEST(ThreadPool, ParksAndWakes) {
  const auto pool = make_pool({3, true, 10});
  for (int region = 0; region < 30; ++region) {
    std::atomic<int> calls{0};
    pool->run([&](int) { ++calls; });
    EXPECT_EQ(calls, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(ThreadPool, WaitsForSlowWorkers) {
  const auto pool = make_pool({3, true, 10});
  std::vector<int> finished(3);
  for (int region = 0; region < 5; ++region) {
    pool->run([&](int worker) {
      if (worker > 0) std::this_thread::sleep_for(std::chrono::milliseconds(3 * worker));
      ++finished[static_cast<size_t>(worker)];
    });
    for (const int count : finished) EXPECT_EQ(count, region + 1);
  }
}

TEST(ThreadPool, ParallelForCoversTheRangeOnce) {
  const auto pool = make_pool({3, true, 50});
  for (const int64_t n : {0, 1, 2, 3, 7, 100, 1001})
    for (const int64_t grain : {1, 10, 1000}) {
      std::vector<int> hits(static_cast<size_t>(n));
      std::atomic<int> ranges{0};
      pool->parallel_for(n, grain, [&](int64_t begin, int64_t end, int worker) {
        ++ranges;
        EXPECT_LT(worker, 3);
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (const int hit : hits) EXPECT_EQ(hit, 1);
      EXPECT_LE(ranges, std::max<int64_t>(n > 0, (n + grain - 1) / grain));
    }
}

TEST(ThreadPool, OneThreadRunsOnTheCaller) {
  const auto pool = make_pool({1, true, 50});
  std::thread::id id;
  pool->run([&](int) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadPool, TwoPoolsServeTwoThreads) {
  std::vector<std::thread> threads;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      const auto pool = make_pool({2, true, 20});
      for (int region = 0; region < 500; ++region) pool->run([&](int) { ++total; });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, 2000);
}

TEST(ThreadPool, UsesNoCpuWhenIdle) {
  const auto pool = make_pool({4, true, 100});
  pool->run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto cpu_ms = [] { return static_cast<double>(clock()) * 1000 / CLOCKS_PER_SEC; };
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_ms() - before, 5);
}

TEST(ThreadPool, PinsWorkersInsideTheAllowedSet) {
  const std::vector<int> allowed = affinity_cpus();
  EXPECT_LE(allowed_cpus(), static_cast<int>(allowed.size()));
  const auto pool = make_pool({0, true, 50});
  EXPECT_EQ(pool->size(), allowed_cpus());
  std::vector<std::vector<int>> seen(static_cast<size_t>(pool->size()));
  pool->run([&](int worker) { seen[static_cast<size_t>(worker)] = affinity_cpus(); });
  EXPECT_EQ(seen[0], allowed) << "the caller is never bound";
  for (size_t worker = 1; worker < seen.size(); ++worker) {
    EXPECT_EQ(seen[worker].size(), 1u);
    EXPECT_TRUE(std::find(allowed.begin(), allowed.end(), seen[worker][0]) != allowed.end());
  }
}

TEST(ThreadPool, RespectsANarrowedAffinity) {
  std::thread([] {
    const std::vector<int> allowed = affinity_cpus();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(allowed.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_cpus(), 1);
    EXPECT_EQ(make_pool({})->size(), 1);
    const auto pool = make_pool({2, true, 10});
    pool->run([&](int) { EXPECT_EQ(affinity_cpus(), std::vector<int>{allowed.back()}); });
  }).join();
}

TEST(ThreadPool, RefusesSenselessOptions) {
  EXPECT_FALSE(ThreadPool::create({-1, true, 100}));
  EXPECT_FALSE(ThreadPool::create({1 << 20, true, 100}));
  EXPECT_FALSE(ThreadPool::create({2, true, -1}));
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// The sanitizers map more address space than this, and start threads of their own.
TEST(ThreadPool, WorksWithFewerThreadsWhenCloneFails) {
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t bytes =
        pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (6u << 20);  // beside stacks that are cached
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    const auto pool = ThreadPool::create({64, false, 10});
    if (!pool || (*pool)->size() >= 64) _exit(3);
    std::atomic<int> calls{0};
    (*pool)->run([&](int) { ++calls; });
    _exit(calls == (*pool)->size() ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThreadPool, AForkedChildRunsOnItsOneThread) {
  auto pool = make_pool({3, true, 50});
  pool->run([](int) {});
  const pid_t child = fork();
  if (child == 0) {
    int calls = 0;
    pool->run([&](int worker) { calls += 1 << worker; });
    pool.reset();
    _exit(calls == 7 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace lathe::cpu
