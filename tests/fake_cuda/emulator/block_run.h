// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a launch one after the other, the threads of a block as fibers. Threads run until they wait for
// others; even blocks start them in ascending order, odd ones in descending order, so that a missing barrier shows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fiber.h"

struct lathe_emulated_thread {
  int thread, block_threads;
  int block[3], grid[3];
  unsigned char* shared;
};

namespace emulator {

constexpr int kWarpSize = 32;
constexpr size_t kSlotBytes = 64;  // of a lane's value in a warp operation
constexpr size_t kMaxThreads = 1024;

struct Launch {
  void* function;
  unsigned grid[3];
  unsigned block;
  unsigned shared_bytes;
  std::vector<uint64_t> arguments;
};

// What the lanes of a warp give each other, and what the last one to arrive makes of it.
struct WarpExchange {
  unsigned char values[kWarpSize * kSlotBytes];
  unsigned char result[512];
};
using Complete = void (*)(WarpExchange&);

class BlockRun {
 public:
  ~BlockRun();
  // Empty when all blocks ran to their end.
  std::string run(const Launch& launch);

  // Called on the fiber of the thread that runs.
  const lathe_emulated_thread& self() const { return threads_[current_]->self; }
  void barrier();
  WarpExchange& collect(const char* what, const void* value, size_t bytes, Complete complete);
  void copy_async(void* shared, const void* global, int bytes, int bytes_valid);
  void copy_async_commit();
  void copy_async_wait(int pending);
  void dependency_wait() { waited_for_dependency_ = true; }
  [[noreturn]] void fail(const std::string& message);
  // For the handler of a signal: the fiber reports the fault in place of going on.
  void fault(const void* address, void* signal_context);
  bool is_shared(const void* address, size_t bytes) const;

 private:
  struct Copy {
    void* to;
    const void* from;
    int bytes, valid;
  };
  struct Thread {
    lathe_emulated_thread self;
    FiberStack stack;
    Resume resume{};
    enum State { ready, waiting, done } state = done;
    const char* waits_for = nullptr;
    std::vector<Copy> uncommitted;
    std::deque<std::vector<Copy>> groups;
  };
  struct Warp {
    int arrived = 0;
    unsigned generation = 0;
    const char* what = nullptr;
    WarpExchange exchange[2];
  };

  std::string prepare(const Launch& launch);
  bool map_shared(size_t bytes);
  void start_block(const int (&block)[3]);
  void run_threads(bool descending);
  void check_end();
  void wait(const char* what);
  std::string describe_deadlock() const;
  static void entry();
  static void report_fault();

  const Launch* launch_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Warp>> warps_;
  size_t current_ = 0;
  int barrier_arrived_ = 0;
  bool waited_for_dependency_ = false;
  std::string error_;
  const void* faulted_ = nullptr;
  Resume scheduler_{};
  unsigned char* mapping_ = nullptr;  // guard page, pages of shared memory, guard page
  size_t mapping_bytes_ = 0;
  unsigned char* shared_ = nullptr;
};

}  // namespace emulator
