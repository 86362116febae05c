// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string_view.h>

#include <charconv>

#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

static std::string text_of(const TimingCacheKey& key) {
  std::string text = "0x";
  for (const uint8_t byte : key.data)
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  return text;
}

static TimingCacheKey parse_key(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  TimingCacheKey key;
  if (text.size() != 2 * sizeof(key.data)) throw nb::value_error("a key of a timing cache has 32 hexadecimal digits");
  for (size_t i = 0; i < sizeof(key.data); ++i) {
    const char* const end = text.data() + 2 * i + 2;
    if (std::from_chars(end - 2, end, key.data[i], 16).ptr != end)
      throw nb::value_error("a key of a timing cache has 32 hexadecimal digits");
  }
  return key;
}

static void bind_timing_cache(nb::module_& m) {
  nb::class_<TimingCacheKey>(m, "TimingCacheKey",
                             "Names an entry of a timing cache: 16 bytes, as text 0x and 32 digits.")
      .def_static("parse", &parse_key, nb::arg("text"), "Raises ValueError where the text is none of a key.")
      .def("__str__", &text_of);
  nb::class_<TimingCacheValue>(m, "TimingCacheValue",
                               "The tactic that a timing cache has for a key, and its milliseconds.")
      .def(nb::init<uint64_t, float>(), nb::arg("tacticHash"), nb::arg("timingMSec"))
      .def_rw("tacticHash", &TimingCacheValue::tacticHash, "Which tactic; 0xffffffffffffffff for none.")
      .def_rw("timingMSec", &TimingCacheValue::timingMSec, "Milliseconds.");
  nb::class_<ITimingCache>(m, "ITimingCache",
                           "Times that builds have measured, so that later ones need not. One thread at a time.")
      .def(
          "queryKeys",
          [](const ITimingCache& self) {
            return filled<TimingCacheKey>(
                [&](int64_t size, TimingCacheKey* keys) { return self.queryKeys(keys, size); });
          },
          "The keys of all entries.")
      .def("query", &ITimingCache::query, nb::arg("key"),
           "The entry of a key; its tacticHash says where there is none.")
      .def("update", &ITimingCache::update, nb::arg("key"), nb::arg("value"),
           "Forces a tactic, with BuilderFlag.EDITABLE_TIMING_CACHE. False where there is no such entry.")
      .def("serialize", &ITimingCache::serialize, "The cache as bytes, for IBuilderConfig.create_timing_cache().")
      .def("combine", &ITimingCache::combine, nb::arg("input_cache"), nb::arg("ignore_mismatch"),
           "Adds entries of another cache; those that are there stay. False where versions or devices differ, unless "
           "ignore_mismatch.")
      .def("reset", &ITimingCache::reset, "Back to what it was when it was made.");
}

static void add_settings_of_builds(nb::class_<IBuilderConfig>& config) {
  config
      .def_prop_rw(
          "plugins_to_serialize",
          [](const IBuilderConfig& self) {
            std::vector<std::string> paths;
            for (int32_t i = 0; i < self.getNbPluginsToSerialize(); ++i)
              paths.emplace_back(self.getPluginToSerialize(i));
            return paths;
          },
          [](IBuilderConfig& self, const std::vector<std::string>& paths) {
            std::vector<const char*> texts;
            for (const std::string& path : paths) texts.push_back(path.c_str());
            self.setPluginsToSerialize(texts.data(), static_cast<int32_t>(texts.size()));
          },
          "Paths of plugin libraries that plans hold.")
      .def_prop_rw("remote_auto_tuning_config", &IBuilderConfig::getRemoteAutoTuningConfig,
                   &IBuilderConfig::setRemoteAutoTuningConfig, "Not supported: what is set is refused, with a report.")
      .def_prop_rw("build_route", &IBuilderConfig::getBuildRoute, &IBuilderConfig::setBuildRoute,
                   "A JSON list of settings of the tuner; '' for none.")
      .def_prop_ro("all_build_routes", &IBuilderConfig::getAllBuildRoutes,
                   "All settings of the tuner and their values, as JSON.")
      .def_prop_rw(
          "profile_stream", [](IBuilderConfig& self) { return address(self.getProfileStream()); },
          [](IBuilderConfig& self, size_t stream) { self.setProfileStream(pointer<cudaStream_t>(stream)); },
          "The stream, as an address, on which tactics are timed.")
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
      .def("_set_cpu_threads", &set_cpu_threads<IBuilderConfig>, nb::arg("threads"))
      .def(
          "_set_precision",
          [](IBuilderConfig& self, DataType type) {
            if (!lathe::setPrecision(self, type)) throw nb::value_error(lathe::lastError());
          },
          nb::arg("type"));
}

static void bind_config(nb::module_& m) {
  nb::class_<IBuilderConfig> config(m, "IBuilderConfig",
                                    "How a network is built. What has no meaning is reported and changes nothing.");
  freed_by_last_reference(config);
  add_settings_of_builds(config);
  config
      .def_prop_rw("avg_timing_iterations", &IBuilderConfig::getAvgTimingIterations,
                   &IBuilderConfig::setAvgTimingIterations, kInside, "Runs that a time is averaged over.")
      .def_prop_rw("engine_capability", &IBuilderConfig::getEngineCapability, &IBuilderConfig::setEngineCapability,
                   kInside, "What engines are restricted to; STANDARD.")
      .def("set_memory_pool_limit", &IBuilderConfig::setMemoryPoolLimit, nb::arg("pool"), nb::arg("pool_size"), kInside,
           "The most bytes that the pool may have.")
      .def("get_memory_pool_limit", &IBuilderConfig::getMemoryPoolLimit, nb::arg("pool"), kInside, "Bytes.")
      .def_prop_rw("flags", &IBuilderConfig::getFlags, &IBuilderConfig::setFlags, kInside,
                   "Bit i stands for BuilderFlag i.")
      .def_prop_rw("default_device_type", &IBuilderConfig::getDefaultDeviceType, &IBuilderConfig::setDefaultDeviceType,
                   kInside, "GPU; there are no DLA cores.")
      .def_prop_rw("DLA_core", &IBuilderConfig::getDLACore, &IBuilderConfig::setDLACore, kInside,
                   "Without effect: there are no DLA cores.")
      .def("clear_flag", &IBuilderConfig::clearFlag, nb::arg("flag"), kInside, "Unsets a flag.")
      .def("set_flag", &IBuilderConfig::setFlag, nb::arg("flag"), kInside, "Sets a flag.")
      .def("get_flag", &IBuilderConfig::getFlag, nb::arg("flag"), kInside, "Whether the flag is set.")
      .def("reset", &IBuilderConfig::reset, kInside, "Back to the settings that it was made with.")
      .def("add_optimization_profile", &IBuilderConfig::addOptimizationProfile, nb::arg("profile"),
           nb::keep_alive<1, 2>(), kInside, "The number of the profile; -1 where it is inconsistent.")
      .def_prop_ro("num_optimization_profiles", &IBuilderConfig::getNbOptimizationProfiles, kInside,
                   "How many profiles have been added.")
      .def("set_device_type", &IBuilderConfig::setDeviceType, nb::arg("layer"), nb::arg("device_type"), kInside,
           "Without effect: there are no DLA cores.")
      .def("get_device_type", &IBuilderConfig::getDeviceType, nb::arg("layer"), kInside,
           "The device that a layer is for: GPU.")
      .def("is_device_type_set", &IBuilderConfig::isDeviceTypeSet, nb::arg("layer"), kInside,
           "Whether set_device_type() was called for the layer.")
      .def("reset_device_type", &IBuilderConfig::resetDeviceType, nb::arg("layer"), kInside,
           "Takes set_device_type() back.")
      .def("can_run_on_DLA", &IBuilderConfig::canRunOnDLA, nb::arg("layer"), kInside, "Always False.")
      .def_prop_rw("profiling_verbosity", &IBuilderConfig::getProfilingVerbosity,
                   &IBuilderConfig::setProfilingVerbosity, kInside,
                   "How much the engine inspector will tell; LAYER_NAMES_ONLY unless set.")
      .def("set_tactic_sources", &IBuilderConfig::setTacticSources, nb::arg("tactic_sources"), kInside,
           "Bit i stands for TacticSource i. False for unknown ones.")
      .def("get_tactic_sources", &IBuilderConfig::getTacticSources, kInside, "Bit i stands for TacticSource i.")
      .def("set_preview_feature", &IBuilderConfig::setPreviewFeature, nb::arg("feature"), nb::arg("enable"), kInside,
           "Turns a preview feature on or off.")
      .def("get_preview_feature", &IBuilderConfig::getPreviewFeature, nb::arg("feature"), kInside,
           "Whether the preview feature is on.")
      .def_prop_rw("builder_optimization_level", &IBuilderConfig::getBuilderOptimizationLevel,
                   &IBuilderConfig::setBuilderOptimizationLevel, kInside,
                   "0, the quickest build, to 5, the quickest engine; 3 unless set.")
      .def_prop_rw("max_num_tactics", &IBuilderConfig::getMaxNbTactics, &IBuilderConfig::setMaxNbTactics, kInside,
                   "Tactics that are timed at most for each layer; -1: as the builder likes.")
      .def_prop_rw("hardware_compatibility_level", &IBuilderConfig::getHardwareCompatibilityLevel,
                   &IBuilderConfig::setHardwareCompatibilityLevel, kInside,
                   "On which other GPUs engines may run; NONE unless set.")
      .def_prop_rw("runtime_platform", &IBuilderConfig::getRuntimePlatform, &IBuilderConfig::setRuntimePlatform,
                   kInside, "For which operating system engines are built; SAME_AS_BUILD unless set.")
      .def_prop_rw("progress_monitor", &IBuilderConfig::getProgressMonitor, &IBuilderConfig::setProgressMonitor,
                   kInside, kept(), or_none(), "Told the phases of builds, and may end them.")
      .def_prop_rw("tiling_optimization_level", &IBuilderConfig::getTilingOptimizationLevel,
                   &IBuilderConfig::setTilingOptimizationLevel, kInside,
                   "How long layers are looked at that may share the L2 cache.")
      .def_prop_rw("l2_limit_for_tiling", &IBuilderConfig::getL2LimitForTiling, &IBuilderConfig::setL2LimitForTiling,
                   kInside, "Bytes of the L2 cache that layers may use together.")
      .def_prop_rw("max_aux_streams", &IBuilderConfig::getMaxAuxStreams, &IBuilderConfig::setMaxAuxStreams,
                   "Streams that engines may use beside the one that they are run on.")
      .def(
          "create_timing_cache",
          [](IBuilderConfig& self, nb::handle data) {
            Bytes bytes(data);
            return self.createTimingCache(bytes.data(), bytes.size());
          },
          nb::arg("serialized_timing_cache"),
          "A cache of serialized bytes; of none, an empty one. None where they are no cache.")
      .def("set_timing_cache", &IBuilderConfig::setTimingCache, nb::arg("cache"), nb::arg("ignore_mismatch"),
           nb::keep_alive<1, 2>(),
           "The cache that builds use and add to. False where it is of another device, unless ignore_mismatch.")
      .def("get_timing_cache", &IBuilderConfig::getTimingCache, kInside,
           "The cache that set_timing_cache() was given, or None.");
}

void bind_builder(nb::module_& m) {
  bind_timing_cache(m);
  bind_config(m);
  nb::class_<IBuilder> builder(m, "Builder", "Makes networks, configurations and engines. One thread at a time.");
  freed_by_last_reference(builder);
  builder
      .def("create_network", &IBuilder::createNetworkV2, nb::arg("flags") = 0U, nb::keep_alive<0, 1>(),
           "An empty network. flags: bit i stands for NetworkDefinitionCreationFlag i.")
      .def_prop_ro("max_DLA_batch_size", &IBuilder::getMaxDLABatchSize, kInside, "0: there are no DLA cores.")
      .def_prop_ro("num_DLA_cores", &IBuilder::getNbDLACores, kInside, "0: there are no DLA cores.")
      .def("create_optimization_profile", &IBuilder::createOptimizationProfile, kInside,
           "A profile, which the builder owns.")
      .def_prop_rw("error_recorder", &IBuilder::getErrorRecorder, &IBuilder::setErrorRecorder, kInside, kept(),
                   or_none(), "Told of errors instead of the logger; networks made later take it over. None for none.")
      .def("create_builder_config", &IBuilder::createBuilderConfig, nb::keep_alive<0, 1>(),
           "A configuration, with its defaults.")
      .def("build_engine_with_config", &IBuilder::buildEngineWithConfig, nb::arg("network"), nb::arg("config"),
           Unlocked(), "The engine itself, without a plan; None after a report to the logger.")
      .def("is_network_supported", &IBuilder::isNetworkSupported, nb::arg("network"), nb::arg("config"), Unlocked(),
           kInside, "Whether it can be built for this configuration; if not, the logger is told why.")
      .def_prop_ro("logger", &IBuilder::getLogger, kInside, "The logger that it was made with.")
      .def_prop_rw("max_threads", &IBuilder::getMaxThreads, &IBuilder::setMaxThreads, kInside,
                   "Threads that builds use at most; at least 1.")
      .def("reset", &IBuilder::reset, kInside, "Back to the settings that it was made with.")
      .def(nb::new_([](ILogger& logger) { return made(createInferBuilder(logger)); }), nb::arg("logger"),
           nb::keep_alive<0, 2>())
      .def_prop_rw(
          "gpu_allocator",
          [](IBuilder&) -> IGpuAllocator* { throw nb::attribute_error("gpu_allocator can only be set"); },
          &IBuilder::setGpuAllocator, kept(),
          "Who gives device memory; it can only be set, and raises AttributeError when it is read.")
      .def(
          "build_serialized_network",
          [](IBuilder& self, INetworkDefinition& network, IBuilderConfig& config) {
            return self.buildSerializedNetwork(network, config);
          },
          nb::arg("network"), nb::arg("config"), Unlocked(), "The plan, or None after a report to the logger.")
      .def("build_serialized_network_to_stream", &IBuilder::buildSerializedNetworkToStream, nb::arg("network"),
           nb::arg("config"), nb::arg("writer"), Unlocked(), "Writes the plan; False after a report to the logger.")
      .def("get_plugin_registry", &IBuilder::getPluginRegistry, kInside,
           "A registry of the builder's own, whose parent is that of the process.");
}

}  // namespace lathe::python
