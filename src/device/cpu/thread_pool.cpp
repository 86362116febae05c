// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <new>
#include <vector>

#include "base/processors.h"

namespace lathe::cpu {
namespace {

constexpr int kMaxThreads = 4096;
constexpr size_t kStackBytes = size_t{2} << 20;

using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == sizeof(uint32_t));

void futex_wait(Word& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(Word& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Spins until done() or until `limit` has passed; returns whether done().
template <class Done>
bool spin_until(std::chrono::microseconds limit, Done&& done) {
  constexpr int kPausesPerClock = 32;
  std::chrono::steady_clock::time_point deadline{};
  while (true) {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (done()) return true;
      pause_cpu();
    }
    const auto now = std::chrono::steady_clock::now();
    if (deadline == std::chrono::steady_clock::time_point{}) deadline = now + limit;
    if (now >= deadline) return false;
  }
}

// A forked child has none of the parent's workers; pools notice by this count.
std::atomic<uint32_t> forks{0};
void count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
}

void pin_to(pthread_t thread, int cpu) {
  cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpu) + 1);
  if (!set) return;
  const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpu) + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  // A CPU that went offline meanwhile leaves the worker unpinned, which is only slower.
  static_cast<void>(pthread_setaffinity_np(thread, bytes, set));
  CPU_FREE(set);
}

class PinnedPool final : public ThreadPool {
 public:
  PinnedPool(int spin_us, size_t workers) : spin_(spin_us) { workers_.reserve(workers); }
  ~PinnedPool() override;

  int size() const override { return static_cast<int>(workers_.size()) + 1; }
  // Returns 0 or an error number.
  int add_worker(int cpu);

 protected:
  void run_raw(void (*task)(void*, int), void* context) override;

 private:
  struct Worker {
    PinnedPool* pool;
    int index;
    pthread_t thread;
  };

  static void* enter(void* worker);
  void work(int index);
  uint32_t wait_for_region(uint32_t seen);
  void wait_for_workers();

  // Written by the caller, read by all.
  alignas(64) Word generation_{0};  // one more for each region
  void (*task_)(void*, int) = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  // Written by the workers.
  alignas(64) Word done_{0};  // workers that finished the region
  alignas(64) Word parked_{0};
  Word caller_parked_{0};

  alignas(64) const std::chrono::microseconds spin_;
  const uint32_t forks_at_start_ = forks.load(std::memory_order_relaxed);
  std::vector<std::unique_ptr<Worker>> workers_;
};

int PinnedPool::add_worker(int cpu) {
  auto worker = std::make_unique<Worker>(Worker{this, size(), {}});
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes)) return error;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // The host's signals are for the host's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&worker->thread, &attributes, enter, worker.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error) return error;
  if (cpu >= 0) pin_to(worker->thread, cpu);
  char name[16];
  std::snprintf(name, sizeof name, "lathe-%d", worker->index);
  pthread_setname_np(worker->thread, name);
  workers_.push_back(std::move(worker));
  return 0;
}

PinnedPool::~PinnedPool() {
  if (forks.load(std::memory_order_relaxed) != forks_at_start_) return;  // the workers exist in the parent only
  stop_ = true;
  generation_.fetch_add(1);
  futex_wake(generation_, INT_MAX);
  for (const auto& worker : workers_) pthread_join(worker->thread, nullptr);
}

void* PinnedPool::enter(void* worker) {
  const Worker& self = *static_cast<Worker*>(worker);
  self.pool->work(self.index);
  return nullptr;
}

void PinnedPool::work(int index) {
  for (uint32_t seen = 0;;) {
    seen = wait_for_region(seen);
    if (stop_) return;
    task_(context_, index);
    // Sequentially consistent, as is the caller's side: one of the two sees the other.
    done_.fetch_add(1);
    if (caller_parked_.load()) futex_wake(done_, 1);
  }
}

uint32_t PinnedPool::wait_for_region(uint32_t seen) {
  const auto begun = [&] { return generation_.load(std::memory_order_acquire) != seen; };
  if (!spin_until(spin_, begun)) {
    parked_.fetch_add(1);
    while (generation_.load() == seen) futex_wait(generation_, seen);
    parked_.fetch_sub(1);
  }
  return generation_.load(std::memory_order_acquire);
}

void PinnedPool::wait_for_workers() {
  const auto workers = static_cast<uint32_t>(workers_.size());
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == workers; };
  // Spinning on is right while the workers run, and wrong when one of them lost its CPU: parking gives it ours.
  if (spin_until(spin_, finished)) return;
  caller_parked_.store(1);
  for (uint32_t done; (done = done_.load()) != workers;) futex_wait(done_, done);
  caller_parked_.store(0);
}

void PinnedPool::run_raw(void (*task)(void*, int), void* context) {
  if (workers_.empty()) return task(context, 0);
  if (forks.load(std::memory_order_relaxed) != forks_at_start_) {
    for (int worker = 0; worker < size(); ++worker) task(context, worker);
    return;
  }
  task_ = task;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1);
  if (parked_.load()) futex_wake(generation_, INT_MAX);
  task(context, 0);
  wait_for_workers();
}

// Workers start at the CPU after the caller's, so that none is bound to the CPU that the caller works on.
std::vector<int> worker_cpus(size_t workers) {
  std::vector<int> cpus = affinity_cpus();
  if (workers >= cpus.size()) return std::vector<int>(workers, -1);  // more threads than CPUs: let the kernel balance
  const int current = sched_getcpu();
  const auto own = std::find(cpus.begin(), cpus.end(), current);
  if (own != cpus.end()) std::rotate(cpus.begin(), own + 1, cpus.end());
  cpus.resize(workers);
  return cpus;
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(const ThreadPoolOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads || options.spin_us < 0)
    return fail(ErrorCode::invalid_argument,
                "thread pool: {} threads and a spin of {} us; 0 to {} threads and a spin "
                "of 0 us or more are allowed",
                options.threads, options.spin_us, kMaxThreads);
  count_forks();
  const int threads = options.threads > 0 ? options.threads : std::min(allowed_cpus(), kMaxThreads);
  const auto workers = static_cast<size_t>(threads) - 1;
  const std::vector<int> cpus = options.pin ? worker_cpus(workers) : std::vector<int>(workers, -1);
  std::unique_ptr<PinnedPool> pool(new (std::nothrow) PinnedPool(options.spin_us, workers));
  if (!pool) return fail(ErrorCode::out_of_memory, "thread pool: no memory for {} threads", threads);
  // Where no more threads can be started, size() says how many there are; the caller alone always works.
  for (const int cpu : cpus)
    if (pool->add_worker(cpu)) break;
  return pool;
}

}  // namespace lathe::cpu
