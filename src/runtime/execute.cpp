// SPDX-License-Identifier: Apache-2.0
// Running a prepared context, step by step or from a recording.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "ops/copy_box.h"
#include "runtime/context.h"

namespace lathe {
namespace {

Dims dims_of(const TensorArg& arg) { return Dims(arg.dims, arg.dims + arg.rank); }

// Elements from the first to the last that the strides, of which none is negative, reach.
int64_t extent_of(const TensorArg& arg) {
  int64_t last = 0;
  for (int d = 0; d < arg.rank; ++d) {
    if (arg.dims[d] == 0) return 0;
    last += (arg.dims[d] - 1) * arg.strides[d];
  }
  return last + 1;
}

}  // namespace

// Where a tensor's storage starts; null when the application has not given (or the run not yet made) the memory.
std::byte* Context::storage_base(const plan::Tensor& tensor) const {
  switch (tensor.storage) {
    case plan::StorageKind::arena:
      return memory_ ? memory_ + offsets_[tensor.index] : nullptr;
    case plan::StorageKind::constant:
      return const_cast<std::byte*>(engine_->weights() + plan_.constants[tensor.index].offset);
    case plan::StorageKind::binding:
      if (staging_[tensor.index].active) return staging_[tensor.index].memory.data();
      return static_cast<std::byte*>(addresses_[tensor.index]);
    case plan::StorageKind::dynamic:
      return dynamic_[tensor.index].data();
  }
  return nullptr;
}

// Where a tensor starts within its storage; null while the storage is.
std::byte* Context::address_of(const plan::Tensor& tensor) const {
  std::byte* base = storage_base(tensor);
  if (!base) return nullptr;
  const int64_t offset = tensor.offset.evaluate(symbols_).value_or(0);  // known: check_windows(), check_late_window()
  return base + offset * static_cast<int64_t>(size_of(tensor.dtype));
}

Result<> Context::run() {
  if (!own_queue_) {
    LATHE_ASSIGN(own_queue_, engine_->device().make_queue());
  }
  return execute(*own_queue_, /*wait=*/true);
}

Result<> Context::enqueue(void* stream) {
  if (engine_->device().is_host()) return run();
  if (!stream_queue_ || stream_ != stream) {
    LATHE_ASSIGN(std::unique_ptr<Queue> queue, engine_->device().make_stream_queue(stream));
    LATHE_TRY(follow_last_run(*queue));
    stream_queue_ = std::move(queue);
    stream_ = stream;
  }
  return execute(*stream_queue_, /*wait=*/false);
}

Result<> Context::execute(Queue& queue, bool wait) {
  LATHE_TRY(prepare());
  LATHE_TRY(check_addresses());
  LATHE_TRY(provide_memory());
  LATHE_ASSIGN(workspace_, provide_workspace(workspace_bytes_));
  for (SymbolId id = 0; id < plan_.symbols.size(); ++id)
    if (plan_.symbols[id].source == SymbolSource::computed) symbols_[id] = Expr::kUnbound;
  due_ = late_constraints_;
  std::fill(provided_.begin(), provided_.end(), false);
  LATHE_TRY(provide_outputs());
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(queue));
  if (engine_->device().is_host()) return run_each_step(queue);
  if (last_queue_ != &queue) LATHE_TRY(follow_last_run(queue));
  is_captured_ = queue.is_captured();
  last_queue_ = unmarked_ = &queue;
  Result<> given = give_work(queue);
  // Also behind half a run. What is captured is not at work: it is the application that runs it.
  Result<> marked = done_ && !is_captured_ ? done_->record(queue) : Result<>();
  if (marked) unmarked_ = nullptr;
  if (!given || !marked) return given ? marked : given;
  return wait ? wait_for_work() : Result<>();
}

Result<> Context::give_work(Queue& queue) {
  LATHE_TRY(stage_bindings(queue));
  LATHE_TRY(run_steps(queue));
  return fetch_staged(queue);
}

// Streams do not know of each other: without this, a run on another one would overwrite what the last one still uses.
Result<> Context::follow_last_run(Queue& queue) {
  if (!last_queue_) return {};
  if (done_ && !unmarked_) {
    LATHE_TRY(done_->hold(queue));
    last_queue_ = &queue;
    return {};
  }
  LATHE_TRY(wait_for_work());
  last_queue_ = unmarked_ = nullptr;
  return {};
}

// Until nothing uses the context's memory.
Result<> Context::wait_for_work() {
  Device& device = engine_->device();
  if (unmarked_) return device.wait(*unmarked_);
  if (!last_queue_) return {};
  LATHE_TRY(done_ ? done_->wait() : device.wait(*last_queue_));
  last_queue_ = nullptr;
  return {};
}

// Outputs of known size that the application gives memory for.
Result<> Context::provide_outputs() {
  for (size_t i = 0; i < plan_.bindings.size(); ++i)
    if (allocators_[i] && !engine_->is_late(plan_.bindings[i].tensor)) {
      addresses_[i] = allocators_[i](bytes(i), dims(i));
      if (!addresses_[i])
        return fail(ErrorCode::out_of_memory, "the output allocator gave no memory for '{}'", plan_.bindings[i].name);
    }
  return {};
}

// A binding whose address the device cannot read gets memory of the device, which steps use in its place.
Result<> Context::stage(size_t i, size_t bytes) {
  Device& device = engine_->device();
  Staging& staging = staging_[i];
  if (staging.asked != addresses_[i]) {
    staging.asked = addresses_[i];
    staging.active = addresses_[i] && !device.is_accessible(addresses_[i]);
  }
  if (!staging.active || staging.memory.size() >= bytes) return {};
  return replace(staging.memory, bytes);
}

Result<> Context::stage_bindings(Queue& queue) {
  for (size_t i = 0; i < staging_.size(); ++i) {
    LATHE_TRY(stage(i, bytes(i)));
    if (staging_[i].active && plan_.bindings[i].is_input)
      LATHE_TRY(engine_->device().upload(staging_[i].memory.data(), addresses_[i], bytes(i), queue));
  }
  return {};
}

Result<> Context::fetch_staged(Queue& queue) {
  for (size_t i = 0; i < staging_.size(); ++i)
    if (staging_[i].active && !plan_.bindings[i].is_input)
      LATHE_TRY(engine_->device().download(addresses_[i], staging_[i].memory.data(), bytes(i), queue));
  return {};
}

// What a recording depends on beside sizes. Kept in a member, as running allocates nothing.
void Context::note_addresses() {
  current_.clear();
  current_.push_back(memory_);
  current_.push_back(workspace_);
  for (const plan::Binding& binding : plan_.bindings) current_.push_back(storage_base(plan_.tensors[binding.tensor]));
}

// The first run with given sizes and addresses runs step by step; the second, if it has the same, records the steps,
// and from then on the recording is replayed. So addresses that change with every run cost no recordings.
Result<> Context::run_steps(Queue& queue) {
  const bool watched = profiler || observer || waits_after_steps;
  if (!engine_->is_recordable() || watched || is_captured_) return run_each_step(queue);
  note_addresses();
  if (current_ != recorded_) {
    if (current_ != seen_) {
      std::swap(current_, seen_);
      return run_each_step(queue);
    }
    const auto work = [this](Queue& recorder) { return run_each_step(recorder, /*recorded=*/true); };
    recorded_.clear();
    if (recording_) {
      LATHE_TRY(recording_->update(work));
    } else {
      LATHE_ASSIGN(recording_, engine_->device().record(work));
      if (!recording_) return run_each_step(queue);
    }
    recorded_ = current_;
  }
  LATHE_TRY(recording_->replay(queue));
  return inputs_read ? inputs_read(queue) : Result<>();
}

// What is recorded is not run yet: whoever replays it tells of the inputs.
Result<> Context::run_each_step(Queue& queue, bool recorded) {
  using Clock = std::chrono::steady_clock;
  const bool tells = inputs_read && !recorded && !engine_->device().is_host();
  if (tells && readers_end_ == 0) LATHE_TRY(inputs_read(queue));
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Clock::time_point start = profiler ? Clock::now() : Clock::time_point();
    LATHE_TRY(run_step(i, queue));
    if (tells && i + 1 == readers_end_) LATHE_TRY(inputs_read(queue));
    if (profiler || waits_after_steps) {
      Result<> done = engine_->device().wait(queue);
      if (!done) return fail(with_context(std::move(done).error(), fmt::format("step '{}'", plan_.steps[i].name)));
    }
    if (profiler) profiler(plan_.steps[i], std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (observer) LATHE_TRY(show_results(plan_.steps[i], queue));
  }
  return {};
}

Result<> Context::show_results(const plan::Step& step, Queue& queue) {
  for (const plan::TensorId id : step.outputs) {
    if (id == plan::kNoTensor) continue;
    const plan::Tensor& tensor = plan_.tensors[id];
    TensorArg content;
    LATHE_TRY(resolve(id, content));
    content.data = address_of(tensor);
    std::vector<std::byte> copy;
    if (!engine_->device().is_host()) {
      copy.resize(static_cast<size_t>(extent_of(content)) * size_of(content.dtype));
      LATHE_TRY(engine_->device().download(copy.data(), content.data, copy.size(), queue));
      content.data = copy.data();
    }
    observer(tensor, content);
  }
  return {};
}

Result<> Context::check_addresses() const {
  constexpr uintptr_t kDeviceAlignment = 16;  // kernels read and write so many bytes at a time
  for (size_t i = 0; i < plan_.bindings.size(); ++i) {
    if (!engine_->device().is_host() && reinterpret_cast<uintptr_t>(addresses_[i]) % kDeviceAlignment != 0 &&
        engine_->device().is_accessible(addresses_[i]))
      return fail(ErrorCode::binding_invalid,
                  "'{}' lies at {}, which is not aligned to {} bytes: allocate it by itself", plan_.bindings[i].name,
                  addresses_[i], kDeviceAlignment);
    if (!addresses_[i] && !allocators_[i] && bytes(i) != 0)
      return fail(ErrorCode::binding_missing, "{} '{}' has no address: set it before running",
                  plan_.bindings[i].is_input ? "input" : "output", plan_.bindings[i].name);
  }
  return {};
}

// What the policy allocates ahead of all runs.
Result<> Context::reserve() {
  if (policy_ != MemoryPolicy::largest && policy_ != MemoryPolicy::by_profile) return {};
  size_t bytes = 0;
  for (size_t i = 0; i < plan_.profiles.size(); ++i) {
    if (policy_ == MemoryPolicy::by_profile && i != profile_) continue;
    const MemoryLimit* limit = engine_->memory_limit(i);
    if (!limit) return {};
    bytes = std::max(bytes, limit->total());
    for (size_t slot = 0; slot < dynamic_.size(); ++slot)
      if (limit->dynamic[slot] > dynamic_[slot].size()) LATHE_TRY(replace(dynamic_[slot], limit->dynamic[slot]));
  }
  current_.reserve(plan_.bindings.size() + 2);
  if (bytes > memory_size_) LATHE_TRY(own(bytes));
  return {};
}

// Allocates a block anew; what it held is not needed, and goes first, for there may be no room for both. Where there is
// none for the new one, one of the old size takes its place.
Result<> Context::replace(DeviceMemory& block, size_t bytes) {
  LATHE_TRY(wait_for_work());
  Device& device = engine_->device();
  const size_t former = block.size();
  block = DeviceMemory();
  Result<DeviceMemory> made = device.allocate(bytes);
  if (made) {
    block = *std::move(made);
    return {};
  }
  if (Result<DeviceMemory> again = device.allocate(former)) block = *std::move(again);
  return fail(std::move(made).error());
}

Result<> Context::own(size_t bytes) {
  Result<> replaced = replace(own_memory_, bytes);
  memory_ = own_memory_.data();
  memory_size_ = own_memory_.size();
  return replaced;
}

Result<> Context::provide_memory() {
  LATHE_ASSIGN(const size_t needed, memory_bytes());
  if (needed <= memory_size_) return {};
  if (policy_ != MemoryPolicy::user) return own(needed);
  // Kernels may want more workspace for some shapes than for larger ones; whoever gave the limit gave enough.
  const MemoryLimit* limit = engine_->memory_limit(profile_);
  if (limit && memory_size_ >= limit->total()) return {};
  return fail(ErrorCode::memory_too_small, "these shapes need {} bytes of context memory, {} were supplied", needed,
              memory_size_);
}

// Behind the arena where there is room.
Result<std::byte*> Context::provide_workspace(size_t bytes) {
  if (bytes <= memory_size_ - arena_bytes_) return memory_ + arena_bytes_;
  if (bytes > extra_workspace_.size()) LATHE_TRY(replace(extra_workspace_, bytes));
  return extra_workspace_.data();
}

Result<> Context::run_step(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  StepState& state = steps_[i];
  const Kernel* kernel = engine_->code()[i].kernel.get();
  if (!kernel) return run_eval(i, queue);
  std::byte* workspace = workspace_;
  if (state.late) LATHE_TRY(run_late_step(i, &workspace, queue));
  const auto address = [&](plan::TensorId id, TensorArg& arg) {
    if (id != plan::kNoTensor) arg.data = address_of(plan_.tensors[id]);
  };
  for (size_t k = 0; k < step.inputs.size(); ++k) address(step.inputs[k], state.inputs[k]);
  for (size_t k = 0; k < step.outputs.size(); ++k) address(step.outputs[k], state.outputs[k]);
  const Result<> enqueued = kernel->enqueue({state.inputs, state.outputs, symbols_}, workspace, queue);
  if (enqueued) return {};
  return fail(with_context(enqueued.error(), fmt::format("step '{}' ({})", step.name, step.kernel)));
}

// A step's operand on the host: itself, or a copy of what lies in the device's memory.
Result<Tensor> Context::host_copy(const TensorArg& arg, Queue& queue) const {
  if (engine_->device().is_host()) return Tensor::view(arg.dtype, dims_of(arg), arg.data, nullptr);
  LATHE_ASSIGN(Tensor copy, Tensor::allocate(arg.dtype, dims_of(arg)));
  LATHE_TRY(engine_->device().download(copy.mutable_data(), arg.data, copy.bytes(), queue));
  return copy;
}

// A copy between strided tensors, on the host. What lies between the elements of the result stays.
Result<> Context::run_copy(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  StepState& state = steps_[i];
  TensorArg &from = state.inputs[0], &to = state.outputs[0];
  if (state.late) {
    LATHE_TRY(provide_late(step.outputs[0]));
    for (const auto& [id, arg] : {std::pair(step.inputs[0], &from), std::pair(step.outputs[0], &to)}) {
      LATHE_TRY(resolve(id, *arg));
      LATHE_TRY(check_late_window(id));
    }
  }
  if (from.rank != to.rank || from.dtype != to.dtype || !std::equal(from.dims, from.dims + from.rank, to.dims))
    return fail(ErrorCode::plan_malformed, "step '{}' copies a tensor to one of another type or size", step.name);
  from.data = address_of(plan_.tensors[step.inputs[0]]);
  to.data = address_of(plan_.tensors[step.outputs[0]]);
  const int64_t read = extent_of(from), written = extent_of(to);
  if (from.volume() == 0) return {};
  const auto lines = [](const TensorArg& arg, int64_t elements) {
    TensorArg all = arg;
    all.rank = 1;
    all.dims[0] = elements;
    return all;
  };
  LATHE_ASSIGN(const Tensor source, host_copy(lines(from, read), queue));
  LATHE_ASSIGN(Tensor target, host_copy(lines(to, written), queue));
  const auto rank = static_cast<size_t>(from.rank);
  copy_box(size_of(from.dtype), {from.dims, rank}, source.data(), {from.strides, rank}, target.mutable_data(),
           {to.strides, rank});
  if (engine_->device().is_host()) return {};
  return engine_->device().upload(static_cast<std::byte*>(to.data), target.data(), target.bytes(), queue);
}

// The plain evaluation of one op on dense operands, on the host.
Result<> Context::run_eval(size_t i, Queue& queue) {
  if (engine_->code()[i].copies) return run_copy(i, queue);
  const plan::Step& step = plan_.steps[i];
  StepState& state = steps_[i];
  const bool on_host = engine_->device().is_host();
  std::vector<Tensor> inputs(step.inputs.size());
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (step.inputs[k] == plan::kNoTensor) continue;
    if (state.late) {
      LATHE_TRY(resolve(step.inputs[k], state.inputs[k]));
      LATHE_TRY(check_late_window(step.inputs[k]));
    }
    state.inputs[k].data = address_of(plan_.tensors[step.inputs[k]]);
    LATHE_ASSIGN(inputs[k], host_copy(state.inputs[k], queue));
  }
  // Gives the output's place in device memory; null for one of size zero.
  const auto address = [&](size_t k, DType dtype, const Dims& dims) -> Result<std::byte*> {
    const plan::Tensor& tensor = plan_.tensors[step.outputs[k]];
    LATHE_TRY(bind_computed(tensor, dtype, dims));
    LATHE_TRY(provide_late(step.outputs[k]));
    LATHE_TRY(check_late_window(step.outputs[k]));
    return address_of(tensor);
  };
  std::vector<bool> placed(step.outputs.size());
  const auto place = [&](size_t k, DType dtype, const Dims& dims) -> Result<Tensor> {
    if (step.outputs[k] == plan::kNoTensor || !on_host) return Tensor();
    LATHE_ASSIGN(std::byte * at, address(k, dtype, dims));
    if (!at) return Tensor();
    placed[k] = true;
    return Tensor::view(dtype, dims, at, nullptr);
  };
  Result<std::vector<Tensor>> outputs = run_op(*engine_->code()[i].eval, inputs, step.outputs.size(), place);
  if (!outputs) return fail(with_context(std::move(outputs).error(), fmt::format("{} '{}'", step.op, step.name)));
  // Outputs that the evaluation made elsewhere move to their place.
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (placed[k] || step.outputs[k] == plan::kNoTensor) continue;
    const Tensor& output = (*outputs)[k];
    LATHE_ASSIGN(std::byte * at, address(k, output.dtype(), output.dims()));
    if (at) LATHE_TRY(engine_->device().upload(at, output.data(), output.bytes(), queue));
  }
  return {};
}

}  // namespace lathe
