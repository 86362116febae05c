// SPDX-License-Identifier: Apache-2.0
// A call of every setter, and a setter for every enumeration of values.
#pragma once

#include <map>

#include "api/settings_calls_runtime.h"

namespace nvinfer1 {

using nvonnxparser::OnnxParserFlag;

inline constexpr char kWeightsName[] = "w";
inline bool names_weights(World& w) {
  return w.network->setWeightsName(Weights{DataType::kFLOAT, w.memory, 4}, kWeightsName);
}

inline std::map<std::string, Call> builder_calls() {
  constexpr auto kRefit = 1U << static_cast<int>(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
  return {
      {"IBuilder::setGpuAllocator", [](World& w) { return w.builder->setGpuAllocator(&w.allocator), true; }},
      {"IBuilder::setErrorRecorder", [](World& w) { return takes_recorder(w, *w.builder); }},
      {"IBuilder::setMaxThreads",
       [](World& w) { return w.builder->setMaxThreads(7) && w.builder->getMaxThreads() == 7; }},
      {"IBuilderConfig::setAvgTimingIterations",
       [](World& w) { return w.config->setAvgTimingIterations(4), w.config->getAvgTimingIterations() == 4; }},
      {"IBuilderConfig::setEngineCapability",
       [](World& w) { return w.config->setEngineCapability(EngineCapability::kSTANDARD), true; }},
      {"IBuilderConfig::setFlags", [](World& w) { return w.config->setFlags(kRefit), w.config->getFlags() == kRefit; }},
      {"IBuilderConfig::setFlag",
       [](World& w) {
         w.config->setFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
         return w.config->getFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
       }},
      {"IBuilderConfig::clearFlag",
       [](World& w) { return w.config->clearFlag(BuilderFlag::kTF32), !w.config->getFlag(BuilderFlag::kTF32); }},
      {"IBuilderConfig::setDeviceType",
       [](World& w) { return w.config->setDeviceType(w.relu, DeviceType::kGPU), w.config->isDeviceTypeSet(w.relu); }},
      {"IBuilderConfig::resetDeviceType",
       [](World& w) {
         w.config->setDeviceType(w.relu, DeviceType::kGPU);
         w.config->resetDeviceType(w.relu);
         return !w.config->isDeviceTypeSet(w.relu);
       }},
      {"IBuilderConfig::setDLACore", [](World& w) { return w.config->setDLACore(0), w.config->getDLACore() == 0; }},
      {"IBuilderConfig::setDefaultDeviceType",
       [](World& w) {
         w.config->setDefaultDeviceType(DeviceType::kGPU);
         return w.config->getDefaultDeviceType() == DeviceType::kGPU;
       }},
      {"IBuilderConfig::setProfileStream",
       [](World& w) {
         w.config->setProfileStream(w.handle<cudaStream_t>());
         return w.config->getProfileStream() == w.handle<cudaStream_t>();
       }},
      {"IBuilderConfig::setProfilingVerbosity",
       [](World& w) {
         w.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
         return w.config->getProfilingVerbosity() == ProfilingVerbosity::kDETAILED;
       }},
      {"IBuilderConfig::setTacticSources",
       [](World& w) {
         const TacticSources sources = w.config->getTacticSources() | 1U << static_cast<int>(lathe::kCUDNN);
         return w.config->setTacticSources(sources) && w.config->getTacticSources() == sources;
       }},
      {"IBuilderConfig::setTimingCache",
       [](World& w) {
         return w.config->setTimingCache(*w.cache, false) && w.config->getTimingCache() == w.cache.get();
       }},
      {"IBuilderConfig::setMemoryPoolLimit",
       [](World& w) {
         w.config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, SIZE_MAX);
         return w.config->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE) == SIZE_MAX;
       }},
      {"IBuilderConfig::setPreviewFeature",
       [](World& w) {
         w.config->setPreviewFeature(PreviewFeature::kRUNTIME_ACTIVATION_RESIZE_10_10, true);
         return w.config->getPreviewFeature(PreviewFeature::kRUNTIME_ACTIVATION_RESIZE_10_10);
       }},
      {"IBuilderConfig::setBuilderOptimizationLevel",
       [](World& w) { return w.config->setBuilderOptimizationLevel(5), w.config->getBuilderOptimizationLevel() == 5; }},
      {"IBuilderConfig::setHardwareCompatibilityLevel",
       [](World& w) { return w.config->setHardwareCompatibilityLevel(HardwareCompatibilityLevel::kNONE), true; }},
      {"IBuilderConfig::setPluginsToSerialize",
       [](World& w) {
         const char* paths[] = {"a.so", "b.so"};
         w.config->setPluginsToSerialize(paths, 2);
         return w.config->getNbPluginsToSerialize() == 2 && is(w.config->getPluginToSerialize(1), "b.so");
       }},
      {"IBuilderConfig::setMaxAuxStreams",
       [](World& w) { return w.config->setMaxAuxStreams(2) && w.config->getMaxAuxStreams() == 2; }},
      {"IBuilderConfig::setProgressMonitor",
       [](World& w) { return w.config->setProgressMonitor(&w.monitor), w.config->getProgressMonitor() == &w.monitor; }},
      {"IBuilderConfig::setRuntimePlatform",
       [](World& w) { return w.config->setRuntimePlatform(RuntimePlatform::kSAME_AS_BUILD), true; }},
      {"IBuilderConfig::setMaxNbTactics",
       [](World& w) { return w.config->setMaxNbTactics(3), w.config->getMaxNbTactics() == 3; }},
      {"IBuilderConfig::setTilingOptimizationLevel",
       [](World& w) { return w.config->setTilingOptimizationLevel(TilingOptimizationLevel::kNONE); }},
      {"IBuilderConfig::setL2LimitForTiling",
       [](World& w) { return w.config->setL2LimitForTiling(1 << 20) && w.config->getL2LimitForTiling() == 1 << 20; }},
      {"IBuilderConfig::setRemoteAutoTuningConfig",
       [](World& w) { return w.config->setRemoteAutoTuningConfig("ssh://host"); }},
      {"IBuilderConfig::setBuildRoute", [](World& w) { return w.config->setBuildRoute("[{\"knob\": 1}]"); }},
  };
}

inline std::map<std::string, Call> network_calls() {
  return {
      {"INetworkDefinition::markOutput",
       [](World& w) {
         ITensor& extra = *w.network->addActivation(*w.x, ActivationType::kTANH)->getOutput(0);
         w.network->markOutput(extra);
         return extra.isNetworkOutput();
       }},
      {"INetworkDefinition::unmarkOutput",
       [](World& w) {
         w.network->unmarkOutput(*w.relu->getOutput(0));
         return w.network->getNbOutputs() == 0;
       }},
      {"INetworkDefinition::setName", [](World& w) { return w.network->setName("n"), is(w.network->getName(), "n"); }},
      {"INetworkDefinition::markOutputForShapes",
       [](World& w) {
         ITensor& shape = *w.network->addShape(*w.x)->getOutput(0);
         return w.network->markOutputForShapes(shape) && shape.isNetworkOutput();
       }},
      {"INetworkDefinition::unmarkOutputForShapes",
       [](World& w) {
         ITensor& shape = *w.network->addShape(*w.x)->getOutput(0);
         w.network->markOutputForShapes(shape);
         return w.network->unmarkOutputForShapes(shape) && !shape.isNetworkOutput();
       }},
      {"INetworkDefinition::setWeightsName", names_weights},
      {"INetworkDefinition::setErrorRecorder", [](World& w) { return takes_recorder(w, *w.network); }},
      {"INetworkDefinition::markDebug",
       [](World& w) {
         return w.network->markDebug(*w.relu->getOutput(0)) && w.network->isDebugTensor(*w.relu->getOutput(0));
       }},
      {"INetworkDefinition::unmarkDebug",
       [](World& w) {
         return w.network->unmarkDebug(*w.relu->getOutput(0)) && !w.network->isDebugTensor(*w.relu->getOutput(0));
       }},
      {"INetworkDefinition::markWeightsRefittable",
       [](World& w) {
         return w.network->markWeightsRefittable(kWeightsName) && w.network->areWeightsMarkedRefittable(kWeightsName);
       }},
      {"INetworkDefinition::unmarkWeightsRefittable",
       [](World& w) {
         w.network->markWeightsRefittable(kWeightsName);
         return w.network->unmarkWeightsRefittable(kWeightsName) &&
                !w.network->areWeightsMarkedRefittable(kWeightsName);
       }},
      {"INetworkDefinition::markUnfusedTensorsAsDebugTensors",
       [](World& w) { return w.network->markUnfusedTensorsAsDebugTensors(); }},
      {"INetworkDefinition::unmarkUnfusedTensorsAsDebugTensors",
       [](World& w) { return w.network->unmarkUnfusedTensorsAsDebugTensors(); }},
      {"ITensor::setName", [](World& w) { return w.x->setName(kName.c_str()), is(w.x->getName(), kName); }},
      {"ITensor::setDimensions",
       [](World& w) { return w.x->setDimensions(Dims2(2, 5)), w.relu->getOutput(0)->getDimensions().d[1] == 5; }},
      {"ITensor::setBroadcastAcrossBatch", [](World& w) { return w.x->setBroadcastAcrossBatch(true), true; }},
      {"ITensor::setLocation",
       [](World& w) {
         return w.x->setLocation(TensorLocation::kDEVICE), w.x->getLocation() == TensorLocation::kDEVICE;
       }},
      {"ITensor::setAllowedFormats",
       [](World& w) { return w.x->setAllowedFormats(0x3), w.x->getAllowedFormats() == 0x3; }},
      {"ITensor::setDimensionName",
       [](World& w) { return w.x->setDimensionName(0, "batch"), is(w.x->getDimensionName(0), "batch"); }},
      {"ILayer::setName", [](World& w) { return w.relu->setName(kName.c_str()), is(w.relu->getName(), kName); }},
      {"ILayer::setInput",
       [](World& w) {
         ITensor* z = w.network->getNbInputs() == 1 ? w.network->addInput("z", DataType::kFLOAT, Dims2(2, 7))
                                                    : w.network->getInput(1);
         w.relu->setInput(0, *z);
         return w.relu->getOutput(0)->getDimensions().d[1] == 7;
       }},
      {"ILayer::setMetadata",
       [](World& w) { return w.relu->setMetadata(kName.c_str()), is(w.relu->getMetadata(), kName); }},
      {"IAttention::setDecomposable",
       [](World& w) {
         const std::string name = "q" + std::to_string(w.network->getNbInputs());  // no other's
         ITensor& q = *w.network->addInput(name.c_str(), DataType::kFLOAT, Dims4(1, 1, 1, 1));
         IAttention* attention =
             w.network->addAttentionV2(q, q, q, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE);
         return attention->setDecomposable(true) && attention->getDecomposable();
       }},
      {"ILayer::setNbRanks", [](World& w) { return w.relu->setNbRanks(2) || w.relu->getNbRanks() == 2; }},
      {"IOptimizationProfile::setDimensions",
       [](World& w) {
         return w.profile().setDimensions("x", OptProfileSelector::kMIN, Dims2(2, 3)) &&
                w.profile().getDimensions("x", OptProfileSelector::kMIN).d[0] == 2;
       }},
      {"IOptimizationProfile::setExtraMemoryTarget",
       [](World& w) { return w.profile().setExtraMemoryTarget(0.5F) && w.profile().getExtraMemoryTarget() == 0.5F; }},
      {"IOptimizationProfile::setShapeValuesV2",
       [](World& w) {
         const int64_t values[] = {1, 2};
         return w.profile().setShapeValuesV2("s", OptProfileSelector::kMIN, values, 2) &&
                w.profile().getShapeValuesV2("s", OptProfileSelector::kMIN)[1] == 2;
       }},
      {"IParser::clearErrors", [](World& w) { return w.parser->clearErrors(), w.parser->getNbErrors() == 0; }},
      {"IParser::setFlags",
       [](World& w) { return w.parser->setFlags(w.parser->getFlags()), w.parser->getFlags() == 1; }},
      {"IParser::setFlag",
       [](World& w) {
         w.parser->setFlag(OnnxParserFlag::kNATIVE_INSTANCENORM);
         return w.parser->getFlag(OnnxParserFlag::kNATIVE_INSTANCENORM);
       }},
      {"IParser::clearFlag",
       [](World& w) {
         w.parser->clearFlag(OnnxParserFlag::kADJUST_FOR_DLA);
         return !w.parser->getFlag(OnnxParserFlag::kADJUST_FOR_DLA);
       }},
      {"IParser::setBuilderConfig", [](World& w) { return w.parser->setBuilderConfig(w.config.get()); }},
  };
}

inline std::map<std::string, Call> own_calls() {
  return {
      {"lathe::setBuildBudget",
       [](World& w) { return lathe::setBuildBudget(*w.config, 2) && lathe::getBuildBudget(*w.config) == 2; }},
      {"lathe::setHostMemoryBudget",
       [](World& w) {
         return lathe::setHostMemoryBudget(*w.config, 1 << 30) && lathe::getHostMemoryBudget(*w.config) == 1 << 30;
       }},
      {"lathe::setTarget",
       [](World& w) { return lathe::setTarget(*w.config, "sm_90") && is(lathe::getTarget(*w.config), "cuda-sm_90"); }},
      {"lathe::setPrecision", [](World& w) { return lathe::setPrecision(*w.config, DataType::kHALF); }},
      {"lathe::setTargets",
       [](World& w) {
         return lathe::setTargets(*w.config, "sm_90,sm_80") && is(lathe::getTarget(*w.config), "cuda-sm_90");
       }},
      {"lathe::setVariantWeights",
       [](World& w) { return lathe::setVariantWeights(*w.config, lathe::VariantWeights::kSTORED); }},
      {"lathe::setTrustedKeys",
       [](World& w) {
         const std::string key = "ed25519:" + std::string(64, '1');
         return lathe::setTrustedKeys(*w.runtime, key.c_str()) && lathe::setTrustedKeys(*w.runtime, nullptr);
       }},
      {"lathe::setCalibrationCache",
       [](World& w) { return lathe::setCalibrationCache(*w.config, "TRT-1-A\nx: 3f000000\n", 20); }},
      {"lathe::setInt8", [](World& w) { return lathe::setInt8(*w.config, true); }},
      {"lathe::setForcedSparsity", [](World& w) { return lathe::setForcedSparsity(*w.config, true); }},
      {"lathe::setPrecisionConstraints",
       [](World& w) { return lathe::setPrecisionConstraints(*w.config, lathe::PrecisionConstraints::kOBEY); }},
      {"lathe::setLayerPrecision", [](World& w) { return lathe::setLayerPrecision(*w.config, "a*", DataType::kHALF); }},
      {"lathe::setLayerOutputType",
       [](World& w) { return lathe::setLayerOutputType(*w.config, "a*", 0, DataType::kHALF); }},
      {"lathe::setCompiler", [](World& w) { return lathe::setCompiler(*w.config, ""); }},
      {"lathe::setCompilerLimits", [](World& w) { return lathe::setCompilerLimits(*w.config, 10, 1024); }},
      {"lathe::setPassDump", [](World& w) { return lathe::setPassDump(*w.config, "passes"); }},
      {"lathe::setPassSkipped", [](World& w) { return lathe::setPassSkipped(*w.config, "fold_affine", true); }},
      {"lathe::setCpuThreads",
       [](World& w) {
         return lathe::setCpuThreads(*w.config, 1) && lathe::setCpuThreads(*w.runtime, 1) &&
                lathe::setCpuThreads(w.runtime_config(), 1);
       }},
      {"lathe::setRandomSeed", [](World&) { return lathe::setRandomSeed(7), lathe::setRandomSeed(7, false), true; }},
      {"lathe::setRuntimeCacheFile",
       [](World& w) {
         return lathe::setRuntimeCacheFile(*w.runtime, "/no/such/folder/kernels.cache") &&
                lathe::setRuntimeCacheFile(*w.runtime, nullptr);
       }},
      {"lathe::setRuntimeCacheLimit", [](World& w) { return lathe::setRuntimeCacheLimit(w.runtime_cache(), 1 << 20); }},
      {"lathe::setInspectionOnly",
       [](World& w) {
         lathe::setInspectionOnly(*w.runtime, true);
         return w.engine().createExecutionContext() == nullptr && w.log.errors.size() == 1 &&
                (w.log.errors.clear(), true);
       }},
  };
}

inline std::map<std::string, ValueCall> value_calls() {
  return {
      {"NetworkDefinitionCreationFlag",
       [](World& w, int value) {
         const std::unique_ptr<INetworkDefinition> made(w.builder->createNetworkV2(1U << value));
         return made && made->getFlag(static_cast<NetworkDefinitionCreationFlag>(value));
       }},
      {"BuilderFlag",
       [](World& w, int value) {
         const auto flag = static_cast<BuilderFlag>(value);
         if (flag == BuilderFlag::kTF32) return w.config->clearFlag(flag), !w.config->getFlag(flag);
         return w.config->setFlag(flag), w.config->getFlag(flag);
       }},
      {"MemoryPoolType",
       [](World& w, int value) {
         const auto pool = static_cast<MemoryPoolType>(value);
         w.config->setMemoryPoolLimit(pool, 64 << 20);
         return w.config->getMemoryPoolLimit(pool) == 64 << 20;
       }},
      {"PreviewFeature",
       [](World& w, int value) {
         const auto feature = static_cast<PreviewFeature>(value);
         return w.config->setPreviewFeature(feature, true), w.config->getPreviewFeature(feature);
       }},
      {"TacticSource",
       [](World& w, int value) {
         const TacticSources others = w.config->getTacticSources() & ~(1U << value);
         return w.config->setTacticSources(others) && w.config->getTacticSources() == others;
       }},
      {"EngineCapability",
       [](World& w, int value) {
         w.config->setEngineCapability(static_cast<EngineCapability>(value));
         return w.config->getEngineCapability() == static_cast<EngineCapability>(value);
       }},
      {"DeviceType",
       [](World& w, int value) {
         w.config->setDefaultDeviceType(static_cast<DeviceType>(value));
         return w.config->getDefaultDeviceType() == static_cast<DeviceType>(value);
       }},
      {"ProfilingVerbosity",
       [](World& w, int value) {
         w.config->setProfilingVerbosity(static_cast<ProfilingVerbosity>(value));
         return w.config->getProfilingVerbosity() == static_cast<ProfilingVerbosity>(value);
       }},
      {"HardwareCompatibilityLevel",
       [](World& w, int value) {
         w.config->setHardwareCompatibilityLevel(static_cast<HardwareCompatibilityLevel>(value));
         return w.config->getHardwareCompatibilityLevel() == static_cast<HardwareCompatibilityLevel>(value);
       }},
      {"RuntimePlatform",
       [](World& w, int value) {
         w.config->setRuntimePlatform(static_cast<RuntimePlatform>(value));
         return w.config->getRuntimePlatform() == static_cast<RuntimePlatform>(value);
       }},
      {"TilingOptimizationLevel",
       [](World& w, int value) {
         return w.config->setTilingOptimizationLevel(static_cast<TilingOptimizationLevel>(value)) &&
                w.config->getTilingOptimizationLevel() == static_cast<TilingOptimizationLevel>(value);
       }},
      {"TensorLocation",
       [](World& w, int value) {
         w.x->setLocation(static_cast<TensorLocation>(value));
         return w.x->getLocation() == static_cast<TensorLocation>(value);
       }},
      {"TensorFormat",
       [](World& w, int value) {
         return w.x->setAllowedFormats(1U << value), w.x->getAllowedFormats() == 1U << value;
       }},
      {"OnnxParserFlag",
       [](World& w, int value) {
         const auto flag = static_cast<OnnxParserFlag>(value);
         const bool on = flag != OnnxParserFlag::kNATIVE_INSTANCENORM;
         on ? w.parser->setFlag(flag) : w.parser->clearFlag(flag);
         return w.parser->getFlag(flag) == on;
       }},
      {"TempfileControlFlag",
       [](World& w, int value) {
         const TempfileControlFlags others = 3U & ~(1U << value);
         return w.runtime->setTempfileControlFlags(others), w.runtime->getTempfileControlFlags() == others;
       }},
      {"SerializationFlag",
       [](World& w, int value) {
         const auto flag = static_cast<SerializationFlag>(value);
         return w.serialization().setFlag(flag) && w.serialization().getFlag(flag);
       }},
  };
}

}  // namespace nvinfer1
