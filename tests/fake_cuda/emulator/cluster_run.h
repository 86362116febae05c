// SPDX-License-Identifier: Apache-2.0
// Runs the clusters of a launch one after the other, the threads of their blocks as fibers. Threads run until they wait
// for others; even clusters start them in ascending order, odd ones in descending order, so that a missing barrier
// shows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fiber.h"
#include "shared_memory.h"
#include "tensor_copies.h"

struct lathe_emulated_thread {
  int thread, block_threads;
  int block[3], grid[3];
  int cluster_rank;
  unsigned char* shared;
};

namespace emulator {

constexpr int kWarpSize = 32;
constexpr size_t kSlotBytes = 64;  // of a lane's value in a warp operation
constexpr size_t kMaxThreads = 1024;
constexpr unsigned kMaxCluster = 128;  // more than clusters have: blocks of a launch that runs at once are one

struct Launch {
  void* function;
  unsigned grid[3];
  unsigned block;
  unsigned shared_bytes;
  unsigned cluster;  // blocks, along x
  std::vector<uint64_t> arguments;
};

// What the lanes of a warp give each other, and what the last one to arrive makes of it.
struct WarpExchange {
  unsigned char values[kWarpSize * kSlotBytes];
  unsigned char result[512];
};
using Complete = void (*)(WarpExchange&);

// An operand of wgmma in shared memory, as lib/warpgroup.cuh says.
struct PanelView {
  const void* start;
  int mn_major, panel_bytes;
};

// A thread's part of an asynchronous product of a warpgroup.
struct Product {
  const char* type;
  int columns;
  bool keep;  // the sums that there are
  void* sums;
  PanelView a, b;
  int thread;
  unsigned left[kWarpSize / 8][4];  // where `a` has no start: the registers of the four lanes that share the rows
  void (*run)(const Product&);
};

class ClusterRun {
 public:
  // Empty when all blocks ran to their end.
  std::string run(const Launch& launch);

  // Called on the fiber of the thread that runs.
  const lathe_emulated_thread& self() const { return threads_[current_]->self; }
  void barrier();
  // The threads before `threads` are the block's, to the part that begins.
  void begin_part(int threads) { threads_[current_]->self.block_threads = threads; }
  void part_barrier();
  void cluster_arrive();
  void cluster_wait();
  // The same place in the shared memory of another block of the cluster.
  void* peer(const void* shared, int rank);
  WarpExchange& collect(const char* what, const void* value, size_t bytes, Complete complete);
  void copy_async(void* shared, const void* global, int bytes, int bytes_valid);
  void copy_async_commit();
  void copy_async_wait(int pending);
  // Products are computed at the wait, from what shared memory holds then.
  // `registers`: four that hold the left operand; null = it lies in shared memory.
  void multiply_async(Product product, const unsigned* registers);
  void multiply_async_commit();
  void multiply_async_wait(int pending);
  void phase_barrier_init(void* barrier, int arrivals);
  void phase_barrier_arrive(void* barrier, int rank);  // of another block; -1 = of its own
  void phase_barrier_expect(void* barrier, int bytes);
  void phase_barrier_wait(void* barrier, unsigned parity);
  void copy_tensor(void* shared, const void* map, int rank, const int* at, void* barrier, unsigned peers);
  void store_async(void* shared, const void* value, size_t bytes, void* barrier, int rank);
  void matrix_units_fence() { fence(current_); }
  void dependency_wait() { waited_for_dependency_ = true; }
  [[noreturn]] void fail(const std::string& message);
  // For the handler of a signal: the fiber reports the fault in place of going on.
  void fault(const void* address, void* signal_context);
  bool is_shared(const void* address, size_t bytes) const { return own_block().shared.holds(address, bytes); }

 private:
  using Bytes = std::pair<const unsigned char*, size_t>;
  struct Copy {
    void* to;
    const void* from;
    int bytes, valid;
  };
  enum class State : unsigned char { ready, waiting, done };
  struct Thread {
    lathe_emulated_thread self;
    FiberStack stack;
    Resume resume{};
    const char* waits_for = nullptr;
    unsigned arrived = 0;         // how often at the cluster's barrier
    std::vector<Copy> copies;     // on their way: those of each group, then those of none yet
    std::vector<size_t> groups;   // how many copies each has
    std::vector<Bytes> unfenced;  // what copies wrote that the matrix units may not see yet
    const unsigned char *unfenced_begin = nullptr, *unfenced_end = nullptr;  // no byte of these lies outside
    std::vector<Product> products;
    std::deque<std::vector<Product>> product_groups;
  };
  struct Block {
    SharedMemory shared;
    size_t arrived = 0;       // at its barrier
    int arrived_of_part = 0;  // at that of the part that runs
    size_t done = 0;
    size_t unfenced = 0;  // threads that have something unfenced
  };
  struct Warp {
    int arrived = 0;
    unsigned generation = 0;
    const char* what = nullptr;
    WarpExchange exchange[2];
  };

  std::string prepare(const Launch& launch);
  void start_cluster(const int (&first)[3]);
  void start_thread(size_t index, const int (&first)[3]);
  void run_threads(bool descending);
  void end_thread();
  size_t count() const { return size_t{launch_->block} * launch_->cluster; }
  Block& own_block() const { return *blocks_[current_ / launch_->block]; }
  void wait(const char* what);
  void fence(size_t index);
  void note_unfenced(const unsigned char* to, size_t bytes);
  static Bytes panel_bytes(const PanelView& panel, int outer);  // that are read of so many rows
  void check_panel(const PanelView& panel, int outer);
  PhaseBarrier& phase_barrier(void* barrier);
  void deliver(const PhaseBarrier& barrier);
  void send(const TensorCopy& copy);
  void wake_phase_waiters();
  std::string describe_deadlock() const;
  static void entry();
  static void report_fault();

  const Launch* launch_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;    // of the cluster
  std::vector<std::unique_ptr<Thread>> threads_;  // of all of them
  std::vector<State> states_;  // of each thread: beside each other, for the scheduler goes through them
  std::vector<std::unique_ptr<Warp>> warps_;
  size_t current_ = 0;
  size_t cluster_arrived_ = 0;
  unsigned cluster_rounds_ = 0;  // how often all have arrived
  bool waited_for_dependency_ = false;
  std::vector<TensorCopy> tensor_copies_;  // on their way
  std::string error_;
  const void* faulted_ = nullptr;
  Resume scheduler_{};
};

}  // namespace emulator
