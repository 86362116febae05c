// SPDX-License-Identifier: Apache-2.0
// An execution context: the mutable state of running an engine. One thread at a time; make one context per thread.
#pragma once

#include "ops/random_seed.h"
#include "runtime/execution.h"
#include "runtime/kernel_choice.h"
#include "runtime/known_sizes.h"
#include "runtime/replay.h"

namespace lathe {

// Which runs are replayed from a graph that is captured, where the device has such: those that repeat the sizes and
// addresses of the last one; none; or all, from the second run on with the same sizes and addresses, of several such.
enum class GraphPolicy : uint8_t { of_repeated_runs, none, of_each_run };

// Owns the parts of a run and calls them in their order: shapes are bound (ShapeBinding), memory is provided
// (ContextMemory, Staging), and the steps are given to a queue (Execution) or replayed (Replay), behind the work of the
// last run (PendingWork). Holds its engine alive.
class Context {
 public:
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Engine> engine,
                                                 MemoryPolicy policy = MemoryPolicy::on_demand,
                                                 KernelCache* cache = nullptr);  // of Engine::make_kernels()
  ~Context();  // waits for the work that it has given to streams

  const Engine& engine() const { return *engine_; }
  size_t profile() const { return shapes_.profile(); }
  Result<> set_profile(size_t profile);  // a change forgets the shapes of inputs that have dynamic dimensions

  // Dims of input binding `i`; checked against the profile.
  Result<> set_input_dims(size_t i, std::span<const int64_t> dims) { return shapes_.set_input_dims(i, dims); }
  // Address of binding `i`: memory of the application's that holds the tensor, dense and row-major, until the work is
  // done. It may be of the device or of the host; a GPU then works on a copy. Shape inputs lie in host memory and are
  // read at the start of each run: other values than last time set all shapes anew.
  Result<> set_address(size_t i, void* address);
  void* address(size_t i) const { return staging_.address(i); }
  Result<> set_output_allocator(size_t i, OutputAllocator allocator);

  // Names of inputs whose dims are not set (or shape inputs without an address).
  std::vector<std::string> missing_shapes() const { return shapes_.missing(staging_.addresses()); }
  // Current dims of binding `i`; -1 for what is not known (yet).
  Dims dims(size_t i) const { return shapes_.dims(i); }
  Dims tensor_dims(plan::TensorId id) const { return shapes_.tensor_dims(id); }  // empty while the shapes are not set
  int64_t largest(const Expr& number) const { return shapes_.largest(number); }  // see ShapeBinding
  size_t bytes(size_t i) const { return shapes_.bytes(i); }  // of its tensor under the current shapes; 0 when unknown

  // Bytes of activations and scratch that the current shapes need. Works all sizes out if shapes changed.
  Result<size_t> memory_bytes();
  // Memory of the application's, of policy `user` only; aligned to Engine::alignment(), and valid until the work is
  // done. Null takes it away. Engine::memory_limit() bytes are enough for all shapes of a profile. A change waits for
  // the work that uses the former memory, which is then the application's again.
  Result<> set_memory(void* memory, size_t bytes) { return memory_.set(memory, bytes); }

  // Of the arena, what stays in the part of the device's cache that is set aside; 0 = nothing does.
  void set_cached_bytes(size_t bytes) {
    cached_bytes_ = bytes;
    replay_.forget();
  }

  // Before the first run. GraphPolicy::of_each_run takes the memory that graphs of the profile's sizes need.
  void set_graphs(GraphPolicy policy);
  // Likewise. Nothing is specialised unless this says so.
  void set_specialization(SpecializationPolicy policy, Specializer::Client client) {
    kernels_.set_policy(policy, std::move(client));
  }
  // Whether the caller can capture the next run: all sizes and addresses of memory are known before it, and the device
  // does everything.
  Result<bool> is_capturable();

  // The application's streams for the engine's first auxiliary ones, from the next run on, which must outlive it; for
  // the others the context has its own.
  void set_auxiliary_streams(std::vector<void*> streams);

  // As ContextMemory::set_temporaries().
  Result<> set_temporaries(std::shared_ptr<Device> from);

  // Binds shapes if they changed, then executes every step. Outputs are complete on return.
  Result<> run();
  // The same on a stream of the application (CUDA), on which the outputs become complete; on a CPU, run(). Returns
  // before the work is done unless some tensor lies in host memory or some step runs on the host. Runs of one context
  // follow each other, on whatever streams they are, for they use the same memory.
  Result<> enqueue(void* stream);

  RunHooks hooks;

 private:
  enum class Return { at_once, when_done };

  Context(std::shared_ptr<const Engine> engine, PendingWork work, std::unique_ptr<WeightStream> weights,
          MemoryPolicy policy);
  Result<> prepare(const Queue* queue = nullptr);  // of the run that it is for, if any
  Result<> place(const KnownSizes::Entry* known);
  Result<> choose_kernels(const Queue& queue);
  Result<> execute(Queue& queue, Return returns);
  void reserve_graphs() const;
  Result<> give_work(Queue& queue);
  bool may_replay() const;
  Result<> run_steps(Queue& queue);
  void describe_run();
  Result<bool> hold_run();  // whether a graph has it
  Result<> run_cached(Queue& queue);

  // Each part refers to those above it.
  std::shared_ptr<const Engine> engine_;
  std::unique_ptr<Queue> own_queue_;
  std::unique_ptr<Queue> stream_queue_;  // of stream_, the application's
  void* stream_ = nullptr;
  std::vector<void*> auxiliary_;  // the application's streams
  PendingWork work_;
  std::unique_ptr<WeightStream> weights_;
  ShapeBinding shapes_;
  ContextMemory memory_;
  Staging staging_;
  TensorStorage storage_;
  Execution execution_;
  Replay replay_;
  KernelChoice kernels_;
  KnownSizes known_;
  RandomSequence random_;
  bool captures_ = true;
  GraphPolicy graphs_ = GraphPolicy::of_repeated_runs;
  size_t cached_bytes_ = 0;
};

}  // namespace lathe
