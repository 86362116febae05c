// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

static void add_memory(nb::class_<IExecutionContext>& bound) {
  bound
      .def(
          "set_device_memory",
          [](IExecutionContext& self, size_t memory, int64_t size) {
            self.setDeviceMemoryV2(pointer<void*>(memory), size);
          },
          nb::arg("memory"), nb::arg("size"),
          "Memory to work in, of at least device_memory_size_v2 bytes, for contexts whose strategy is USER_MANAGED.")
      .def_prop_rw(
          "device_memory",
          [](IExecutionContext&) -> size_t { throw nb::attribute_error("device_memory can only be set"); },
          [](IExecutionContext& self, size_t memory) { self.setDeviceMemory(pointer<void*>(memory)); })
      .def("get_runtime_config", &IExecutionContext::getRuntimeConfig, nb::keep_alive<0, 1>(), Unlocked())
      .def(
          "set_communicator",
          [](IExecutionContext& self, size_t communicator) {
            return self.setCommunicator(pointer<void*>(communicator));
          },
          nb::arg("communicator"));
}

static void addStreams(nb::class_<IExecutionContext>& bound) {
  bound
      .def(
          "set_optimization_profile_async",
          [](IExecutionContext& self, int32_t profile, size_t stream) {
            return self.setOptimizationProfileAsync(profile, pointer<cudaStream_t>(stream));
          },
          nb::arg("profile_index"), nb::arg("stream_handle"),
          "Chooses the profile, for a context that runs on this stream. False after a report to the logger.")
      .def(
          "set_aux_streams",
          [](IExecutionContext& self, const std::vector<size_t>& streams) {
            std::vector<cudaStream_t> pointers;
            for (const size_t each : streams) pointers.push_back(pointer<cudaStream_t>(each));
            self.setAuxStreams(pointers.data(), static_cast<int32_t>(pointers.size()));
          },
          nb::arg("aux_streams"),
          "Streams to use beside the one that runs are started on; the context makes its own where fewer than needed "
          "are given.")
      .def(
          "set_input_consumed_event",
          [](IExecutionContext& self, size_t event) { return self.setInputConsumedEvent(pointer<cudaEvent_t>(event)); },
          nb::arg("event"), "An event, as an address, that is recorded when the inputs have been read.")
      .def("get_input_consumed_event", [](IExecutionContext& self) { return address(self.getInputConsumedEvent()); });
}

static void add_runs(nb::class_<IExecutionContext>& bound) {
  bound
      .def(
          "execute_v2",
          [](IExecutionContext& self, const std::vector<size_t>& bindings) {
            std::vector<void*> pointers;
            for (const size_t each : bindings) pointers.push_back(pointer<void*>(each));
            return self.executeV2(pointers.data());
          },
          nb::arg("bindings"), Unlocked(),
          "Runs, and waits. bindings: the addresses of all inputs and outputs, in the order of the engine. False after "
          "a report.")
      .def(
          "execute_async_v3",
          [](IExecutionContext& self, size_t stream) { return self.enqueueV3(pointer<cudaStream_t>(stream)); },
          nb::arg("stream_handle"), Unlocked(),
          "Starts a run on the stream; on the CPU device it is done when this returns. False after a report to the "
          "logger.")
      .def(
          "set_tensor_address",
          [](IExecutionContext& self, const char* name, size_t memory) {
            return self.setTensorAddress(name, pointer<void*>(memory));
          },
          nb::arg("name"), nb::arg("memory"),
          "Where an input or output lies, until it is set again: memory of the device, aligned to 256 bytes on GPUs; "
          "for the CPU, of the host. False after a report.")
      .def(
          "get_tensor_address",
          [](IExecutionContext& self, const char* name) { return address(self.getTensorAddress(name)); },
          nb::arg("name"), "0 where none is set.")
      .def(
          "infer_shapes",
          [](IExecutionContext& self) {
            std::vector<const char*> names(static_cast<size_t>(self.getEngine().getNbIOTensors()));
            const int32_t missing = self.inferShapes(static_cast<int32_t>(names.size()), names.data());
            if (missing < 0) throw std::runtime_error(lathe::lastError());
            return std::vector<std::string>(names.begin(), names.begin() + missing);
          },
          Unlocked(), "Names of inputs whose shape or values are missing.");
}

// The context's object holds its allocators by the names of their outputs, so that it does not collect old ones.
static bool set_output_allocator(nb::handle self, const char* name, IOutputAllocator* allocator) {
  if (!nb::cast<IExecutionContext&>(self).setOutputAllocator(name, allocator)) return false;
  if (!nb::hasattr(self, "_output_allocators")) self.attr("_output_allocators") = nb::dict();
  self.attr("_output_allocators")[name] = allocator;
  return true;
}

static void bind_context(nb::module_& m) {
  nb::class_<IExecutionContext> context(m, "IExecutionContext", nb::dynamic_attr());
  freed_by_last_reference(context);
  add_memory(context);
  add_runs(context);
  addStreams(context);
  context
      .def_prop_rw("debug_sync", &IExecutionContext::getDebugSync, &IExecutionContext::setDebugSync, kInside,
                   "Whether each step is waited for, so that a failure names it.")
      .def_prop_rw("profiler", &IExecutionContext::getProfiler, &IExecutionContext::setProfiler, kInside, kept(),
                   or_none(), "Told the time of each layer, in milliseconds, after each run.")
      .def_prop_ro("engine", &IExecutionContext::getEngine, kInside)
      .def_prop_rw("name", &IExecutionContext::getName, &IExecutionContext::setName, kInside, kept())
      .def("update_device_memory_size_for_shapes", &IExecutionContext::updateDeviceMemorySizeForShapes, kInside,
           "Bytes that the context works in for the shapes that are set; 0 after a report.")
      .def_prop_ro("active_optimization_profile", &IExecutionContext::getOptimizationProfile, kInside,
                   "The number of the profile, 0 at first; -1 where none could be chosen.")
      .def("get_tensor_strides", &IExecutionContext::getTensorStrides, nb::arg("name"), kInside,
           "Strides in elements, for the shapes that are set.")
      .def("set_input_shape", &IExecutionContext::setInputShape, nb::arg("name"), nb::arg("shape"), kInside,
           "Gives an input its shape, within the profile. False after a report to the logger.")
      .def("get_tensor_shape", &IExecutionContext::getTensorShape, nb::arg("name"), kInside,
           "The shape; -1 for sizes that are not known yet.")
      .def("set_output_allocator", &set_output_allocator, nb::arg("name"), nb::arg("output_allocator").none(),
           "The allocator of an output, kept until another one is set; None takes it off.")
      .def("get_output_allocator", &IExecutionContext::getOutputAllocator, nb::arg("name"), kInside)
      .def("get_max_output_size", &IExecutionContext::getMaxOutputSize, nb::arg("name"), kInside,
           "Bytes that the output takes at most for the shapes that are set; -1 where there is no bound.")
      .def_prop_rw("temporary_allocator", &IExecutionContext::getTemporaryStorageAllocator,
                   &IExecutionContext::setTemporaryStorageAllocator, kInside, kept(), or_none(),
                   "Gives memory to work in whose size is known only while the engine runs.")
      .def_prop_ro("all_binding_shapes_specified", &IExecutionContext::allInputDimensionsSpecified, kInside,
                   "Whether all inputs have their shapes.")
      .def_prop_rw("error_recorder", &IExecutionContext::getErrorRecorder, &IExecutionContext::setErrorRecorder,
                   kInside, kept(), or_none())
      .def_prop_rw("enqueue_emits_profile", &IExecutionContext::getEnqueueEmitsProfile,
                   &IExecutionContext::setEnqueueEmitsProfile)
      .def("report_to_profiler", &IExecutionContext::reportToProfiler, kInside,
           "Tells the profiler of the last run, where enqueue_emits_profile is off. False where there was none.")
      .def_prop_rw("persistent_cache_limit", &IExecutionContext::getPersistentCacheLimit,
                   &IExecutionContext::setPersistentCacheLimit, kInside,
                   "Bytes of the L2 cache of a GPU that are set aside for the context; 0 at first.")
      .def_prop_rw("nvtx_verbosity", &IExecutionContext::getNvtxVerbosity, &IExecutionContext::setNvtxVerbosity,
                   kInside)
      .def("set_debug_listener", &IExecutionContext::setDebugListener, nb::arg("listener"), nb::keep_alive<1, 2>(),
           kInside)
      .def("get_debug_listener", &IExecutionContext::getDebugListener, kInside)
      .def("set_tensor_debug_state", &IExecutionContext::setTensorDebugState, nb::arg("name"), nb::arg("flag"), kInside)
      .def("get_debug_state", &IExecutionContext::getDebugState, nb::arg("name"), kInside)
      .def("set_all_tensors_debug_state", &IExecutionContext::setAllTensorsDebugState, nb::arg("flag"), kInside)
      .def_prop_rw("unfused_tensors_debug_state", &IExecutionContext::getUnfusedTensorsDebugState,
                   &IExecutionContext::setUnfusedTensorsDebugState, kInside);
}

// [min, opt, max] of a shape tensor input, [] for other tensors.
static std::vector<std::vector<int64_t>> profile_values(ICudaEngine& self, const char* name, int32_t profile) {
  const Dims shape = self.getTensorShape(name);
  const int64_t count = shape.nbDims == 1 ? shape.d[0] : 1;
  if (self.getProfileTensorValuesV2(name, profile, OptProfileSelector::kMIN) == nullptr || count < 0) return {};
  return ranges_of([&](OptProfileSelector which) {
    const int64_t* const values = self.getProfileTensorValuesV2(name, profile, which);
    return std::vector<int64_t>(values, values + count);
  });
}

static void addCudaEngine1(nb::class_<ICudaEngine>& bound) {
  bound.def_prop_ro("num_layers", &ICudaEngine::getNbLayers, kInside, "Layers of the engine, after fusion.")
      .def("serialize", &ICudaEngine::serialize, Unlocked(),
           "The plan, as from the build; None after a report to the logger.")
      .def("create_serialization_config", &ICudaEngine::createSerializationConfig, nb::keep_alive<0, 1>())
      .def("serialize_with_config", &ICudaEngine::serializeWithConfig, Unlocked())
      .def("get_device_memory_size_for_profile_v2", &ICudaEngine::getDeviceMemorySizeForProfileV2,
           nb::arg("profile_index"), kInside,
           "Bytes that a context works in with this profile; -1 where the profile leaves a size open.")
      .def_prop_ro("device_memory_size_v2", &ICudaEngine::getDeviceMemorySizeV2, kInside,
                   "Bytes that a context works in, with the profile that takes most; -1 where one leaves a size open.")
      .def_prop_ro("refittable", &ICudaEngine::isRefittable, kInside)
      .def_prop_ro("name", &ICudaEngine::getName, kInside)
      .def_prop_ro("num_optimization_profiles", &ICudaEngine::getNbOptimizationProfiles, kInside)
      .def_prop_ro("engine_capability", &ICudaEngine::getEngineCapability, kInside)
      .def_prop_ro("num_io_tensors", &ICudaEngine::getNbIOTensors, kInside)
      .def("get_tensor_name", &ICudaEngine::getIOTensorName, nb::arg("index"), kInside,
           "The name of input or output number index.")
      .def("get_tensor_mode", &ICudaEngine::getTensorIOMode, nb::arg("name"), kInside)
      .def("is_shape_inference_io", &ICudaEngine::isShapeInferenceIO, nb::arg("name"), kInside,
           "Whether shapes follow from the contents of this input, or this output holds a shape.")
      .def("get_tensor_shape", &ICudaEngine::getTensorShape, nb::arg("name"), kInside)
      .def("get_tensor_dtype", &ICudaEngine::getTensorDataType, nb::arg("name"), kInside)
      .def("get_tensor_location", &ICudaEngine::getTensorLocation, nb::arg("name"), kInside)
      .def_prop_rw("error_recorder", &ICudaEngine::getErrorRecorder, &ICudaEngine::setErrorRecorder, kInside, kept(),
                   or_none())
      .def_prop_ro("tactic_sources", &ICudaEngine::getTacticSources, kInside)
      .def_prop_ro("profiling_verbosity", &ICudaEngine::getProfilingVerbosity, kInside)
      .def("create_engine_inspector", &ICudaEngine::createEngineInspector, nb::keep_alive<0, 1>())
      .def_prop_ro("hardware_compatibility_level", &ICudaEngine::getHardwareCompatibilityLevel, kInside)
      .def_prop_ro("num_aux_streams", &ICudaEngine::getNbAuxStreams, kInside)
      .def_prop_rw("weight_streaming_budget_v2", &ICudaEngine::getWeightStreamingBudgetV2,
                   &ICudaEngine::setWeightStreamingBudgetV2, kInside,
                   "Bytes of weights that stay on the device; the rest is copied as it is needed.")
      .def_prop_ro("streamable_weights_size", &ICudaEngine::getStreamableWeightsSize, kInside,
                   "Bytes of weights that need not stay on the device.")
      .def_prop_ro("weight_streaming_scratch_memory_size", &ICudaEngine::getWeightStreamingScratchMemorySize, kInside,
                   "Bytes on the device that streamed weights pass through.")
      .def("is_debug_tensor", &ICudaEngine::isDebugTensor, nb::arg("name"), kInside)
      .def("create_runtime_config", &ICudaEngine::createRuntimeConfig, nb::keep_alive<0, 1>(), Unlocked())
      .def("get_engine_stat", &ICudaEngine::getEngineStat, nb::arg("stat") = EngineStat::kTOTAL_WEIGHTS_SIZE,
           Unlocked(), kInside)
      .def(
          "get_tensor_bytes_per_component",
          [](ICudaEngine& self, const char* name) { return self.getTensorBytesPerComponent(name); }, nb::arg("name"),
          "Bytes of a component; -1 where the format keeps no elements together.")
      .def(
          "get_tensor_bytes_per_component",
          [](ICudaEngine& self, const char* name, int32_t profile) {
            return self.getTensorBytesPerComponent(name, profile);
          },
          nb::arg("name"), nb::arg("profile_index"))
      .def(
          "get_tensor_components_per_element",
          [](ICudaEngine& self, const char* name) { return self.getTensorComponentsPerElement(name); }, nb::arg("name"),
          "Elements that the format keeps together; -1 where it keeps none.")
      .def(
          "get_tensor_components_per_element",
          [](ICudaEngine& self, const char* name, int32_t profile) {
            return self.getTensorComponentsPerElement(name, profile);
          },
          nb::arg("name"), nb::arg("profile_index"))
      .def(
          "get_tensor_format", [](ICudaEngine& self, const char* name) { return self.getTensorFormat(name); },
          nb::arg("name"))
      .def(
          "get_tensor_format",
          [](ICudaEngine& self, const char* name, int32_t profile) { return self.getTensorFormat(name, profile); },
          nb::arg("name"), nb::arg("profile_index"))
      .def(
          "get_tensor_format_desc", [](ICudaEngine& self, const char* name) { return self.getTensorFormatDesc(name); },
          nb::arg("name"))
      .def(
          "get_tensor_format_desc",
          [](ICudaEngine& self, const char* name, int32_t profile) { return self.getTensorFormatDesc(name, profile); },
          nb::arg("name"), nb::arg("profile_index"));
}

static void addCudaEngine2(nb::class_<ICudaEngine>& bound) {
  bound
      .def(
          "get_tensor_vectorized_dim",
          [](ICudaEngine& self, const char* name) { return self.getTensorVectorizedDim(name); }, nb::arg("name"),
          "The dimension whose elements the format keeps together; -1 where there is none.")
      .def(
          "get_tensor_vectorized_dim",
          [](ICudaEngine& self, const char* name, int32_t profile) {
            return self.getTensorVectorizedDim(name, profile);
          },
          nb::arg("name"), nb::arg("profile_index"))
      .def("__getitem__",
           [](ICudaEngine& self, int32_t index) {
             const int32_t count = self.getNbIOTensors();
             if (index < -count || index >= count) throw nb::index_error();
             return self.getIOTensorName(index < 0 ? index + count : index);
           })
      .def(
          "create_execution_context",
          [](ICudaEngine& self, ExecutionContextAllocationStrategy strategy) {
            return self.createExecutionContext(strategy);
          },
          nb::arg("strategy") = ExecutionContextAllocationStrategy::kSTATIC, nb::keep_alive<0, 1>(), Unlocked())
      .def(
          "create_execution_context",
          [](ICudaEngine& self, IRuntimeConfig& config) { return self.createExecutionContext(&config); },
          nb::arg("runtime_config"), nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), Unlocked())
      .def(
          "get_tensor_profile_shape",
          [](ICudaEngine& self, const char* name, int32_t profile) {
            return ranges_of([&](OptProfileSelector which) { return self.getProfileShape(name, profile, which); });
          },
          nb::arg("name"), nb::arg("profile_index"), "[min, opt, max]")
      .def("get_tensor_profile_values", &profile_values, nb::arg("name"), nb::arg("profile_index"),
           "[min, opt, max] of a shape tensor input, [] for other tensors.")
      .def("get_tensor_profile_values",
           [](ICudaEngine& self, int32_t profile, const char* name) { return profile_values(self, name, profile); })
      .def("get_aliased_input_tensor", &ICudaEngine::getAliasedInputTensor, nb::arg("name"),
           "The input whose memory the output shares; None where it shares none.")
      .def("get_weight_streaming_automatic_budget", &ICudaEngine::getWeightStreamingAutomaticBudget,
           "Bytes that suit the free memory of the device.");
}

void bind_engine(nb::module_& m) {
  nb::class_<IOptimizationProfile>(m, "IOptimizationProfile")
      .def_prop_rw("extra_memory_target", &IOptimizationProfile::getExtraMemoryTarget,
                   &IOptimizationProfile::setExtraMemoryTarget, kInside,
                   "Memory beyond the least that engines may use for this profile, as a fraction of the least, 0 to 1.")
      .def("__nonzero__", &IOptimizationProfile::isValid, kInside)
      .def("__bool__", &IOptimizationProfile::isValid, kInside)
      .def(
          "set_shape",
          [](IOptimizationProfile& self, const char* input, const Dims& min, const Dims& opt, const Dims& max) {
            const bool set = self.setDimensions(input, OptProfileSelector::kMIN, min) &&
                             self.setDimensions(input, OptProfileSelector::kOPT, opt) &&
                             self.setDimensions(input, OptProfileSelector::kMAX, max);
            if (!set) throw std::runtime_error("the shapes of one input must have one rank and min <= opt <= max");
          },
          nb::arg("input"), nb::arg("min"), nb::arg("opt"), nb::arg("max"))
      .def(
          "get_shape",
          [](IOptimizationProfile& self, const char* input) {
            auto shapes = ranges_of([&](OptProfileSelector which) { return self.getDimensions(input, which); });
            for (const Dims& shape : shapes)
              if (shape.nbDims < 0) return std::vector<Dims>();
            return shapes;
          },
          nb::arg("input"), "[min, opt, max], or [] where none was set.")
      .def(
          "set_shape_input",
          [](IOptimizationProfile& self, const char* input, const std::vector<int64_t>& min,
             const std::vector<int64_t>& opt, const std::vector<int64_t>& max) {
            const auto set = [&](OptProfileSelector which, const std::vector<int64_t>& values) {
              return self.setShapeValuesV2(input, which, values.data(), static_cast<int32_t>(values.size()));
            };
            if (!set(OptProfileSelector::kMIN, min) || !set(OptProfileSelector::kOPT, opt) ||
                !set(OptProfileSelector::kMAX, max))
              throw std::runtime_error("the values of one input must be of one number and min <= opt <= max");
          },
          nb::arg("input"), nb::arg("min"), nb::arg("opt"), nb::arg("max"))
      .def(
          "get_shape_input",
          [](IOptimizationProfile& self, const char* input) {
            const int32_t count = self.getNbShapeValues(input);
            if (count < 0) return std::vector<std::vector<int64_t>>();
            return ranges_of([&](OptProfileSelector which) {
              const int64_t* const values = self.getShapeValuesV2(input, which);
              if (values == nullptr) throw std::runtime_error("only some of min, opt and max are set");
              return std::vector<int64_t>(values, values + count);
            });
          },
          nb::arg("input"), "[min, opt, max], or [] where none was set.");
  nb::class_<ISerializationConfig>(m, "ISerializationConfig")
      .def_prop_rw("flags", &ISerializationConfig::getFlags, &ISerializationConfig::setFlags, kInside)
      .def("clear_flag", &ISerializationConfig::clearFlag, nb::arg("flag"), kInside)
      .def("set_flag", &ISerializationConfig::setFlag, nb::arg("flag"), kInside)
      .def("get_flag", &ISerializationConfig::getFlag, nb::arg("flag"), kInside);
  nb::class_<IEngineInspector>(m, "EngineInspector")
      .def_prop_rw("execution_context", &IEngineInspector::getExecutionContext, &IEngineInspector::setExecutionContext,
                   kInside)
      .def("get_layer_information", &IEngineInspector::getLayerInformation, nb::arg("layer_index"), nb::arg("format"),
           kInside, "What layer number layer_index does, as text in the format.")
      .def("get_engine_information", &IEngineInspector::getEngineInformation, nb::arg("format"), kInside,
           "What all layers do, as text in the format.")
      .def_prop_rw("error_recorder", &IEngineInspector::getErrorRecorder, &IEngineInspector::setErrorRecorder, kInside,
                   kept(), or_none());
  nb::class_<ICudaEngine> bound(m, "ICudaEngine");
  freed_by_last_reference(bound);
  addCudaEngine1(bound);
  addCudaEngine2(bound);
  bind_context(m);
}

}  // namespace lathe::python
