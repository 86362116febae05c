// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

// What a factory made; raises RuntimeError with the library's report where it made nothing.
template <typename Object>
static Object* made(Object* object) {
  if (object == nullptr) throw std::runtime_error(lathe::lastError());
  return object;
}

static void bind_config(nb::module_& m) {
  nb::class_<ITimingCache>(m, "ITimingCache")
      .def("serialize", &ITimingCache::serialize)
      .def("combine", &ITimingCache::combine, nb::arg("input_cache"), nb::arg("ignore_mismatch"))
      .def("reset", &ITimingCache::reset);
  nb::class_<IBuilderConfig>(m, "IBuilderConfig")
      .def_prop_rw("avg_timing_iterations", &IBuilderConfig::getAvgTimingIterations,
                   &IBuilderConfig::setAvgTimingIterations, kInside)
      .def_prop_rw("engine_capability", &IBuilderConfig::getEngineCapability, &IBuilderConfig::setEngineCapability,
                   kInside)
      .def("set_memory_pool_limit", &IBuilderConfig::setMemoryPoolLimit, nb::arg("pool"), nb::arg("pool_size"), kInside)
      .def("get_memory_pool_limit", &IBuilderConfig::getMemoryPoolLimit, nb::arg("pool"), kInside)
      .def_prop_rw("flags", &IBuilderConfig::getFlags, &IBuilderConfig::setFlags, kInside)
      .def_prop_rw("default_device_type", &IBuilderConfig::getDefaultDeviceType, &IBuilderConfig::setDefaultDeviceType,
                   kInside)
      .def_prop_rw("DLA_core", &IBuilderConfig::getDLACore, &IBuilderConfig::setDLACore, kInside)
      .def("clear_flag", &IBuilderConfig::clearFlag, nb::arg("flag"), kInside)
      .def("set_flag", &IBuilderConfig::setFlag, nb::arg("flag"), kInside)
      .def("get_flag", &IBuilderConfig::getFlag, nb::arg("flag"), kInside)
      .def("reset", &IBuilderConfig::reset, kInside)
      .def("add_optimization_profile", &IBuilderConfig::addOptimizationProfile, nb::arg("profile"),
           nb::keep_alive<1, 2>(), kInside)
      .def_prop_ro("num_optimization_profiles", &IBuilderConfig::getNbOptimizationProfiles, kInside)
      .def("set_device_type", &IBuilderConfig::setDeviceType, nb::arg("layer"), nb::arg("device_type"), kInside)
      .def("get_device_type", &IBuilderConfig::getDeviceType, nb::arg("layer"), kInside)
      .def("is_device_type_set", &IBuilderConfig::isDeviceTypeSet, nb::arg("layer"), kInside)
      .def("reset_device_type", &IBuilderConfig::resetDeviceType, nb::arg("layer"), kInside)
      .def("can_run_on_DLA", &IBuilderConfig::canRunOnDLA, nb::arg("layer"), kInside)
      .def_prop_rw("profiling_verbosity", &IBuilderConfig::getProfilingVerbosity,
                   &IBuilderConfig::setProfilingVerbosity, kInside)
      .def("set_tactic_sources", &IBuilderConfig::setTacticSources, nb::arg("tactic_sources"), kInside)
      .def("get_tactic_sources", &IBuilderConfig::getTacticSources, kInside)
      .def("set_preview_feature", &IBuilderConfig::setPreviewFeature, nb::arg("feature"), nb::arg("enable"), kInside)
      .def("get_preview_feature", &IBuilderConfig::getPreviewFeature, nb::arg("feature"), kInside)
      .def_prop_rw("builder_optimization_level", &IBuilderConfig::getBuilderOptimizationLevel,
                   &IBuilderConfig::setBuilderOptimizationLevel, kInside)
      .def_prop_rw("max_num_tactics", &IBuilderConfig::getMaxNbTactics, &IBuilderConfig::setMaxNbTactics, kInside)
      .def_prop_rw("hardware_compatibility_level", &IBuilderConfig::getHardwareCompatibilityLevel,
                   &IBuilderConfig::setHardwareCompatibilityLevel, kInside)
      .def_prop_rw("runtime_platform", &IBuilderConfig::getRuntimePlatform, &IBuilderConfig::setRuntimePlatform,
                   kInside)
      .def_prop_rw("progress_monitor", &IBuilderConfig::getProgressMonitor, &IBuilderConfig::setProgressMonitor,
                   kInside, kept(), or_none())
      .def_prop_rw("tiling_optimization_level", &IBuilderConfig::getTilingOptimizationLevel,
                   &IBuilderConfig::setTilingOptimizationLevel, kInside)
      .def_prop_rw("l2_limit_for_tiling", &IBuilderConfig::getL2LimitForTiling, &IBuilderConfig::setL2LimitForTiling,
                   kInside)
      .def_prop_rw("max_aux_streams", &IBuilderConfig::getMaxAuxStreams, &IBuilderConfig::setMaxAuxStreams)
      .def(
          "create_timing_cache",
          [](IBuilderConfig& self, nb::handle data) {
            Bytes bytes(data);
            return self.createTimingCache(bytes.data(), bytes.size());
          },
          nb::arg("serialized_timing_cache"))
      .def("set_timing_cache", &IBuilderConfig::setTimingCache, nb::arg("cache"), nb::arg("ignore_mismatch"),
           nb::keep_alive<1, 2>())
      .def("get_timing_cache", &IBuilderConfig::getTimingCache, kInside)
      .def_prop_rw(
          "profile_stream", [](IBuilderConfig& self) { return address(self.getProfileStream()); },
          [](IBuilderConfig& self, size_t stream) { self.setProfileStream(pointer<cudaStream_t>(stream)); })
      .def_prop_rw(
          "_target", [](IBuilderConfig& self) { return lathe::getTarget(self); },
          [](IBuilderConfig& self, const std::string& target) {
            if (!lathe::setTarget(self, target.c_str())) throw nb::value_error(lathe::lastError());
          })
      .def_prop_rw(
          "_build_budget", [](IBuilderConfig& self) { return lathe::getBuildBudget(self); },
          [](IBuilderConfig& self, double seconds) {
            if (!lathe::setBuildBudget(self, seconds)) throw nb::value_error(lathe::lastError());
          })
      .def(
          "_set_precision",
          [](IBuilderConfig& self, DataType type) {
            if (!lathe::setPrecision(self, type)) throw nb::value_error(lathe::lastError());
          },
          nb::arg("type"));
}

void bind_builder(nb::module_& m) {
  bind_config(m);
  nb::class_<IBuilder>(m, "Builder")
      .def("create_network", &IBuilder::createNetworkV2, nb::arg("flags") = 0U, nb::keep_alive<0, 1>())
      .def_prop_ro("max_DLA_batch_size", &IBuilder::getMaxDLABatchSize, kInside)
      .def_prop_ro("num_DLA_cores", &IBuilder::getNbDLACores, kInside)
      .def("create_optimization_profile", &IBuilder::createOptimizationProfile, kInside)
      .def_prop_rw("error_recorder", &IBuilder::getErrorRecorder, &IBuilder::setErrorRecorder, kInside, kept(),
                   or_none())
      .def("create_builder_config", &IBuilder::createBuilderConfig, nb::keep_alive<0, 1>())
      .def("build_engine_with_config", &IBuilder::buildEngineWithConfig, nb::arg("network"), nb::arg("config"),
           Unlocked())
      .def("is_network_supported", &IBuilder::isNetworkSupported, nb::arg("network"), nb::arg("config"), Unlocked(),
           kInside)
      .def_prop_ro("logger", &IBuilder::getLogger, kInside)
      .def_prop_rw("max_threads", &IBuilder::getMaxThreads, &IBuilder::setMaxThreads, kInside)
      .def("reset", &IBuilder::reset, kInside)
      .def(nb::new_([](ILogger& logger) { return made(createInferBuilder(logger)); }), nb::arg("logger"),
           nb::keep_alive<0, 2>())
      .def_prop_rw(
          "gpu_allocator",
          [](IBuilder&) -> IGpuAllocator* { throw nb::attribute_error("gpu_allocator can only be set"); },
          &IBuilder::setGpuAllocator, kept())
      .def(
          "build_serialized_network",
          [](IBuilder& self, INetworkDefinition& network, IBuilderConfig& config) {
            return self.buildSerializedNetwork(network, config);
          },
          nb::arg("network"), nb::arg("config"), Unlocked(), "The plan, or None after a report to the logger.");
}

}  // namespace lathe::python
