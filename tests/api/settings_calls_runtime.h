// SPDX-License-Identifier: Apache-2.0
// A call of every setter of the runtime side.
#pragma once

#include <map>

#include "NvInferPlugin.h"
#include "api/settings_world.h"

namespace nvinfer1 {

inline const std::string kName = "name";

// Sets something to another value than its default. Gives whether the object took it, as the result or a getter says.
using Call = bool (*)(World&);

template <class Object>
inline bool takes_recorder(World& w, Object& object) {
  object.setErrorRecorder(&w.recorder);
  const bool taken = object.getErrorRecorder() == &w.recorder && w.recorder.references == 1;
  object.setErrorRecorder(nullptr);
  return taken && w.recorder.references == 0;
}

inline bool is(const char* text, const std::string& wanted) { return text && text == wanted; }

inline std::map<std::string, Call> refitter_calls() {
  return {
      {"IRefitter::setWeights",
       [](World& w) { return w.weights().setWeights("c", WeightsRole::kCONSTANT, w.three()); }},
      {"IRefitter::setNamedWeights",
       [](World& w) {
         return w.weights().setNamedWeights("w", w.three()) && w.weights().getNamedWeights("w").values == w.memory;
       }},
      {"IRefitter::setNamedWeightsWithLocation",
       [](World& w) {
         return w.weights().setNamedWeights("w", w.three(), TensorLocation::kHOST) &&
                w.weights().getWeightsLocation("w") == TensorLocation::kHOST;
       }},
      {"IRefitter::unsetNamedWeights",
       [](World& w) {
         w.weights().setNamedWeights("w", w.three());
         return w.weights().unsetNamedWeights("w") && w.weights().getNamedWeights("w").values == nullptr;
       }},
      {"IRefitter::setMaxThreads",
       [](World& w) { return w.refitter().setMaxThreads(2) && w.refitter().getMaxThreads() == 2; }},
      {"IRefitter::setWeightsValidation",
       [](World& w) { return w.refitter().setWeightsValidation(false), !w.refitter().getWeightsValidation(); }},
      {"IRefitter::setErrorRecorder", [](World& w) { return takes_recorder(w, w.refitter()); }},
      {"IParserRefitter::clearErrors",
       [](World& w) {
         const std::unique_ptr<nvonnxparser::IParserRefitter> refitter(
             nvonnxparser::createParserRefitter(w.refitter(), w.log));
         return refitter->clearErrors(), refitter->getNbErrors() == 0;
       }},
  };
}

inline std::map<std::string, Call> runtime_calls() {
  return {
      {"IRuntime::setDLACore", [](World& w) { return w.runtime->setDLACore(1), w.runtime->getDLACore() == 1; }},
      {"IRuntime::setGpuAllocator", [](World& w) { return w.runtime->setGpuAllocator(&w.allocator), true; }},
      {"IRuntime::setErrorRecorder", [](World& w) { return takes_recorder(w, *w.runtime); }},
      {"IRuntime::setMaxThreads",
       [](World& w) { return w.runtime->setMaxThreads(3) && w.runtime->getMaxThreads() == 3; }},
      {"IRuntime::setTemporaryDirectory",
       [](World& w) {
         return w.runtime->setTemporaryDirectory("/tmp"), is(w.runtime->getTemporaryDirectory(), "/tmp");
       }},
      {"IRuntime::setTempfileControlFlags",
       [](World& w) { return w.runtime->setTempfileControlFlags(0), w.runtime->getTempfileControlFlags() == 0; }},
      {"IRuntime::setPluginRegistryParent",
       [](World& w) {
         return dynamic_cast<apiv::VRuntime&>(*w.runtime).setPluginRegistryParent(getPluginRegistry()), true;
       }},
      {"IRuntime::setEngineHostCodeAllowed",
       [](World& w) { return w.runtime->setEngineHostCodeAllowed(true), w.runtime->getEngineHostCodeAllowed(); }},
      {"ICudaEngine::setErrorRecorder", [](World& w) { return takes_recorder(w, w.engine()); }},
      {"ICudaEngine::setWeightStreamingBudgetV2", [](World& w) { return w.engine().setWeightStreamingBudgetV2(0); }},
      {"IRuntimeConfig::setExecutionContextAllocationStrategy",
       [](World& w) {
         constexpr auto kWanted = ExecutionContextAllocationStrategy::kUSER_MANAGED;
         w.runtime_config().setExecutionContextAllocationStrategy(kWanted);
         return w.runtime_config().getExecutionContextAllocationStrategy() == kWanted;
       }},
      {"IRuntimeConfig::setRuntimeCache",
       [](World& w) {
         return w.runtime_config().setRuntimeCache(w.runtime_cache()) &&
                w.runtime_config().getRuntimeCache() == &w.runtime_cache();
       }},
      {"IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy",
       [](World& w) {
         constexpr auto kWanted = DynamicShapesKernelSpecializationStrategy::kNONE;
         w.runtime_config().setDynamicShapesKernelSpecializationStrategy(kWanted);
         return w.runtime_config().getDynamicShapesKernelSpecializationStrategy() == kWanted;
       }},
      {"IRuntimeConfig::setCudaGraphStrategy",
       [](World& w) {
         constexpr auto kWanted = CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE;
         return w.runtime_config().setCudaGraphStrategy(kWanted) &&
                w.runtime_config().getCudaGraphStrategy() == kWanted;
       }},
      {"ISerializationConfig::setFlags",
       [](World& w) {
         constexpr auto kWanted = 1U << static_cast<int>(SerializationFlag::kEXCLUDE_LEAN_RUNTIME);
         return w.serialization().setFlags(kWanted) && w.serialization().getFlags() == kWanted;
       }},
      {"ISerializationConfig::setFlag",
       [](World& w) {
         return w.serialization().setFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME) &&
                w.serialization().getFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME);
       }},
      {"ISerializationConfig::clearFlag",
       [](World& w) {
         w.serialization().setFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME);
         return w.serialization().clearFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME) &&
                w.serialization().getFlags() == 0;
       }},
      {"IEngineInspector::setExecutionContext",
       [](World& w) {
         return w.inspector().setExecutionContext(&w.context()) && w.inspector().getExecutionContext() == &w.context();
       }},
      {"IEngineInspector::setErrorRecorder", [](World& w) { return takes_recorder(w, w.inspector()); }},
      {"IPluginRegistry::setErrorRecorder", [](World& w) { return takes_recorder(w, w.runtime->getPluginRegistry()); }},
      {"IPluginRegistry::setParentSearchEnabled",
       [](World& w) {
         w.runtime->getPluginRegistry().setParentSearchEnabled(false);
         return !w.runtime->getPluginRegistry().isParentSearchEnabled();
       }},
      {"process::initLibNvInferPlugins", [](World& w) { return initLibNvInferPlugins(&w.log, ""); }},
      {"process::setInternalLibraryPath", [](World&) { return setInternalLibraryPath("/tmp"); }},
  };
}

inline std::map<std::string, Call> context_calls() {
  return {
      {"IExecutionContext::setDebugSync",
       [](World& w) { return w.context().setDebugSync(true), w.context().getDebugSync(); }},
      {"IExecutionContext::setProfiler",
       [](World& w) { return w.context().setProfiler(&w.times), w.context().getProfiler() == &w.times; }},
      {"IExecutionContext::setName", [](World& w) { return w.context().setName("c"), is(w.context().getName(), "c"); }},
      {"IExecutionContext::setErrorRecorder", [](World& w) { return takes_recorder(w, w.context()); }},
      {"IExecutionContext::setDeviceMemory",
       [](World& w) {
         return w.context(ExecutionContextAllocationStrategy::kUSER_MANAGED).setDeviceMemory(w.block.get()), true;
       }},
      {"IExecutionContext::setDeviceMemoryV2",
       [](World& w) {
         auto& context = w.context(ExecutionContextAllocationStrategy::kUSER_MANAGED);
         return context.setDeviceMemoryV2(w.block.get(), 256), true;
       }},
      {"IExecutionContext::setOptimizationProfileAsync",
       [](World& w) { return w.context().setOptimizationProfileAsync(0, nullptr); }},
      {"IExecutionContext::setEnqueueEmitsProfile",
       [](World& w) { return w.context().setEnqueueEmitsProfile(false), !w.context().getEnqueueEmitsProfile(); }},
      {"IExecutionContext::setInputShape",
       [](World& w) {
         return w.context().setInputShape("x", Dims2(3, 3)) && w.context().getTensorShape("y").d[0] == 3;
       }},
      {"IExecutionContext::setTensorAddress",
       [](World& w) {
         return w.context().setTensorAddress("y", w.memory) && w.context().getTensorAddress("y") == w.memory;
       }},
      {"IExecutionContext::setInputTensorAddress",
       [](World& w) {
         return w.context().setInputTensorAddress("x", w.memory) && w.context().getTensorAddress("x") == w.memory;
       }},
      {"IExecutionContext::setOutputTensorAddress",
       [](World& w) {
         return w.context().setOutputTensorAddress("y", w.memory) &&
                w.context().getOutputTensorAddress("y") == w.memory;
       }},
      {"IExecutionContext::setInputConsumedEvent",
       [](World& w) {
         return w.context().setInputConsumedEvent(w.handle<cudaEvent_t>()) &&
                w.context().getInputConsumedEvent() == w.handle<cudaEvent_t>();
       }},
      {"IExecutionContext::setOutputAllocator",
       [](World& w) {
         return w.context().setOutputAllocator("y", &w.outputs) && w.context().getOutputAllocator("y") == &w.outputs;
       }},
      {"IExecutionContext::setTemporaryStorageAllocator",
       [](World& w) {
         return w.context().setTemporaryStorageAllocator(&w.allocator) &&
                w.context().getTemporaryStorageAllocator() == &w.allocator;
       }},
      {"IExecutionContext::setPersistentCacheLimit",
       [](World& w) {
         return w.context().setPersistentCacheLimit(1 << 20), w.context().getPersistentCacheLimit() == 1 << 20;
       }},
      {"IExecutionContext::setNvtxVerbosity",
       [](World& w) {
         return w.context().setNvtxVerbosity(ProfilingVerbosity::kDETAILED) &&
                w.context().getNvtxVerbosity() == ProfilingVerbosity::kDETAILED;
       }},
      {"IExecutionContext::setAuxStreams",
       [](World& w) {
         auto stream = reinterpret_cast<cudaStream_t>(&w);  // which a CPU does not look at
         return w.context().setAuxStreams(&stream, 1), true;
       }},
      {"IExecutionContext::setDebugListener",
       [](World& w) {
         return w.context().setDebugListener(&w.listener) && w.context().getDebugListener() == &w.listener;
       }},
      {"IExecutionContext::setTensorDebugState", [](World& w) { return w.context().setTensorDebugState("y", true); }},
      {"IExecutionContext::setAllTensorsDebugState",
       [](World& w) { return w.context().setAllTensorsDebugState(true); }},
      {"IExecutionContext::setUnfusedTensorsDebugState",
       [](World& w) {
         return w.context().setUnfusedTensorsDebugState(true) && w.context().getUnfusedTensorsDebugState();
       }},
      {"IExecutionContext::setCommunicator", [](World& w) { return w.context().setCommunicator(w.memory); }},
  };
}

// By enumeration: gives a setter that takes it that value.
using ValueCall = bool (*)(World&, int);

inline std::map<std::string, ValueCall> runtime_value_calls() {
  return {
      {"ExecutionContextAllocationStrategy",
       [](World& w, int value) {
         const auto strategy = static_cast<ExecutionContextAllocationStrategy>(value);
         w.runtime_config().setExecutionContextAllocationStrategy(strategy);
         return w.runtime_config().getExecutionContextAllocationStrategy() == strategy &&
                std::unique_ptr<IExecutionContext>(w.engine().createExecutionContext(&w.runtime_config())) != nullptr;
       }},
      {"DynamicShapesKernelSpecializationStrategy",
       [](World& w, int value) {
         const auto strategy = static_cast<DynamicShapesKernelSpecializationStrategy>(value);
         w.runtime_config().setDynamicShapesKernelSpecializationStrategy(strategy);
         return w.runtime_config().getDynamicShapesKernelSpecializationStrategy() == strategy;
       }},
      {"CudaGraphStrategy",
       [](World& w, int value) {
         const auto strategy = static_cast<CudaGraphStrategy>(value);
         return w.runtime_config().setCudaGraphStrategy(strategy) &&
                w.runtime_config().getCudaGraphStrategy() == strategy;
       }},
  };
}

}  // namespace nvinfer1
