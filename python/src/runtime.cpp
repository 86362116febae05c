// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

template <typename Getter>
static std::vector<const char*> names_of(IRefitter& refitter, Getter getter) {
  const nb::gil_scoped_release unlocked;  // a run that it waits for may want to call back
  return filled<const char*>([&](int32_t size, const char** names) { return (refitter.*getter)(size, names); });
}

// Names of layers, and the role of each one's weights.
template <typename Getter>
static nb::tuple layers_of(IRefitter& refitter, Getter getter) {
  std::vector<const char*> names;
  std::vector<WeightsRole> roles;
  {
    const nb::gil_scoped_release unlocked;
    names.resize(static_cast<size_t>((refitter.*getter)(0, nullptr, nullptr)));
    roles.resize(names.size());
    (refitter.*getter)(static_cast<int32_t>(names.size()), names.data(), roles.data());
  }
  return nb::make_tuple(names, roles);
}

static void bind_refitter(nb::module_& m) {
  nb::class_<IRefitter> refitter(m, "Refitter",
                                 "Gives an engine other weights, in place. Nothing may run the engine meanwhile; "
                                 "contexts stay valid. One thread at a time.");
  freed_by_last_reference(refitter);
  refitter
      .def("set_weights", &IRefitter::setWeights, nb::arg("layer_name"), nb::arg("role"), nb::arg("weights"),
           nb::keep_alive<1, 4>(), kInside, Unlocked(),
           "New weights of a layer, which are kept until the refit. False where the layer has none of that role or "
           "they do not fit.")
      .def("refit_cuda_engine", &IRefitter::refitCudaEngine, Unlocked(), kInside,
           "Gives the engine the new weights. False after a report to the logger, where some are missing for one.")
      .def_prop_rw("error_recorder", &IRefitter::getErrorRecorder, &IRefitter::setErrorRecorder, kInside, kept(),
                   or_none(), "Told of errors instead of the logger; None for none.")
      .def_prop_ro("logger", &IRefitter::getLogger, kInside, "The logger that it was made with.")
      .def_prop_rw("max_threads", &IRefitter::getMaxThreads, &IRefitter::setMaxThreads, kInside,
                   "Threads that refits use at most; at least 1.")
      .def("get_named_weights", &IRefitter::getNamedWeights, nb::arg("weights_name"), kInside,
           "The weights that were set by this name; empty ones where none were.")
      .def("get_weights_location", &IRefitter::getWeightsLocation, nb::arg("weights_name"), kInside,
           "Where weights of this name lie that were set: host or device.")
      .def("unset_named_weights", &IRefitter::unsetNamedWeights, nb::arg("weights_name"), kInside,
           "Forgets weights that were set by this name. False where there are none.")
      .def_prop_rw("weights_validation", &IRefitter::getWeightsValidation, &IRefitter::setWeightsValidation, kInside,
                   "Whether new weights are checked for values that have no place in the engine; True unless set.")
      .def("get_weights_prototype", &IRefitter::getWeightsPrototype, nb::arg("weights_name"), kInside,
           "Type and count of the weights, without values; count -1 for unknown names.")
      .def(nb::new_([](ICudaEngine& engine, ILogger& logger) { return made(createInferRefitter(engine, logger)); }),
           nb::arg("engine"), nb::arg("logger"), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>())
      .def(
          "set_named_weights",
          [](IRefitter& self, const char* name, Weights weights) { return self.setNamedWeights(name, weights); },
          nb::arg("name"), nb::arg("weights"), nb::keep_alive<1, 3>(), Unlocked(),
          "New weights by their name, which are kept until the refit. False where there are none or they do not fit.")
      .def(
          "get_missing_weights", [](IRefitter& self) { return names_of(self, &IRefitter::getMissingWeights); },
          "Names of weights that a refit still needs.")
      .def(
          "get_all_weights", [](IRefitter& self) { return names_of(self, &IRefitter::getAllWeights); },
          "Names of all weights that can be refitted.")
      .def(
          "get_missing", [](IRefitter& self) { return layers_of(self, &IRefitter::getMissing); },
          nb::sig("def get_missing(self) -> tuple[list[str], list[WeightsRole]]"),
          "Layers and the roles of their weights.")
      .def(
          "get_all", [](IRefitter& self) { return layers_of(self, &IRefitter::getAll); },
          nb::sig("def get_all(self) -> tuple[list[str], list[WeightsRole]]"), "Layers and the roles of their weights.")
      .def(
          "refit_cuda_engine_async",
          [](IRefitter& self, size_t stream) { return self.refitCudaEngineAsync(pointer<cudaStream_t>(stream)); },
          nb::arg("stream_handle"), Unlocked(),
          "As refit_cuda_engine(), on a stream, an address; weights in device memory may go when it has got there.");
}

static void bind_runtime_cache(nb::module_& m) {
  nb::class_<IRuntimeCache>(m, "IRuntimeCache",
                            "Kernels that were compiled while engines ran, which a later process need not compile "
                            "again. Threads, contexts and engines may share it.")
      .def("serialize", &IRuntimeCache::serialize, Unlocked(),
           "The kernels as bytes, for deserialize(). None on failure.")
      .def(
          "deserialize",
          [](IRuntimeCache& self, nb::object given) {
            const Bytes bytes(given);
            const nb::gil_scoped_release unlocked;
            return self.deserialize(bytes.data(), bytes.size());
          },
          nb::arg("serialized_cache"), "Adds kernels; False where they are damaged, or of another machine or version.")
      .def("reset", &IRuntimeCache::reset, "Forgets all kernels. Contexts go on with theirs.")
      .def(
          "_load", [](IRuntimeCache& self, const char* path) { return lathe::loadRuntimeCache(self, path); },
          nb::arg("path"), Unlocked(), "Adds the kernels of a file. False, with a warning, where it is of no use.")
      .def(
          "_save", [](const IRuntimeCache& self, const char* path) { return lathe::saveRuntimeCache(self, path); },
          nb::arg("path"), Unlocked(), "Writes a file, and keeps what it has. False, with a warning, where that fails.")
      .def("_json", [](const IRuntimeCache& self) {
        const std::unique_ptr<IHostMemory> report(made(lathe::runtimeCacheJson(self)));
        return std::string(static_cast<const char*>(report->data()), report->size());
      });
}

static void bind_runtime_config(nb::module_& m) {
  nb::class_<IRuntimeConfig>(m, "IRuntimeConfig", "How contexts are set up: each takes what is set when it is made.")
      .def("create_runtime_cache", &IRuntimeConfig::createRuntimeCache, nb::keep_alive<0, 1>(),
           "An empty cache for kernels of the engine's device.")
      .def("set_runtime_cache", &IRuntimeConfig::setRuntimeCache, nb::arg("cache"), nb::keep_alive<1, 2>(),
           "Where contexts look for kernels that have to be compiled, and put them. False where it is for another "
           "device.")
      .def("get_runtime_cache", &IRuntimeConfig::getRuntimeCache, kInside, "The cache that was set, or None.")
      .def("set_execution_context_allocation_strategy", &IRuntimeConfig::setExecutionContextAllocationStrategy,
           nb::arg("strategy") = ExecutionContextAllocationStrategy::kSTATIC, Unlocked(),
           "When contexts get their scratch memory.")
      .def("get_execution_context_allocation_strategy", &IRuntimeConfig::getExecutionContextAllocationStrategy,
           "When contexts get their scratch memory; STATIC unless set.")
      .def_prop_rw("dynamic_shapes_kernel_specialization_strategy",
                   &IRuntimeConfig::getDynamicShapesKernelSpecializationStrategy,
                   &IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy,
                   "What becomes of kernels for open sizes when sizes come that are new; LAZY unless set.")
      .def_prop_rw(
          "cuda_graph_strategy", &IRuntimeConfig::getCudaGraphStrategy,
          [](IRuntimeConfig& self, CudaGraphStrategy strategy) {
            if (!self.setCudaGraphStrategy(strategy)) throw nb::value_error(lathe::lastError());
          },
          "Whether runs are captured as CUDA graphs; DISABLED unless set. Raises ValueError for what is no strategy.");
}

void bind_runtime(nb::module_& m) {
  bind_runtime_cache(m);
  bind_runtime_config(m);
  nb::class_<IRuntime> runtime(
      m, "Runtime", "Loads plans. Several threads may do so at once. A plan is code: load none that you do not trust.");
  freed_by_last_reference(runtime);
  runtime
      .def_prop_rw("DLA_core", &IRuntime::getDLACore, &IRuntime::setDLACore, kInside,
                   "Without effect: there are no DLA cores.")
      .def_prop_ro("num_DLA_cores", &IRuntime::getNbDLACores, kInside, "0: there are no DLA cores.")
      .def_prop_rw("error_recorder", &IRuntime::getErrorRecorder, &IRuntime::setErrorRecorder, kInside, kept(),
                   or_none(), "Told of errors instead of the logger; engines made later take it over. None for none.")
      .def_prop_ro("logger", &IRuntime::getLogger, kInside, "The logger that it was made with.")
      .def_prop_rw("max_threads", &IRuntime::getMaxThreads, &IRuntime::setMaxThreads, kInside,
                   "Threads that loading uses at most; at least 1.")
      .def_prop_rw("temporary_directory", &IRuntime::getTemporaryDirectory, &IRuntime::setTemporaryDirectory, kInside,
                   "Where temporary files go.")
      .def_prop_rw("tempfile_control_flags", &IRuntime::getTempfileControlFlags, &IRuntime::setTempfileControlFlags,
                   kInside, "Bit i stands for TempfileControlFlag i: which temporary files may be used.")
      .def("load_runtime", &IRuntime::loadRuntime, nb::arg("path"), kInside,
           "A runtime of another version, from its library. None after a report to the logger.")
      .def_prop_rw("engine_host_code_allowed", &IRuntime::getEngineHostCodeAllowed, &IRuntime::setEngineHostCodeAllowed,
                   kInside, "Whether plans may bring code that runs on the host: of plans that are trusted.")
      .def(nb::new_([](ILogger& logger) { return made(createInferRuntime(logger)); }), nb::arg("logger"),
           nb::keep_alive<0, 2>())
      .def_prop_rw(
          "gpu_allocator",
          [](IRuntime&) -> IGpuAllocator* { throw nb::attribute_error("gpu_allocator can only be set"); },
          &IRuntime::setGpuAllocator, kept(),
          "Who gives device memory; it can only be set, and raises AttributeError when it is read.")
      .def(
          "deserialize_cuda_engine",
          [](IRuntime& self, IStreamReaderV2& reader) { return self.deserializeCudaEngine(reader); },
          nb::arg("stream_reader_v2"), nb::keep_alive<0, 1>(), Unlocked(),
          "The engine that a reader gives; None after a report to the logger.")
      .def(
          "deserialize_cuda_engine",
          [](IRuntime& self, nb::handle plan) {
            const Bytes bytes(plan);
            nb::gil_scoped_release unlocked;
            return self.deserializeCudaEngine(bytes.data(), bytes.size());
          },
          nb::arg("serialized_engine"), nb::keep_alive<0, 1>(), "The engine, or None after a report to the logger.")
      .def("get_plugin_registry", &IRuntime::getPluginRegistry, kInside,
           "A registry of the runtime's own, whose parent is that of the process.")
      .def("_set_cpu_threads", &set_cpu_threads<IRuntime>, nb::arg("threads"))
      .def(
          "_set_runtime_cache_file",
          [](IRuntime& self, const char* path, int64_t most_bytes) {
            if (!lathe::setRuntimeCacheFile(self, path, most_bytes)) throw nb::value_error(lathe::lastError());
          },
          nb::arg("path"), nb::arg("most_bytes") = 0,
          "Where engines that are loaded from now on look for kernels that were compiled for the GPU, and keep theirs.")
      .def(
          "_load", [](IRuntime& self, const std::string& path) { return lathe::loadEngineFile(self, path.c_str()); },
          nb::arg("path"), nb::keep_alive<0, 1>(), Unlocked());
  bind_refitter(m);
}

}  // namespace lathe::python
