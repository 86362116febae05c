// SPDX-License-Identifier: Apache-2.0
// What is behind EngineWrapper: the engine, its context, and what has been asked for. Its functions take turns
// (mutex()).
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <set>

#include "api/report.h"
#include "wrapper/allocated_output.h"
#include "wrapper/context_maker.h"
#include "wrapper/engine_device.h"
#include "wrapper/engine_errors.h"
#include "wrapper/record.h"
#include "wrapper/timed_layers.h"

namespace lathe::wrapper {

namespace nv = nvinfer1;

// An input or output, as the engine says.
struct EngineTensor {
  std::string name;
  nv::DataType type = nv::DataType::kFLOAT;
  bool on_host = false;   // its values lie in the host's memory
  bool is_shape = false;  // sizes depend on its values
};

class WrappedEngine {
 public:
  // `where` says which call to name in reports of the log.
  WrappedEngine(std::shared_ptr<nv::IRuntime> runtime, RecordContent content);
  Result<> start();                                  // before all else, once
  bool is_reported() const { return is_reported_; }  // by the runtime, why start() has failed
  ~WrappedEngine();
  WrappedEngine(const WrappedEngine&) = delete;
  WrappedEngine& operator=(const WrappedEngine&) = delete;

  std::mutex& mutex() const { return mutex_; }
  const api::Reporter& reporter() const { return reporter_; }
  const std::string& where() const { return where_; }  // "EngineWrapper 'name'"

  Result<EngineRecord> record() const;
  Result<> run(const std::vector<InputTensor>& inputs, std::vector<OutputTensor>& outputs, void* stream);
  Result<bool> is_stream_capturable(void* stream) const;

  Result<> set_graphs(bool on);
  void set_pre_allocated(bool on);
  Result<> set_output_allocator(bool on);
  Result<> set_allocation(ResourceAllocation allocation);
  Result<> set_budget(int64_t bytes);
  Result<> set_communicator(void* communicator);
  Result<> release_communicator();
  Result<> set_profiling(bool on);
  std::string profile() const { return times_.json(content_.fields.name); }

  bool graphs() const { return graphs_; }
  bool records() const { return records_graphs(graphs_, content_.settings) && !device_.is_host(); }
  bool pre_allocated() const { return pre_allocated_; }
  bool output_allocator() const { return output_allocator_; }
  const RecordContent& content() const { return content_; }
  const EngineDevice& device() const { return device_; }
  const WrapperCounts& counts() const { return counts_; }
  nv::ICudaEngine& engine() const { return *engine_; }

  static std::atomic<bool> safe_mode;

 private:
  struct Run;
  struct Recording;

  Log& log() const { return reporter_.log(); }
  Result<> choose_device();
  Result<> load_engine();
  Result<> set_first_budget();
  Result<> read_tensors();
  Result<> read_tensors_of(nv::TensorIOMode mode, const std::vector<std::string>& names,
                           std::vector<EngineTensor>& tensors);
  Result<> recreate();
  Result<> bind_communicator();
  Result<std::optional<cuda::ContextScope>> enter();
  void say_once(std::string_view topic, std::string text);
  bool is_capturable_by_settings() const {
    return is_capturable(content_.settings.specialization, content_.settings.dynamic_inputs);
  }
  Error refused(const char* call) { return errors_.take(call); }

  // What is done for one run, in this order.
  Result<cuda::Stream*> stream_of(void* handle);
  Result<> execute(const std::vector<InputTensor>& inputs, std::vector<OutputTensor>& outputs, Run& run);
  Result<> take_inputs(const std::vector<InputTensor>& given, Run& run);
  Result<> take_input(const EngineTensor& tensor, const InputTensor& given, Run& run);
  Result<> read_on_host(const EngineTensor& tensor, const InputTensor& given, void*& data, Run& run);
  Result<> bring_to_device(const EngineTensor& tensor, const InputTensor& given, void*& data, Run& run);
  Result<> give_way_to_capture(const Run& run);
  bool may_record(const Run& run);
  Result<> set_shapes(const Run& run);
  Result<int32_t> choose_profile(const Run& run) const;
  bool fits(const Run& run, int32_t profile) const;
  Result<> run_with_allocators(std::vector<OutputTensor>& outputs, Run& run);
  Result<> find_sizes(Run& run);
  void record_run(const Run& run);
  Result<> capture_recording(Run& inside);
  Result<> place_recording(Run& inside);
  Result<> find_outputs(std::vector<OutputTensor>& outputs, Run& run);
  Result<std::vector<OutputTensor*>> listed(std::vector<OutputTensor>& outputs) const;
  Result<> replay(Run& run);
  Result<> set_addresses(const Run& run);
  Result<> set_memory(DeviceMemory& memory);
  Result<> run_steps(const cuda::Stream* stream);
  Result<> prepare_next(const Run& run);
  const EngineDevice& place_of(const EngineTensor& tensor) const { return tensor.on_host ? host_ : device_; }

  // Each part refers to those above it.
  std::shared_ptr<nv::IRuntime> runtime_;
  api::Reporter reporter_;
  mutable std::mutex mutex_;
  RecordContent content_;
  std::string where_;
  EngineErrors errors_;
  EngineDevice device_;
  const EngineDevice host_;
  std::unique_ptr<nv::ICudaEngine> engine_;
  ContextMaker<nv::ICudaEngine> maker_;
  TimedLayers times_;
  std::vector<EngineTensor> inputs_, outputs_;
  std::vector<AllocatedOutput> allocators_;  // one for each output
  std::unique_ptr<nv::IExecutionContext> context_;

  bool is_reported_ = false;
  bool graphs_ = false, pre_allocated_ = false, output_allocator_ = false, profiling_ = false;
  void* communicator_ = nullptr;
  std::set<std::string, std::less<>> said_;
  WrapperCounts counts_{};
  // Streams that were used last: the application's, the default one, and the one that works for it.
  std::unique_ptr<cuda::Stream> borrowed_, default_, own_;
  DeviceMemory nothing_;                         // where tensors without elements lie
  DeviceMemory workspace_;                       // of the last run of a context that is given some for each
  std::list<DeviceMemory> captured_workspaces_;  // which graphs of the caller's use
  std::unique_ptr<Recording> recording_;
  std::string next_key_;  // whose outputs these are
  std::vector<DeviceMemory> next_outputs_;
};

}  // namespace lathe::wrapper
