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
          [](IExecutionContext& self, size_t memory) { self.setDeviceMemory(pointer<void*>(memory)); },
          "The address of scratch memory for contexts made for USER_MANAGED; it can only be set. Aligned to 256 bytes "
          "on GPUs.")
      .def("get_runtime_config", &IExecutionContext::getRuntimeConfig, nb::keep_alive<0, 1>(), Unlocked(),
           "What the context was made with.")
      .def(
          "set_communicator",
          [](IExecutionContext& self, size_t communicator) {
            return self.setCommunicator(pointer<void*>(communicator));
          },
          nb::arg("communicator"), "The communicator of collective layers, an address; 0 for none. False on failure.");
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
      .def(
          "get_input_consumed_event", [](IExecutionContext& self) { return address(self.getInputConsumedEvent()); },
          "The event that is recorded once inputs may be overwritten; 0 for none.");
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

void bind_context(nb::module_& m) {
  nb::class_<IExecutionContext> context(
      m, "IExecutionContext", nb::dynamic_attr(),
      "Runs an engine, one inference at a time: shapes, addresses and scratch memory. One thread at a time. Methods "
      "that take the name of a tensor return False, None or a shape of unknown rank where the engine has none such.");
  freed_by_last_reference(context);
  add_memory(context);
  add_runs(context);
  addStreams(context);
  context
      .def_prop_rw("debug_sync", &IExecutionContext::getDebugSync, &IExecutionContext::setDebugSync, kInside,
                   "Whether each step is waited for, so that a failure names it.")
      .def_prop_rw("profiler", &IExecutionContext::getProfiler, &IExecutionContext::setProfiler, kInside, kept(),
                   or_none(), "Told the time of each layer, in milliseconds, after each run.")
      .def_prop_ro("engine", &IExecutionContext::getEngine, kInside, "The engine that it runs.")
      .def_prop_rw("name", &IExecutionContext::getName, &IExecutionContext::setName, kInside, kept(),
                   "By which reports call it. Copied.")
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
      .def("get_output_allocator", &IExecutionContext::getOutputAllocator, nb::arg("name"), kInside,
           "The allocator of an output; None where it has none.")
      .def("get_max_output_size", &IExecutionContext::getMaxOutputSize, nb::arg("name"), kInside,
           "Bytes that the output takes at most for the shapes that are set; -1 where there is no bound.")
      .def_prop_rw("temporary_allocator", &IExecutionContext::getTemporaryStorageAllocator,
                   &IExecutionContext::setTemporaryStorageAllocator, kInside, kept(), or_none(),
                   "Gives memory to work in whose size is known only while the engine runs.")
      .def_prop_ro("all_binding_shapes_specified", &IExecutionContext::allInputDimensionsSpecified, kInside,
                   "Whether all inputs have their shapes.")
      .def_prop_rw("error_recorder", &IExecutionContext::getErrorRecorder, &IExecutionContext::setErrorRecorder,
                   kInside, kept(), or_none(), "Told of errors instead of the logger; None for none.")
      .def_prop_rw("enqueue_emits_profile", &IExecutionContext::getEnqueueEmitsProfile,
                   &IExecutionContext::setEnqueueEmitsProfile,
                   "Whether runs themselves report to the profiler, and wait for it; True unless set. Otherwise "
                   "report_to_profiler() does.")
      .def("report_to_profiler", &IExecutionContext::reportToProfiler, kInside,
           "Tells the profiler of the last run, where enqueue_emits_profile is off. False where there was none.")
      .def_prop_rw("persistent_cache_limit", &IExecutionContext::getPersistentCacheLimit,
                   &IExecutionContext::setPersistentCacheLimit, kInside,
                   "Bytes of the L2 cache of a GPU that are set aside for the context; 0 at first.")
      .def_prop_rw("nvtx_verbosity", &IExecutionContext::getNvtxVerbosity, &IExecutionContext::setNvtxVerbosity,
                   kInside, "How much of runs tools can see; at most the verbosity of the build.")
      .def("set_debug_listener", &IExecutionContext::setDebugListener, nb::arg("listener"), nb::keep_alive<1, 2>(),
           kInside, "Who is told of debug tensors; None for nobody.")
      .def("get_debug_listener", &IExecutionContext::getDebugListener, kInside,
           "Who is told of debug tensors; None for nobody.")
      .def("set_tensor_debug_state", &IExecutionContext::setTensorDebugState, nb::arg("name"), nb::arg("flag"), kInside,
           "Whether the debug listener is told of a tensor that was marked by mark_debug(); off at first.")
      .def("get_debug_state", &IExecutionContext::getDebugState, nb::arg("name"), kInside,
           "Whether the debug listener is told of the tensor.")
      .def("set_all_tensors_debug_state", &IExecutionContext::setAllTensorsDebugState, nb::arg("flag"), kInside,
           "Whether the debug listener is told of all tensors that were marked by mark_debug().")
      .def_prop_rw(
          "unfused_tensors_debug_state", &IExecutionContext::getUnfusedTensorsDebugState,
          &IExecutionContext::setUnfusedTensorsDebugState, kInside,
          "Whether the debug listener is told of tensors that were marked by mark_unfused_tensors_as_debug_tensors().");
}

}  // namespace lathe::python
