// SPDX-License-Identifier: Apache-2.0
#include "cluster_run.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace emulator {
namespace {

constexpr size_t kMaxSharedBytes = 227 << 10;
constexpr size_t kMaxArguments = 96;

constexpr const char* kInClusterWait = "in cluster_wait";
constexpr const char* kInPartBarrier = "in barrier of a part";
constexpr const char* kInPhaseWait = "in phase_barrier_wait";

thread_local ClusterRun* running = nullptr;

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

std::string ClusterRun::prepare(const Launch& launch) {
  if (launch.block == 0 || launch.block > kMaxThreads) return "a block has 1 to 1024 threads";
  if (launch.shared_bytes > kMaxSharedBytes) return "no device has that much shared memory for a block";
  if (launch.arguments.size() > kMaxArguments) return "too many arguments";
  if (launch.cluster == 0 || launch.cluster > kMaxCluster) return "1 to 128 blocks can run at once";
  if (launch.grid[0] % launch.cluster != 0) return "the grid does not divide into clusters";
  if (launch.cluster > 1 && launch.block % kWarpSize != 0) return "blocks of a cluster have whole warps";
  launch_ = &launch;
  while (blocks_.size() < launch.cluster) blocks_.push_back(std::make_unique<Block>());
  for (size_t i = 0; i < launch.cluster; ++i)
    if (!blocks_[i]->shared.allocate(launch.shared_bytes)) return "no memory for shared memory";
  while (threads_.size() < count()) threads_.push_back(std::make_unique<Thread>());
  for (size_t i = 0; i < count(); ++i)
    if (!threads_[i]->stack.allocate()) return "no memory for stacks";
  states_.resize(threads_.size());
  while (warps_.size() * kWarpSize < count()) warps_.push_back(std::make_unique<Warp>());
  error_.clear();
  waited_for_dependency_ = false;
  return {};
}

std::string ClusterRun::run(const Launch& launch) {
  if (std::string problem = prepare(launch); !problem.empty()) return problem;
  ClusterRun* const outer = std::exchange(running, this);
  bool descending = false;
  const auto width = static_cast<int>(launch.cluster);
  int first[3];
  for (first[2] = 0; first[2] < static_cast<int>(launch.grid[2]); ++first[2])
    for (first[1] = 0; first[1] < static_cast<int>(launch.grid[1]); ++first[1])
      for (first[0] = 0; first[0] < static_cast<int>(launch.grid[0]) && error_.empty(); first[0] += width) {
        start_cluster(first);
        run_threads(descending);
        if (error_.empty() && !waited_for_dependency_) error_ = "the kernel never called dependency_wait()";
        descending = !descending;
      }
  running = outer;
  return error_;
}

void ClusterRun::start_cluster(const int (&first)[3]) {
  cluster_arrived_ = cluster_rounds_ = 0;
  tensor_copies_.clear();
  for (size_t i = 0; i < launch_->cluster; ++i) {
    blocks_[i]->shared.spoil();
    blocks_[i]->arrived_of_part = 0;
    blocks_[i]->arrived = blocks_[i]->done = blocks_[i]->unfenced = 0;
  }
  for (auto& warp : warps_) {
    warp->arrived = 0;
    warp->generation = 0;
  }
  for (size_t i = 0; i < count(); ++i) start_thread(i, first);
}

void ClusterRun::start_thread(size_t index, const int (&first)[3]) {
  const unsigned(&grid)[3] = launch_->grid;
  const auto rank = static_cast<int>(index / launch_->block);
  Thread& thread = *threads_[index];
  thread.self = {static_cast<int>(index % launch_->block),
                 static_cast<int>(launch_->block),
                 {first[0] + rank, first[1], first[2]},
                 {static_cast<int>(grid[0]), static_cast<int>(grid[1]), static_cast<int>(grid[2])},
                 rank,
                 blocks_[static_cast<size_t>(rank)]->shared.data()};
  states_[index] = State::ready;
  thread.waits_for = nullptr;
  thread.arrived = 0;
  thread.copies.clear();
  thread.groups.clear();
  thread.unfenced.clear();
  thread.products.clear();
  thread.product_groups.clear();
  thread.stack.prepare(thread.resume, entry);
}

void ClusterRun::entry() {
  static constexpr auto kCallers = callers(std::make_index_sequence<kMaxArguments + 1>());
  ClusterRun& run = *running;
  kCallers.at[run.launch_->arguments.size()](run.launch_->function, run.launch_->arguments.data());
  Thread& thread = *run.threads_[run.current_];
  run.states_[run.current_] = State::done;
  switch_flow(thread.resume, run.scheduler_);
}

void ClusterRun::run_threads(bool descending) {
  size_t done = 0;
  while (done < count()) {
    bool progress = false;
    for (size_t i = 0; i < count(); ++i) {
      current_ = descending ? count() - 1 - i : i;
      if (states_[current_] != State::ready) continue;
      progress = true;
      switch_flow(scheduler_, threads_[current_]->resume);
      if (!error_.empty()) return;
      if (states_[current_] != State::done) continue;
      ++done;
      end_thread();
    }
    if (!progress) error_ = describe_deadlock();
    if (!error_.empty()) return;
  }
}

// The memory of a block whose threads are all done is gone: other blocks that still read it see NaN.
void ClusterRun::end_thread() {
  Block& block = own_block();
  if (++block.done < launch_->block) return;
  for (const TensorCopy& copy : tensor_copies_)
    if (copy.block == current_ / launch_->block) error_ = "a block ends before a copy to it arrives";
  if (const std::ptrdiff_t at = block.shared.find_overrun(); at >= 0)
    error_ = "a thread wrote " + std::to_string(at) + " bytes into the " + std::to_string(launch_->shared_bytes) +
             " bytes of shared memory";
  block.shared.spoil();
}

std::string ClusterRun::describe_deadlock() const {
  std::string text = "threads wait for each other for ever:";
  const char* last = nullptr;
  for (size_t i = 0; i < count(); ++i) {
    const char* what = states_[i] == State::done ? "at the end" : threads_[i]->waits_for;
    if (last && std::strcmp(last, what) == 0) continue;
    text += " from thread " + std::to_string(i) + " on " + what + ";";
    last = what;
  }
  return text;
}

void ClusterRun::wait(const char* what) {
  Thread& thread = *threads_[current_];
  states_[current_] = State::waiting;
  thread.waits_for = what;
  switch_flow(thread.resume, scheduler_);
  thread.waits_for = nullptr;
}

void ClusterRun::barrier() {
  Block& block = own_block();
  if (++block.arrived < launch_->block) return wait("in barrier");
  block.arrived = 0;
  const size_t first = current_ / launch_->block * launch_->block;
  for (size_t i = 0; i < launch_->block; ++i) states_[first + i] = State::ready;
}

void ClusterRun::part_barrier() {
  Block& block = own_block();
  if (++block.arrived_of_part < self().block_threads) return wait(kInPartBarrier);
  block.arrived_of_part = 0;
  const size_t first = current_ / launch_->block * launch_->block;
  for (size_t i = first; i < first + launch_->block; ++i)
    if (threads_[i]->waits_for == kInPartBarrier) states_[i] = State::ready;
}

void ClusterRun::cluster_arrive() {
  Thread& thread = *threads_[current_];
  if (thread.arrived != cluster_rounds_) fail("cluster_arrive() twice without cluster_wait()");
  ++thread.arrived;
  if (++cluster_arrived_ < count()) return;
  cluster_arrived_ = 0;
  ++cluster_rounds_;
  for (size_t i = 0; i < count(); ++i)
    if (threads_[i]->waits_for == kInClusterWait) states_[i] = State::ready;
}

void ClusterRun::cluster_wait() {
  if (threads_[current_]->arrived > cluster_rounds_) wait(kInClusterWait);
}

void* ClusterRun::peer(const void* shared, int rank) {
  if (!is_shared(shared, 1)) fail("the place of another block's memory is not in shared memory");
  if (rank < 0 || rank >= static_cast<int>(launch_->cluster)) fail("a cluster has no such block");
  const std::ptrdiff_t offset = static_cast<const unsigned char*>(shared) - own_block().shared.data();
  return blocks_[static_cast<size_t>(rank)]->shared.data() + offset;
}

WarpExchange& ClusterRun::collect(const char* what, const void* value, size_t bytes, Complete complete) {
  const size_t first = current_ / kWarpSize * kWarpSize;
  Warp& warp = *warps_[current_ / kWarpSize];
  WarpExchange& exchange = warp.exchange[warp.generation & 1];
  if (warp.arrived == 0) warp.what = what;
  if (warp.what != what && std::strcmp(warp.what, what) != 0)
    fail(std::string("lanes of a warp are in different operations: ") + warp.what + " and " + what);
  if (bytes) std::memcpy(exchange.values + (current_ - first) * kSlotBytes, value, bytes);
  if (++warp.arrived < kWarpSize) {
    wait(what);
    return exchange;
  }
  if (complete) complete(exchange);
  warp.arrived = 0;
  ++warp.generation;
  for (size_t i = 0; i < kWarpSize; ++i) states_[first + i] = State::ready;
  return exchange;
}

void ClusterRun::multiply_async(Product product, const unsigned* registers) {
  constexpr int kRows = 64;
  constexpr size_t kRegisterBytes = 16;
  if (!registers) check_panel(product.a, kRows);
  check_panel(product.b, product.columns);
  const WarpExchange& exchange = collect("wgmma", registers, registers ? kRegisterBytes : 0, nullptr);
  const size_t first_lane = current_ % kWarpSize / std::size(product.left) * std::size(product.left);
  for (size_t i = 0; registers && i < std::size(product.left); ++i)
    std::memcpy(product.left[i], exchange.values + (first_lane + i) * kSlotBytes, kRegisterBytes);
  threads_[current_]->products.push_back(product);
}

void ClusterRun::multiply_async_commit() {
  Thread& thread = *threads_[current_];
  thread.product_groups.push_back(std::exchange(thread.products, {}));
}

void ClusterRun::multiply_async_wait(int pending) {
  Thread& thread = *threads_[current_];
  for (; thread.product_groups.size() > static_cast<size_t>(pending); thread.product_groups.pop_front())
    for (const Product& product : thread.product_groups.front()) product.run(product);
  collect("wgmma_wait", nullptr, 0, nullptr);  // a warp's products are done together
}

PhaseBarrier& ClusterRun::phase_barrier(void* barrier) {
  if (!is_shared(barrier, sizeof(PhaseBarrier)) || reinterpret_cast<uintptr_t>(barrier) % sizeof(PhaseBarrier) != 0)
    fail("a phase barrier lies at a multiple of 8 bytes of shared memory");
  auto& found = *static_cast<PhaseBarrier*>(barrier);
  if (!found.is_valid()) fail("a phase barrier before phase_barrier_init()");
  return found;
}

void ClusterRun::wake_phase_waiters() {
  for (size_t i = 0; i < count(); ++i)
    if (threads_[i]->waits_for == kInPhaseWait) states_[i] = State::ready;
}

void ClusterRun::phase_barrier_init(void* barrier, int arrivals) {
  if (arrivals < 1 || arrivals > 0x7fff) fail("a phase barrier of that many arrivals");
  if (!is_shared(barrier, sizeof(PhaseBarrier))) fail("a phase barrier outside of shared memory");
  const auto count = static_cast<uint16_t>(arrivals);
  *static_cast<PhaseBarrier*>(barrier) = {count, count, 0, 0};
}

void ClusterRun::phase_barrier_arrive(void* barrier, int rank) {
  PhaseBarrier* at = &phase_barrier(barrier);
  if (rank >= 0) at = static_cast<PhaseBarrier*>(peer(barrier, rank));
  if (!at->is_valid()) fail("another block's phase barrier before its init, or after its end");
  if (at->pending == 0) fail("more arrivals at a phase barrier than it waits for");
  --at->pending;
  at->complete();
  wake_phase_waiters();
}

void ClusterRun::phase_barrier_expect(void* barrier, int bytes) {
  phase_barrier(barrier).bytes += bytes;
  phase_barrier_arrive(barrier, -1);
}

void ClusterRun::phase_barrier_wait(void* barrier, unsigned parity) {
  const PhaseBarrier& at = phase_barrier(barrier);
  for (;;) {
    deliver(at);
    if (at.parity != (parity & 1u)) return;
    wait(kInPhaseWait);
  }
}

void ClusterRun::deliver(const PhaseBarrier& barrier) {
  const auto is_due = [&](const TensorCopy& copy) { return copy.barrier == &barrier; };
  bool any = false;
  for (const TensorCopy& copy : tensor_copies_)
    if (is_due(copy)) emulator::arrive(copy), any = true;
  if (!any) return;
  std::erase_if(tensor_copies_, is_due);
  wake_phase_waiters();
}

void ClusterRun::copy_tensor(void* shared, const void* map, int rank, const int* at, void* barrier, unsigned peers) {
  const size_t bytes = bytes_of(map, rank), own = current_ / launch_->block;
  if (bytes == 0) fail("a copy by what is no tensor map");
  if (!is_shared(shared, bytes) || reinterpret_cast<uintptr_t>(shared) % 128 != 0)
    fail("a tensor's block must lie at a multiple of 128 bytes, within shared memory");
  phase_barrier(barrier);
  for (size_t i = 0; i < launch_->cluster; ++i) {
    if (peers == 0 ? i != own : (peers >> i & 1u) == 0) continue;
    TensorCopy copy{i, static_cast<unsigned char*>(peer(shared, static_cast<int>(i))),
                    static_cast<PhaseBarrier*>(peer(barrier, static_cast<int>(i))), map, bytes};
    std::copy(at, at + rank, copy.at);
    send(copy);
  }
  wake_phase_waiters();
}

void ClusterRun::send(const TensorCopy& copy) {
  if (!copy.barrier->is_valid()) fail("a copy to a block whose phase barrier is no more, or not yet");
  std::memset(copy.to, kPoison, copy.bytes);
  tensor_copies_.push_back(copy);
}

void ClusterRun::store_async(void* shared, const void* value, size_t bytes, void* barrier, int rank) {
  if (!is_shared(shared, bytes) || reinterpret_cast<uintptr_t>(shared) % bytes != 0)
    fail("a store to another block must be aligned, within shared memory");
  TensorCopy copy{static_cast<size_t>(rank), static_cast<unsigned char*>(peer(shared, rank)),
                  static_cast<PhaseBarrier*>(peer(barrier, rank)), nullptr, bytes};
  std::memcpy(copy.stored, value, bytes);
  send(copy);
  wake_phase_waiters();
}

// The fibers are left as they are: device code owns nothing.
void ClusterRun::fail(const std::string& message) {
  const lathe_emulated_thread& thread = self();
  error_ = "block (" + std::to_string(thread.block[0]) + ", " + std::to_string(thread.block[1]) + ", " +
           std::to_string(thread.block[2]) + "), thread " + std::to_string(thread.thread) + ": " + message;
  Resume abandoned{};
  switch_flow(abandoned, scheduler_);
  __builtin_unreachable();
}

// A handler may not allocate, and sanitizers hold all that follows a handler that never returned to be part of it.
void ClusterRun::fault(const void* address, void* signal_context) {
  faulted_ = address;
  threads_[current_]->stack.redirect(signal_context, report_fault);
}

void ClusterRun::report_fault() {
  ClusterRun& run = *running;
  const auto* byte = static_cast<const unsigned char*>(run.faulted_);
  if (run.threads_[run.current_]->stack.is_guard(byte)) run.fail("the stack overflows");
  for (unsigned i = 0; i < run.launch_->cluster; ++i)
    if (const SharedMemory& shared = run.blocks_[i]->shared; shared.is_near(byte))
      run.fail("access at " + std::to_string(byte - shared.data()) + " of " +
               std::to_string(run.launch_->shared_bytes) + " bytes of shared memory");
  run.fail("access to an invalid address");
}

}  // namespace emulator
