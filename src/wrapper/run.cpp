// SPDX-License-Identifier: Apache-2.0
// A run: on which stream, with what outputs, as steps or as a recorded graph.
#include "wrapper/run.h"

#include <algorithm>

namespace lathe::wrapper {
namespace {

cudaStream_t native(const cuda::Stream* stream) {
  return stream ? reinterpret_cast<cudaStream_t>(stream->handle()) : nullptr;
}

}  // namespace

Result<> WrappedEngine::run(const std::vector<InputTensor>& inputs, std::vector<OutputTensor>& outputs, void* stream) {
  Run run;  // what it holds is given back after the turns, behind the work of the streams
  LATHE_ASSIGN(const std::optional<cuda::ContextScope> scope, enter());
  if (device_.is_host()) return execute(inputs, outputs, run);
  LATHE_ASSIGN(cuda::Stream * caller, stream_of(stream));
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*caller));
  if (stream) {
    run.stream = caller;
    run.is_captured = caller->is_captured();
    return execute(inputs, outputs, run);
  }
  // The default stream holds other streams up, so that the work is done on another one.
  if (!own_) {
    LATHE_ASSIGN(own_, device_.make_stream());
  }
  LATHE_ASSIGN(const QueueTurn own_turn, QueueTurn::take(*own_));
  LATHE_TRY(device_.order(*caller, *own_));
  run.stream = own_.get();
  LATHE_TRY(execute(inputs, outputs, run));
  return device_.order(*own_, *caller);
}

Result<cuda::Stream*> WrappedEngine::stream_of(void* handle) {
  std::unique_ptr<cuda::Stream>& stream = handle ? borrowed_ : default_;
  if (!stream || stream->handle() != static_cast<cuda::CUstream>(handle)) stream = device_.borrow(handle);
  return stream.get();
}

Result<> WrappedEngine::execute(const std::vector<InputTensor>& inputs, std::vector<OutputTensor>& outputs, Run& run) {
  LATHE_TRY(take_inputs(inputs, run));
  LATHE_TRY(give_way_to_capture(run));
  ++counts_.runs;
  const bool records_now = may_record(run);
  const bool is_recorded = records_now && recording_ && recording_->key == run.key;
  if (is_recorded && recording_->graph) {
    run.outputs = recording_->output_sizes;
  } else {
    LATHE_TRY(set_shapes(run));
    if (output_allocator_) return run_with_allocators(outputs, run);
    LATHE_TRY(find_sizes(run));
    if (records_now && !is_recorded) record_run(run);
  }
  LATHE_TRY(find_outputs(outputs, run));
  if (records_now && recording_->graph) {
    LATHE_TRY(replay(run));
  } else {
    LATHE_TRY(set_addresses(run));
    LATHE_TRY(set_memory(run.is_captured ? captured_workspaces_.emplace_back() : workspace_));
    LATHE_TRY(run_steps(run.stream));
  }
  return prepare_next(run);
}

// The runtime's own graphs and the caller's exclude each other; the caller cannot know of the former.
Result<> WrappedEngine::give_way_to_capture(const Run& run) {
  if (!run.is_captured || !content_.settings.runtime_captures()) return {};
  log().print(Severity::warning,
              "{}: the caller captures the stream: for the rest of this engine's lifetime the runtime captures no "
              "graphs of its own",
              where_);
  content_.settings.graphs = GraphStrategy::disabled;
  return recreate();  // within a scope in which captures of this thread allow it
}

bool WrappedEngine::may_record(const Run& run) {
  if (!records() || run.is_captured || output_allocator_ || profiling_) return false;
  if (!is_capturable_by_settings()) {
    say_once("lazy",
             "sizes of inputs are open and kernels are specialized 'lazy': no graph is recorded; say 'eager' or "
             "'none'");
    return false;
  }
  return true;
}

Result<> WrappedEngine::find_sizes(Run& run) {
  for (const EngineTensor& output : outputs_) {
    Run::Tensor found{context_->getTensorShape(output.name.c_str()), 0, nullptr};
    LATHE_ASSIGN(found.bytes, bytes_of_tensor(output.name, output.type, found.dims));
    run.outputs.push_back(found);
  }
  return {};
}

// Outputs that the caller has not listed come behind those that it has.
Result<std::vector<OutputTensor*>> WrappedEngine::listed(std::vector<OutputTensor>& outputs) const {
  std::vector<size_t> places;
  for (const OutputTensor& output : outputs)
    if (std::none_of(outputs_.begin(), outputs_.end(), [&](const EngineTensor& t) { return t.name == output.name; }))
      return fail(ErrorCode::binding_invalid, "the engine has no output '{}'", output.name);
  for (const EngineTensor& tensor : outputs_) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const OutputTensor& t) { return t.name == tensor.name; });
    places.push_back(static_cast<size_t>(found - outputs.begin()));
    if (found == outputs.end()) outputs.emplace_back().name = tensor.name;
  }
  std::vector<OutputTensor*> list;
  for (const size_t place : places) list.push_back(&outputs[place]);
  return list;
}

Result<> WrappedEngine::find_outputs(std::vector<OutputTensor>& outputs, Run& run) {
  LATHE_ASSIGN(const std::vector<OutputTensor*> list, listed(outputs));
  const bool is_next = pre_allocated_ && next_key_ == run.key && next_outputs_.size() == outputs_.size();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    OutputTensor& output = *list[i];
    Run::Tensor& tensor = run.outputs[i];
    if (output.data && !output.owner) {
      if (output.bytes < static_cast<int64_t>(tensor.bytes))
        return fail(ErrorCode::memory_too_small, "output '{}' has {} bytes, and needs {} for dims {}", output.name,
                    output.bytes, tensor.bytes, dims_text(tensor.dims));
    } else {
      DeviceMemory memory = is_next ? std::move(next_outputs_[i]) : DeviceMemory();
      if (!memory.data()) {
        LATHE_ASSIGN(memory, place_of(outputs_[i]).allocate(std::max<size_t>(tensor.bytes, 1)));
      }
      output.owner = share(std::move(memory));
      output.data = output.owner.get();
      output.bytes = static_cast<int64_t>(tensor.bytes);
    }
    tensor.data = output.data;
    output.type = outputs_[i].type;
    output.dims = tensor.dims;
  }
  return {};
}

Result<> WrappedEngine::set_addresses(const Run& run) {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!context_->setInputTensorAddress(inputs_[i].name.c_str(), run.inputs[i].data))
      return fail(refused("setInputTensorAddress()"));
  for (size_t i = 0; i < run.outputs.size(); ++i)
    if (!context_->setOutputTensorAddress(outputs_[i].name.c_str(), run.outputs[i].data))
      return fail(refused("setOutputTensorAddress()"));
  return {};
}

// Of a context that has none of its own. What the last run had is given back behind its work.
Result<> WrappedEngine::set_memory(DeviceMemory& memory) {
  if (content_.fields.allocation != ResourceAllocation::kDYNAMIC) return {};
  int64_t bytes = engine_->getDeviceMemorySizeV2();
  if (bytes < 0) bytes = static_cast<int64_t>(context_->updateDeviceMemorySizeForShapes());
  if (bytes == 0) return {};
  LATHE_ASSIGN(DeviceMemory found, device_.allocate(static_cast<size_t>(bytes)));
  context_->setDeviceMemoryV2(found.data(), bytes);
  memory = std::move(found);
  return {};
}

Result<> WrappedEngine::run_steps(const cuda::Stream* stream) {
  if (!context_->enqueueV3(native(stream))) return fail(refused("enqueueV3()"));
  return {};
}

Result<> WrappedEngine::run_with_allocators(std::vector<OutputTensor>& outputs, Run& run) {
  LATHE_ASSIGN(const std::vector<OutputTensor*> list, listed(outputs));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool is_given = list[i]->data && !list[i]->owner;
    allocators_[i].start(place_of(outputs_[i]), is_given ? list[i]->data : nullptr, list[i]->bytes);
    if (!context_->setOutputAllocator(outputs_[i].name.c_str(), &allocators_[i]))
      return fail(refused("setOutputAllocator()"));
  }
  LATHE_TRY(set_addresses(run));  // of inputs: sizes of outputs are not known
  LATHE_TRY(set_memory(workspace_));
  LATHE_TRY(run_steps(run.stream));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    OutputTensor& output = *list[i];
    output.type = outputs_[i].type;
    output.dims = allocators_[i].dims();
    output.data = allocators_[i].data();
    output.owner = allocators_[i].take_owner();
    LATHE_ASSIGN(const size_t bytes, bytes_of_tensor(output.name, output.type, output.dims));
    output.bytes = static_cast<int64_t>(bytes);
  }
  return {};
}

// Inputs and outputs of the recorded run lie in places of their own.
Result<> WrappedEngine::place_recording(Run& inside) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].on_host || inside.inputs[i].bytes == 0) continue;
    LATHE_ASSIGN(DeviceMemory memory, device_.allocate(inside.inputs[i].bytes));
    inside.inputs[i].data = recording_->inputs.emplace_back(std::move(memory)).data();
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].on_host)
      return fail(ErrorCode::invalid_state, "output '{}' lies in the host's memory", outputs_[i].name);
    LATHE_ASSIGN(DeviceMemory memory, device_.allocate(std::max<size_t>(inside.outputs[i].bytes, 1)));
    inside.outputs[i].data = recording_->outputs.emplace_back(std::move(memory)).data();
  }
  LATHE_TRY(set_addresses(inside));
  return set_memory(recording_->workspace);
}

Result<> WrappedEngine::capture_recording(Run& inside) {
  LATHE_TRY(place_recording(inside));
  LATHE_ASSIGN(const bool may, is_stream_capturable(inside.stream->handle()));
  if (!may) return fail(ErrorCode::invalid_state, "the context's next run cannot be captured");
  LATHE_ASSIGN(recording_->graph, device_.capture([&](void* stream) -> Result<> {
    if (!context_->enqueueV3(static_cast<cudaStream_t>(stream))) return fail(refused("enqueueV3()"));
    return {};
  }));
  return {};
}

// Whatever goes wrong, the run is done without a graph, and runs like it are not tried again.
void WrappedEngine::record_run(const Run& run) {
  recording_ = std::make_unique<Recording>();
  recording_->key = run.key;
  recording_->output_sizes = run.outputs;
  Run inside;
  inside.inputs = run.inputs;
  inside.outputs = run.outputs;
  inside.stream = run.stream;
  const Result<> recorded = capture_recording(inside);
  if (!recorded) return say_once("recording", "no graph is recorded: " + recorded.error().message);
  ++counts_.graphsRecorded;
  std::string sizes;
  for (const Run::Tensor& input : run.inputs) sizes += dims_text(input.dims);
  log().print(Severity::info, "{}: a graph is recorded for sizes {}", where_, sizes);
}

Result<> WrappedEngine::replay(Run& run) {
  size_t place = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].on_host || run.inputs[i].bytes == 0) continue;
    const DeviceMemory& to = recording_->inputs[place++];
    LATHE_TRY(device_.copy(to.data(), run.inputs[i].data, run.inputs[i].bytes, run.stream));
  }
  LATHE_TRY(recording_->graph->replay(*run.stream));
  ++counts_.graphReplays;
  for (size_t i = 0; i < outputs_.size(); ++i)
    LATHE_TRY(device_.copy(run.outputs[i].data, recording_->outputs[i].data(), run.outputs[i].bytes, run.stream));
  return {};
}

// While the device works.
Result<> WrappedEngine::prepare_next(const Run& run) {
  if (!pre_allocated_ || run.is_captured) return {};
  next_key_ = run.key;
  next_outputs_.clear();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    LATHE_ASSIGN(DeviceMemory memory, place_of(outputs_[i]).allocate(std::max<size_t>(run.outputs[i].bytes, 1)));
    next_outputs_.push_back(std::move(memory));
  }
  return {};
}

}  // namespace lathe::wrapper
