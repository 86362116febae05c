// SPDX-License-Identifier: Apache-2.0
// An execution context: the mutable state of running an engine. One thread at a time; make one context per thread.
#pragma once

#include <functional>

#include "device/event.h"
#include "runtime/engine.h"

namespace lathe {

// Gives memory for an output whose size is known only while running; null = failure. Called once per run, at the moment
// the size is known.
using OutputAllocator = std::function<void*(size_t bytes, const Dims& dims)>;

// Where a context's memory comes from: arena, workspace, and what the run alone can size.
enum class MemoryPolicy {
  on_demand,   // allocated, and allocated anew, as shapes need it
  largest,     // at creation, as much as any shapes of any profile need: running allocates none
  by_profile,  // as much as the current profile's shapes need, when it becomes current
  user,        // set_memory()
};

class Context {
 public:
  // `largest` and `by_profile` are `on_demand` where a profile has no limits.
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Engine> engine,
                                                 MemoryPolicy policy = MemoryPolicy::on_demand);
  ~Context();  // waits for the work that it has given to streams

  const Engine& engine() const { return *engine_; }
  size_t profile() const { return profile_; }
  Result<> set_profile(size_t profile);  // a change forgets the shapes of inputs that have dynamic dimensions

  // Dims of input binding `i`; checked against the profile.
  Result<> set_input_dims(size_t i, std::span<const int64_t> dims);
  // Address of binding `i`: memory of the application's that holds the tensor, dense and row-major, until the work is
  // done. It may be of the device or of the host; a GPU then works on a copy. Shape inputs lie in host memory and are
  // read at the start of each run: other values than last time set all shapes anew.
  Result<> set_address(size_t i, void* address);
  void* address(size_t i) const { return addresses_[i]; }
  Result<> set_output_allocator(size_t i, OutputAllocator allocator);

  // Names of inputs whose dims are not set (or shape inputs without an address).
  std::vector<std::string> missing_shapes() const;
  // Current dims of binding `i`; -1 for what is not known (yet).
  Dims dims(size_t i) const;
  Dims tensor_dims(plan::TensorId id) const;  // of any tensor; empty while the shapes are not set
  size_t bytes(size_t i) const;               // of its tensor under the current shapes; 0 when unknown

  // Arena and workspace bytes that the current shapes need. Works all sizes out if shapes changed.
  Result<size_t> memory_bytes();
  // Memory of the application's, of policy `user` only; aligned to Engine::alignment(), and valid until the work is
  // done. Null takes it away. Engine::memory_limit() bytes are enough for all shapes of a profile. A change waits for
  // the work that uses the former memory, which is then the application's again.
  Result<> set_memory(void* memory, size_t bytes);

  // Binds shapes if they changed, then executes every step. Outputs are complete on return.
  Result<> run();
  // The same on a stream of the application (CUDA), on which the outputs become complete; on a CPU, run(). Returns
  // before the work is done unless some tensor lies in host memory or some step runs on the host. Runs of one context
  // follow each other, on whatever streams they are, for they use the same memory.
  Result<> enqueue(void* stream);
  // Sees each step's time. While it is set, the host waits for each step, and nothing is recorded.
  std::function<void(const plan::Step& step, double milliseconds)> profiler;
  // Sees each result of each step, in the layout that the next steps read, before memory is used again. In host memory.
  std::function<void(const plan::Tensor& tensor, const TensorArg& content)> observer;
  // Called with the queue of a device that is not the host once everything that reads inputs has been given to it.
  std::function<Result<>(Queue& queue)> inputs_read;
  bool waits_after_steps = false;  // so that a step's failure shows in that step

 private:
  int64_t dim(size_t i, size_t d) const;  // -1 when unknown
  struct StepState {
    std::vector<TensorArg> inputs;
    std::vector<TensorArg> outputs;
    bool late = false;  // set up when the step's turn comes
  };

  explicit Context(std::shared_ptr<const Engine> engine, MemoryPolicy policy);
  Result<> bind_symbol(SymbolId symbol, int64_t value, std::string_view what);
  Result<> bind_input_dims();
  Result<> bind_input_values();
  Result<> check_constraint(const Constraint& constraint) const;
  Result<> check_due_constraints();
  Result<> prepare();
  Result<> place_arena();
  Result<> prepare_step(size_t step);
  Result<> resolve(plan::TensorId id, TensorArg& arg);
  std::byte* storage_base(const plan::Tensor& tensor) const;
  std::byte* address_of(const plan::Tensor& tensor) const;
  Result<> execute(Queue& queue, bool wait);
  Result<> give_work(Queue& queue);
  Result<> follow_last_run(Queue& queue);
  Result<> wait_for_work();
  Result<> run_steps(Queue& queue);
  Result<> run_each_step(Queue& queue, bool recorded = false);
  Result<> run_step(size_t step, Queue& queue);
  Result<> read_counts(const plan::Step& step, Queue& queue);
  Result<> run_late_step(size_t step, std::byte** workspace, Queue& queue);
  Result<> run_eval(size_t step, Queue& queue);
  Result<> run_copy(size_t step, Queue& queue);
  Result<> find_sizes(size_t step, Queue& queue);
  Result<Tensor> host_copy(const TensorArg& arg, Queue& queue) const;
  Result<> show_results(const plan::Step& step, Queue& queue);
  Result<> bind_computed(const plan::Tensor& tensor, DType dtype, const Dims& dims);
  Result<> provide_late(plan::TensorId id);
  Result<> provide_slot(uint32_t slot);
  Result<> provide_binding(uint32_t binding);
  Result<size_t> storage_bytes(const plan::Tensor& tensor) const;
  Result<> check_late_window(plan::TensorId id) const;
  Result<> reserve();
  Result<> replace(DeviceMemory& block, size_t bytes);
  Result<> own(size_t bytes);
  Result<> provide_memory();
  Result<std::byte*> provide_workspace(size_t bytes);
  Result<> provide_outputs();
  Result<> check_addresses() const;
  Result<> stage_bindings(Queue& queue);
  Result<> stage(size_t binding, size_t bytes);
  Result<> fetch_staged(Queue& queue);
  void note_addresses();

  std::shared_ptr<const Engine> engine_;
  const plan::Plan& plan_;
  MemoryPolicy policy_;
  size_t profile_ = 0;
  bool prepared_ = false;
  std::vector<std::optional<Dims>> input_dims_;  // per binding; outputs stay empty
  std::vector<void*> addresses_;                 // per binding
  std::vector<OutputAllocator> allocators_;
  std::vector<int64_t> symbols_;
  std::vector<uint32_t> early_constraints_, late_constraints_;  // of the plan: known before or only while running
  std::vector<uint32_t> due_;                                   // of late_constraints_: not yet checked in this run
  std::vector<int64_t> shape_values_;  // values of shape inputs that prepare() saw, in binding order
  std::vector<StepState> steps_;
  size_t readers_end_ = 0;       // behind the last step that reads an input
  std::vector<size_t> offsets_;  // of arena buffers
  size_t arena_bytes_ = 0;
  size_t workspace_bytes_ = 0;
  DeviceMemory own_memory_;
  std::byte* memory_ = nullptr;
  size_t memory_size_ = 0;
  std::byte* workspace_ = nullptr;                         // of this run
  DeviceMemory extra_workspace_;                           // where the memory has too little room behind the arena
  std::vector<DeviceMemory> dynamic_;                      // per slot
  std::vector<std::vector<plan::TensorId>> slot_windows_;  // the tensors that lie in it
  std::vector<bool> provided_;                             // per binding: its allocator has been asked in this run
  std::unique_ptr<Queue> own_queue_;
  std::unique_ptr<Queue> stream_queue_;  // of stream_, the application's
  void* stream_ = nullptr;
  std::unique_ptr<Event> done_;  // behind the last run; null where the device has no events
  Queue* last_queue_ = nullptr;  // of the last run, which may still be at work; null = it is done
  Queue* unmarked_ = nullptr;    // that was given work which done_ is not behind yet: a run goes on, or was cut short
  bool is_captured_ = false;     // this run's queue
  // Device memory that stands for a binding in host memory; copied to before the steps, or from after them.
  struct Staging {
    DeviceMemory memory;
    const void* asked = nullptr;  // the address that `active` tells of: the driver is asked once
    bool active = false;
  };
  std::vector<Staging> staging_;  // per binding
  std::unique_ptr<Recording> recording_;
  std::vector<const void*> current_;   // memory and bindings of this run
  std::vector<const void*> recorded_;  // addresses that the recording holds
  std::vector<const void*> seen_;      // of the last run
};

}  // namespace lathe
