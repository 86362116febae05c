// SPDX-License-Identifier: Apache-2.0
#include "block_run.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace emulator {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSharedAlignment = 1024;
constexpr size_t kMaxSharedBytes = 227 << 10;
constexpr unsigned char kPoison = 0xff;  // floats of it are NaN
constexpr size_t kMaxArguments = 96;

thread_local BlockRun* running = nullptr;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

template <size_t... I>
void call(void* function, const uint64_t* arguments, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype(I, uint64_t{})...)>(function)(arguments[I]...);
}
using Caller = void (*)(void*, const uint64_t*);
template <size_t... N>
constexpr auto callers(std::index_sequence<N...>) {
  struct Table {
    Caller at[sizeof...(N)];
  };
  return Table{
      {[](void* function, const uint64_t* arguments) { call(function, arguments, std::make_index_sequence<N>()); }...}};
}

}  // namespace

BlockRun::~BlockRun() {
  if (mapping_) munmap(mapping_, mapping_bytes_);
}

bool BlockRun::map_shared(size_t bytes) {
  const size_t pages = round_up(bytes, kPage);
  if (mapping_bytes_ != pages + 2 * kPage) {
    if (mapping_) munmap(mapping_, mapping_bytes_);
    mapping_ = nullptr;
    mapping_bytes_ = pages + 2 * kPage;
    void* memory = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    mapping_ = static_cast<unsigned char*>(memory);
    if (pages && mprotect(mapping_ + kPage, pages, PROT_READ | PROT_WRITE) != 0) return false;
  }
  shared_ = mapping_ + kPage + pages - round_up(bytes, kSharedAlignment);
  return true;
}

std::string BlockRun::prepare(const Launch& launch) {
  if (launch.block == 0 || launch.block > kMaxThreads) return "a block has 1 to 1024 threads";
  if (launch.shared_bytes > kMaxSharedBytes) return "no device has that much shared memory for a block";
  if (launch.arguments.size() > kMaxArguments) return "too many arguments";
  if (!map_shared(launch.shared_bytes)) return "no memory for shared memory";
  while (threads_.size() < launch.block) threads_.push_back(std::make_unique<Thread>());
  for (size_t i = 0; i < launch.block; ++i)
    if (!threads_[i]->stack.allocate()) return "no memory for stacks";
  while (warps_.size() * kWarpSize < launch.block) warps_.push_back(std::make_unique<Warp>());
  launch_ = &launch;
  error_.clear();
  waited_for_dependency_ = false;
  return {};
}

std::string BlockRun::run(const Launch& launch) {
  if (std::string problem = prepare(launch); !problem.empty()) return problem;
  BlockRun* const outer = std::exchange(running, this);
  bool descending = false;
  int block[3];
  for (block[2] = 0; block[2] < static_cast<int>(launch.grid[2]); ++block[2])
    for (block[1] = 0; block[1] < static_cast<int>(launch.grid[1]); ++block[1])
      for (block[0] = 0; block[0] < static_cast<int>(launch.grid[0]) && error_.empty(); ++block[0]) {
        start_block(block);
        run_threads(descending);
        if (error_.empty()) check_end();
        descending = !descending;
      }
  running = outer;
  return error_;
}

void BlockRun::start_block(const int (&block)[3]) {
  const unsigned(&grid)[3] = launch_->grid;
  std::memset(mapping_ + kPage, kPoison, mapping_bytes_ - 2 * kPage);
  barrier_arrived_ = 0;
  for (auto& warp : warps_) {
    warp->arrived = 0;
    warp->generation = 0;
  }
  for (size_t i = 0; i < launch_->block; ++i) {
    Thread& thread = *threads_[i];
    thread.self = {static_cast<int>(i),
                   static_cast<int>(launch_->block),
                   {block[0], block[1], block[2]},
                   {static_cast<int>(grid[0]), static_cast<int>(grid[1]), static_cast<int>(grid[2])},
                   shared_};
    thread.state = Thread::ready;
    thread.uncommitted.clear();
    thread.groups.clear();
    thread.stack.prepare(thread.resume, entry);
  }
}

void BlockRun::entry() {
  static constexpr auto kCallers = callers(std::make_index_sequence<kMaxArguments + 1>());
  BlockRun& run = *running;
  kCallers.at[run.launch_->arguments.size()](run.launch_->function, run.launch_->arguments.data());
  Thread& thread = *run.threads_[run.current_];
  thread.state = Thread::done;
  switch_flow(thread.resume, run.scheduler_);
}

void BlockRun::run_threads(bool descending) {
  const size_t count = launch_->block;
  size_t done = 0;
  while (done < count) {
    bool progress = false;
    for (size_t i = 0; i < count; ++i) {
      current_ = descending ? count - 1 - i : i;
      Thread& thread = *threads_[current_];
      if (thread.state != Thread::ready) continue;
      progress = true;
      switch_flow(scheduler_, thread.resume);
      if (!error_.empty()) return;
      if (thread.state == Thread::done) ++done;
    }
    if (!progress) {
      error_ = describe_deadlock();
      return;
    }
  }
}

void BlockRun::check_end() {
  if (!waited_for_dependency_) error_ = "the kernel never called dependency_wait()";
  const unsigned char* end = mapping_ + mapping_bytes_ - kPage;
  for (const unsigned char* byte = shared_ + launch_->shared_bytes; byte < end; ++byte)
    if (*byte != kPoison) {
      error_ = "a thread wrote " + std::to_string(byte - shared_) + " bytes into the " +
               std::to_string(launch_->shared_bytes) + " bytes of shared memory";
      return;
    }
}

std::string BlockRun::describe_deadlock() const {
  std::string text = "threads wait for each other for ever:";
  const char* last = nullptr;
  for (size_t i = 0; i < launch_->block; ++i) {
    const char* what = threads_[i]->state == Thread::done ? "at the end" : threads_[i]->waits_for;
    if (last && std::strcmp(last, what) == 0) continue;
    text += " from thread " + std::to_string(i) + " on " + what + ";";
    last = what;
  }
  return text;
}

void BlockRun::wait(const char* what) {
  Thread& thread = *threads_[current_];
  thread.state = Thread::waiting;
  thread.waits_for = what;
  switch_flow(thread.resume, scheduler_);
}

void BlockRun::barrier() {
  if (++barrier_arrived_ < static_cast<int>(launch_->block)) return wait("in barrier");
  barrier_arrived_ = 0;
  for (size_t i = 0; i < launch_->block; ++i) threads_[i]->state = Thread::ready;
}

WarpExchange& BlockRun::collect(const char* what, const void* value, size_t bytes, Complete complete) {
  const size_t first = current_ / kWarpSize * kWarpSize;
  Warp& warp = *warps_[current_ / kWarpSize];
  WarpExchange& exchange = warp.exchange[warp.generation & 1];
  if (warp.arrived == 0) warp.what = what;
  if (std::strcmp(warp.what, what) != 0)
    fail(std::string("lanes of a warp are in different operations: ") + warp.what + " and " + what);
  if (bytes) std::memcpy(exchange.values + (current_ - first) * kSlotBytes, value, bytes);
  if (++warp.arrived < kWarpSize) {
    wait(what);
    return exchange;
  }
  if (complete) complete(exchange);
  warp.arrived = 0;
  ++warp.generation;
  for (size_t i = 0; i < kWarpSize; ++i) threads_[first + i]->state = Thread::ready;
  return exchange;
}

bool BlockRun::is_shared(const void* address, size_t bytes) const {
  const auto* byte = static_cast<const unsigned char*>(address);
  return byte >= shared_ && byte + bytes <= shared_ + launch_->shared_bytes;
}

// The destination is spoilt at once and written at the wait: whoever reads too early, and whoever still needed what
// was there, sees NaN.
void BlockRun::copy_async(void* shared, const void* global, int bytes, int bytes_valid) {
  if (!is_shared(shared, static_cast<size_t>(bytes))) fail("asynchronous copy to outside of shared memory");
  if (reinterpret_cast<uintptr_t>(shared) % static_cast<size_t>(bytes) != 0 ||
      (bytes_valid > 0 && reinterpret_cast<uintptr_t>(global) % static_cast<size_t>(bytes) != 0))
    fail("asynchronous copy of misaligned addresses");
  if (bytes_valid < 0 || bytes_valid > bytes) fail("asynchronous copy of less than no or more than all bytes");
  std::memset(shared, kPoison, static_cast<size_t>(bytes));
  threads_[current_]->uncommitted.push_back({shared, global, bytes, bytes_valid});
}

void BlockRun::copy_async_commit() {
  Thread& thread = *threads_[current_];
  thread.groups.push_back(std::exchange(thread.uncommitted, {}));
}

void BlockRun::copy_async_wait(int pending) {
  Thread& thread = *threads_[current_];
  for (; thread.groups.size() > static_cast<size_t>(pending); thread.groups.pop_front())
    for (const Copy& copy : thread.groups.front()) {
      std::memset(copy.to, 0, static_cast<size_t>(copy.bytes));
      if (copy.valid) std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.valid));
    }
}

// The fibers are left as they are: device code owns nothing.
void BlockRun::fail(const std::string& message) {
  const lathe_emulated_thread& thread = self();
  error_ = "block (" + std::to_string(thread.block[0]) + ", " + std::to_string(thread.block[1]) + ", " +
           std::to_string(thread.block[2]) + "), thread " + std::to_string(thread.thread) + ": " + message;
  Resume abandoned{};
  switch_flow(abandoned, scheduler_);
  __builtin_unreachable();
}

// A handler may not allocate, and sanitizers hold all that follows a handler that never returned to be part of it.
void BlockRun::fault(const void* address, void* signal_context) {
  faulted_ = address;
  threads_[current_]->stack.redirect(signal_context, report_fault);
}

void BlockRun::report_fault() {
  BlockRun& run = *running;
  const auto* byte = static_cast<const unsigned char*>(run.faulted_);
  if (run.threads_[run.current_]->stack.is_guard(byte)) run.fail("the stack overflows");
  if (byte >= run.mapping_ && byte < run.mapping_ + run.mapping_bytes_)
    run.fail("access at " + std::to_string(byte - run.shared_) + " of " + std::to_string(run.launch_->shared_bytes) +
             " bytes of shared memory");
  run.fail("access to an invalid address");
}

}  // namespace emulator
