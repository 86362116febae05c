// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

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
      .def("create_serialization_config", &ICudaEngine::createSerializationConfig, nb::keep_alive<0, 1>(),
           "Settings of serialize_with_config().")
      .def("serialize_with_config", &ICudaEngine::serializeWithConfig, Unlocked(),
           "The plan, with or without weights, as the configuration says; None after a report to the logger.")
      .def("get_device_memory_size_for_profile_v2", &ICudaEngine::getDeviceMemorySizeForProfileV2,
           nb::arg("profile_index"), kInside,
           "Bytes that a context works in with this profile; -1 where the profile leaves a size open.")
      .def_prop_ro("device_memory_size_v2", &ICudaEngine::getDeviceMemorySizeV2, kInside,
                   "Bytes that a context works in, with the profile that takes most; -1 where one leaves a size open.")
      .def_prop_ro("refittable", &ICudaEngine::isRefittable, kInside, "Whether it can be given other weights.")
      .def_prop_ro("name", &ICudaEngine::getName, kInside, "The name of the network.")
      .def_prop_ro("num_optimization_profiles", &ICudaEngine::getNbOptimizationProfiles, kInside,
                   "How many profiles it was built for; at least 1.")
      .def_prop_ro("engine_capability", &ICudaEngine::getEngineCapability, kInside,
                   "What the engine is restricted to; STANDARD.")
      .def_prop_ro("num_io_tensors", &ICudaEngine::getNbIOTensors, kInside, "How many inputs and outputs there are.")
      .def("get_tensor_name", &ICudaEngine::getIOTensorName, nb::arg("index"), kInside,
           "The name of input or output number index.")
      .def("get_tensor_mode", &ICudaEngine::getTensorIOMode, nb::arg("name"), kInside,
           "INPUT or OUTPUT; NONE for unknown names.")
      .def("is_shape_inference_io", &ICudaEngine::isShapeInferenceIO, nb::arg("name"), kInside,
           "Whether shapes follow from the contents of this input, or this output holds a shape.")
      .def("get_tensor_shape", &ICudaEngine::getTensorShape, nb::arg("name"), kInside,
           "The shape of an input or output, -1 for sizes known at run time; of unknown rank for unknown names.")
      .def("get_tensor_dtype", &ICudaEngine::getTensorDataType, nb::arg("name"), kInside,
           "The type of an input or output; FLOAT for unknown names.")
      .def("get_tensor_location", &ICudaEngine::getTensorLocation, nb::arg("name"), kInside,
           "HOST where the values must be in the host's memory; DEVICE for unknown names.")
      .def_prop_rw("error_recorder", &ICudaEngine::getErrorRecorder, &ICudaEngine::setErrorRecorder, kInside, kept(),
                   or_none(), "Told of errors instead of the logger; contexts made later take it over. None for none.")
      .def_prop_ro("tactic_sources", &ICudaEngine::getTacticSources, kInside, "Bit i stands for TacticSource i.")
      .def_prop_ro("profiling_verbosity", &ICudaEngine::getProfilingVerbosity, kInside,
                   "How much the inspector can tell.")
      .def("create_engine_inspector", &ICudaEngine::createEngineInspector, nb::keep_alive<0, 1>(),
           "What describes the layers of the engine.")
      .def_prop_ro("hardware_compatibility_level", &ICudaEngine::getHardwareCompatibilityLevel, kInside,
                   "On which other GPUs the engine may run.")
      .def_prop_ro("num_aux_streams", &ICudaEngine::getNbAuxStreams, kInside,
                   "Streams that runs use beside the one that they are given.")
      .def_prop_rw("weight_streaming_budget_v2", &ICudaEngine::getWeightStreamingBudgetV2,
                   &ICudaEngine::setWeightStreamingBudgetV2, kInside,
                   "Bytes of weights that stay on the device; the rest is copied as it is needed.")
      .def_prop_ro("streamable_weights_size", &ICudaEngine::getStreamableWeightsSize, kInside,
                   "Bytes of weights that need not stay on the device.")
      .def_prop_ro("weight_streaming_scratch_memory_size", &ICudaEngine::getWeightStreamingScratchMemorySize, kInside,
                   "Bytes on the device that streamed weights pass through.");
}

static void add_making(nb::class_<ICudaEngine>& bound) {
  bound
      .def("is_debug_tensor", &ICudaEngine::isDebugTensor, nb::arg("name"), kInside,
           "Whether it was marked by mark_debug() when the engine was built.")
      .def("create_runtime_config", &ICudaEngine::createRuntimeConfig, nb::keep_alive<0, 1>(), Unlocked(),
           "Settings of contexts, with their defaults.")
      .def("get_engine_stat", &ICudaEngine::getEngineStat, nb::arg("stat") = EngineStat::kTOTAL_WEIGHTS_SIZE,
           Unlocked(), kInside, "Bytes of weights; -1 where it does not apply.")
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
          nb::arg("name"), "How an input or output lies in memory; LINEAR for unknown names.")
      .def(
          "get_tensor_format",
          [](ICudaEngine& self, const char* name, int32_t profile) { return self.getTensorFormat(name, profile); },
          nb::arg("name"), nb::arg("profile_index"), "How an input or output lies in memory; LINEAR for unknown names.")
      .def(
          "get_tensor_format_desc", [](ICudaEngine& self, const char* name) { return self.getTensorFormatDesc(name); },
          nb::arg("name"), "How an input or output lies in memory, as text; '' for unknown names.")
      .def(
          "get_tensor_format_desc",
          [](ICudaEngine& self, const char* name, int32_t profile) { return self.getTensorFormatDesc(name, profile); },
          nb::arg("name"), nb::arg("profile_index"),
          "How an input or output lies in memory, as text; '' for unknown names.");
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
          nb::arg("strategy") = ExecutionContextAllocationStrategy::kSTATIC, nb::keep_alive<0, 1>(), Unlocked(),
          "What runs the engine, with scratch memory as the strategy says; None after a report to the logger.")
      .def(
          "create_execution_context",
          [](ICudaEngine& self, IRuntimeConfig& config) { return self.createExecutionContext(&config); },
          nb::arg("runtime_config"), nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), Unlocked(),
          "What runs the engine, with scratch memory as the strategy says; None after a report to the logger.")
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
  nb::class_<IOptimizationProfile>(m, "IOptimizationProfile",
                                   "Ranges of the open sizes of inputs, for which an engine is built. "
                                   "Builder.create_optimization_profile() makes it, and the builder owns it.")
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
          nb::arg("input"), nb::arg("min"), nb::arg("opt"), nb::arg("max"),
          "The least, best and largest shape of an input, 0 <= min <= opt <= max. Raises RuntimeError where they "
          "contradict one another.")
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
          nb::arg("input"), nb::arg("min"), nb::arg("opt"), nb::arg("max"),
          "The least, best and largest values of an input that is a shape tensor. Raises RuntimeError where they "
          "contradict one another.")
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
  nb::class_<ISerializationConfig>(m, "ISerializationConfig", "How plans are written.")
      .def_prop_rw("flags", &ISerializationConfig::getFlags, &ISerializationConfig::setFlags, kInside,
                   "Bit i stands for SerializationFlag i.")
      .def("clear_flag", &ISerializationConfig::clearFlag, nb::arg("flag"), kInside, "Unsets a flag.")
      .def("set_flag", &ISerializationConfig::setFlag, nb::arg("flag"), kInside, "Sets a flag.")
      .def("get_flag", &ISerializationConfig::getFlag, nb::arg("flag"), kInside, "Whether the flag is set.");
  nb::class_<IEngineInspector>(m, "EngineInspector",
                               "Describes the layers of an engine, in as much detail as the build kept "
                               "(IBuilderConfig.profiling_verbosity). One thread at a time.")
      .def_prop_rw("execution_context", &IEngineInspector::getExecutionContext, &IEngineInspector::setExecutionContext,
                   kInside, "Whose shapes are shown; None for those of the engine.")
      .def("get_layer_information", &IEngineInspector::getLayerInformation, nb::arg("layer_index"), nb::arg("format"),
           kInside, "What layer number layer_index does, as text in the format.")
      .def("get_engine_information", &IEngineInspector::getEngineInformation, nb::arg("format"), kInside,
           "What all layers do, as text in the format.")
      .def_prop_rw("error_recorder", &IEngineInspector::getErrorRecorder, &IEngineInspector::setErrorRecorder, kInside,
                   kept(), or_none(), "Told of errors instead of the logger; None for none.");
  nb::class_<ICudaEngine> bound(m, "ICudaEngine",
                                "A network that is ready to run, on a GPU or a CPU. Immutable but for refits: several "
                                "threads may use it, each with a context of its own.");
  freed_by_last_reference(bound);
  addCudaEngine1(bound);
  add_making(bound);
  addCudaEngine2(bound);
}

}  // namespace lathe::python
