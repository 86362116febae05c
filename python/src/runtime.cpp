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
  nb::class_<IRefitter> refitter(m, "Refitter");
  freed_by_last_reference(refitter);
  refitter
      .def("set_weights", &IRefitter::setWeights, nb::arg("layer_name"), nb::arg("role"), nb::arg("weights"),
           nb::keep_alive<1, 4>(), kInside, Unlocked(),
           "New weights of a layer, which are kept until the refit. False where the layer has none of that role or "
           "they do not fit.")
      .def("refit_cuda_engine", &IRefitter::refitCudaEngine, Unlocked(), kInside,
           "Gives the engine the new weights. False after a report to the logger, where some are missing for one.")
      .def_prop_rw("error_recorder", &IRefitter::getErrorRecorder, &IRefitter::setErrorRecorder, kInside, kept(),
                   or_none())
      .def_prop_ro("logger", &IRefitter::getLogger, kInside)
      .def_prop_rw("max_threads", &IRefitter::getMaxThreads, &IRefitter::setMaxThreads, kInside)
      .def("get_named_weights", &IRefitter::getNamedWeights, nb::arg("weights_name"), kInside)
      .def("get_weights_location", &IRefitter::getWeightsLocation, nb::arg("weights_name"), kInside)
      .def("unset_named_weights", &IRefitter::unsetNamedWeights, nb::arg("weights_name"), kInside)
      .def_prop_rw("weights_validation", &IRefitter::getWeightsValidation, &IRefitter::setWeightsValidation, kInside)
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
          nb::arg("stream_handle"), Unlocked());
}

static void bind_runtime_cache(nb::module_& m) {
  nb::class_<IRuntimeCache>(m, "IRuntimeCache")
      .def("serialize", &IRuntimeCache::serialize, Unlocked())
      .def(
          "deserialize",
          [](IRuntimeCache& self, nb::object given) {
            const Bytes bytes(given);
            const nb::gil_scoped_release unlocked;
            return self.deserialize(bytes.data(), bytes.size());
          },
          nb::arg("serialized_cache"), "Adds kernels; False where they are damaged, or of another machine or version.")
      .def("reset", &IRuntimeCache::reset)
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
  nb::class_<IRuntimeConfig>(m, "IRuntimeConfig")
      .def("create_runtime_cache", &IRuntimeConfig::createRuntimeCache, nb::keep_alive<0, 1>())
      .def("set_runtime_cache", &IRuntimeConfig::setRuntimeCache, nb::arg("cache"), nb::keep_alive<1, 2>())
      .def("get_runtime_cache", &IRuntimeConfig::getRuntimeCache, kInside)
      .def("set_execution_context_allocation_strategy", &IRuntimeConfig::setExecutionContextAllocationStrategy,
           nb::arg("strategy") = ExecutionContextAllocationStrategy::kSTATIC, Unlocked())
      .def("get_execution_context_allocation_strategy", &IRuntimeConfig::getExecutionContextAllocationStrategy)
      .def_prop_rw("dynamic_shapes_kernel_specialization_strategy",
                   &IRuntimeConfig::getDynamicShapesKernelSpecializationStrategy,
                   &IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy)
      .def_prop_rw("cuda_graph_strategy", &IRuntimeConfig::getCudaGraphStrategy,
                   [](IRuntimeConfig& self, CudaGraphStrategy strategy) {
                     if (!self.setCudaGraphStrategy(strategy)) throw nb::value_error(lathe::lastError());
                   });
}

void bind_runtime(nb::module_& m) {
  bind_runtime_cache(m);
  bind_runtime_config(m);
  nb::class_<IRuntime> runtime(m, "Runtime");
  freed_by_last_reference(runtime);
  runtime.def_prop_rw("DLA_core", &IRuntime::getDLACore, &IRuntime::setDLACore, kInside)
      .def_prop_ro("num_DLA_cores", &IRuntime::getNbDLACores, kInside)
      .def_prop_rw("error_recorder", &IRuntime::getErrorRecorder, &IRuntime::setErrorRecorder, kInside, kept(),
                   or_none())
      .def_prop_ro("logger", &IRuntime::getLogger, kInside)
      .def_prop_rw("max_threads", &IRuntime::getMaxThreads, &IRuntime::setMaxThreads, kInside,
                   "Threads that loading uses at most; at least 1.")
      .def_prop_rw("temporary_directory", &IRuntime::getTemporaryDirectory, &IRuntime::setTemporaryDirectory, kInside,
                   "Where temporary files go.")
      .def_prop_rw("tempfile_control_flags", &IRuntime::getTempfileControlFlags, &IRuntime::setTempfileControlFlags,
                   kInside)
      .def("load_runtime", &IRuntime::loadRuntime, nb::arg("path"), kInside,
           "A runtime of another version, from its library. None after a report to the logger.")
      .def_prop_rw("engine_host_code_allowed", &IRuntime::getEngineHostCodeAllowed, &IRuntime::setEngineHostCodeAllowed,
                   kInside, "Whether plans may bring code that runs on the host: of plans that are trusted.")
      .def(nb::new_([](ILogger& logger) { return made(createInferRuntime(logger)); }), nb::arg("logger"),
           nb::keep_alive<0, 2>())
      .def_prop_rw(
          "gpu_allocator",
          [](IRuntime&) -> IGpuAllocator* { throw nb::attribute_error("gpu_allocator can only be set"); },
          &IRuntime::setGpuAllocator, kept())
      .def(
          "deserialize_cuda_engine",
          [](IRuntime& self, IStreamReaderV2& reader) { return self.deserializeCudaEngine(reader); },
          nb::arg("stream_reader_v2"), nb::keep_alive<0, 1>(), Unlocked())
      .def(
          "deserialize_cuda_engine",
          [](IRuntime& self, nb::handle plan) {
            const Bytes bytes(plan);
            nb::gil_scoped_release unlocked;
            return self.deserializeCudaEngine(bytes.data(), bytes.size());
          },
          nb::arg("serialized_engine"), nb::keep_alive<0, 1>(), "The engine, or None after a report to the logger.")
      .def("get_plugin_registry", &IRuntime::getPluginRegistry, kInside)
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
