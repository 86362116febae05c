// SPDX-License-Identifier: Apache-2.0
// The functions of the tables of objects.def, in the order in which they stand there behind the two destructors:
// LATHE_FUNCTIONS_OF_<table>(BOTH, ONLY_10), where ONLY_10 are those that generation 10 alone has.
#pragma once

// clang-format off
#define LATHE_FUNCTIONS_OF_VRuntime(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(deserializeCudaEngine) ONLY_10(deserializeCudaEngine) BOTH(setDLACore) BOTH(getDLACore) \
  BOTH(getNbDLACores) BOTH(setGpuAllocator) BOTH(setErrorRecorder) BOTH(getErrorRecorder) BOTH(getLogger) \
  BOTH(setMaxThreads) BOTH(getMaxThreads) BOTH(setTemporaryDirectory) BOTH(getTemporaryDirectory) \
  BOTH(setTempfileControlFlags) BOTH(getTempfileControlFlags) BOTH(getPluginRegistry) BOTH(setPluginRegistryParent) \
  BOTH(loadRuntime) BOTH(setEngineHostCodeAllowed) BOTH(getEngineHostCodeAllowed) BOTH(deserializeCudaEngineV2)
#define LATHE_FUNCTIONS_OF_VCudaEngine(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(getNbLayers) BOTH(serialize) BOTH(createExecutionContext) \
  ONLY_10(createExecutionContextWithoutDeviceMemory) ONLY_10(getDeviceMemorySize) BOTH(isRefittable) BOTH(getName) \
  BOTH(getNbOptimizationProfiles) ONLY_10(getProfileTensorValues) BOTH(getEngineCapability) BOTH(setErrorRecorder) \
  BOTH(getErrorRecorder) ONLY_10(hasImplicitBatchDimension) BOTH(getTacticSources) BOTH(getProfilingVerbosity) \
  BOTH(createEngineInspector) BOTH(getTensorShape) BOTH(getTensorDataType) BOTH(getTensorLocation) \
  BOTH(isShapeInferenceIO) BOTH(getTensorIOMode) BOTH(getTensorBytesPerComponent) \
  BOTH(getTensorComponentsPerElement) BOTH(getTensorFormat) BOTH(getTensorFormatDesc) BOTH(getTensorVectorizedDim) \
  BOTH(getProfileShape) BOTH(getNbIOTensors) BOTH(getIOTensorName) BOTH(getHardwareCompatibilityLevel) \
  BOTH(getNbAuxStreams) BOTH(getTensorBytesPerComponentV2) BOTH(getTensorComponentsPerElementV2) \
  BOTH(getTensorFormatV2) BOTH(getTensorFormatDescV2) BOTH(getTensorVectorizedDimV2) \
  BOTH(createSerializationConfig) BOTH(serializeWithConfig) ONLY_10(getDeviceMemorySizeForProfile) \
  BOTH(createRefitter) ONLY_10(setWeightStreamingBudget) ONLY_10(getWeightStreamingBudget) \
  ONLY_10(getMinimumWeightStreamingBudget) BOTH(getStreamableWeightsSize) BOTH(isDebugTensor) \
  BOTH(setWeightStreamingBudgetV2) BOTH(getWeightStreamingBudgetV2) BOTH(getWeightStreamingAutomaticBudget) \
  BOTH(getWeightStreamingScratchMemorySize) BOTH(getDeviceMemorySizeV2) BOTH(getDeviceMemorySizeForProfileV2) \
  BOTH(getProfileTensorValuesV2) BOTH(createExecutionContextWithRuntimeConfig) BOTH(createRuntimeConfig) \
  BOTH(getEngineStat) BOTH(getAliasedInputTensor)
#define LATHE_FUNCTIONS_OF_VExecutionContext(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(setDebugSync) BOTH(getDebugSync) BOTH(setProfiler) BOTH(getProfiler) BOTH(getEngine) \
  BOTH(setName) BOTH(getName) BOTH(setDeviceMemory) BOTH(getOptimizationProfile) BOTH(allInputDimensionsSpecified) \
  ONLY_10(allInputShapesSpecified) BOTH(setErrorRecorder) BOTH(getErrorRecorder) BOTH(executeV2) \
  BOTH(setOptimizationProfileAsync) BOTH(setEnqueueEmitsProfile) BOTH(getEnqueueEmitsProfile) \
  BOTH(reportToProfiler) BOTH(setInputShape) BOTH(getTensorShape) BOTH(getTensorStrides) BOTH(setTensorAddress) \
  BOTH(getTensorAddress) BOTH(setInputTensorAddress) BOTH(setOutputTensorAddress) BOTH(inferShapes) \
  BOTH(setInputConsumedEvent) BOTH(getInputConsumedEvent) BOTH(getOutputTensorAddress) BOTH(setOutputAllocator) \
  BOTH(getOutputAllocator) BOTH(getMaxOutputSize) BOTH(setTemporaryStorageAllocator) \
  BOTH(getTemporaryStorageAllocator) BOTH(enqueueV3) BOTH(setPersistentCacheLimit) BOTH(getPersistentCacheLimit) \
  BOTH(setNvtxVerbosity) BOTH(getNvtxVerbosity) BOTH(setAuxStreams) BOTH(setDebugListener) BOTH(getDebugListener) \
  BOTH(setTensorDebugState) BOTH(getDebugState) BOTH(setAllTensorsDebugState) BOTH(updateDeviceMemorySizeForShapes) \
  BOTH(setDeviceMemoryV2) BOTH(getRuntimeConfig) BOTH(setUnfusedTensorsDebugState) \
  BOTH(getUnfusedTensorsDebugState) BOTH(setCommunicator) BOTH(isStreamCapturable)
#define LATHE_FUNCTIONS_OF_VEngineInspector(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(setExecutionContext) BOTH(getExecutionContext) BOTH(getLayerInformation) \
  BOTH(getEngineInformation) BOTH(setErrorRecorder) BOTH(getErrorRecorder)
#define LATHE_FUNCTIONS_OF_VHostMemory(BOTH, ONLY_10) \
  BOTH(data) BOTH(size) BOTH(type)
#define LATHE_FUNCTIONS_OF_VRefitter(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(setWeights) BOTH(refitCudaEngine) BOTH(getMissing) BOTH(getAll) ONLY_10(setDynamicRange) \
  ONLY_10(getDynamicRangeMin) ONLY_10(getDynamicRangeMax) ONLY_10(getTensorsWithDynamicRange) \
  BOTH(setErrorRecorder) BOTH(getErrorRecorder) BOTH(setNamedWeights) BOTH(getMissingWeights) BOTH(getAllWeights) \
  BOTH(getLogger) BOTH(setMaxThreads) BOTH(getMaxThreads) BOTH(setNamedWeightsWithLocation) BOTH(getNamedWeights) \
  BOTH(getWeightsLocation) BOTH(unsetNamedWeights) BOTH(setWeightsValidation) BOTH(getWeightsValidation) \
  BOTH(refitCudaEngineAsync) BOTH(getWeightsPrototype)
#define LATHE_FUNCTIONS_OF_VRuntimeCache(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(serialize) BOTH(deserialize) BOTH(reset)
#define LATHE_FUNCTIONS_OF_VRuntimeConfig(BOTH, ONLY_10) \
  BOTH(getPImpl) BOTH(setExecutionContextAllocationStrategy) BOTH(getExecutionContextAllocationStrategy) \
  BOTH(createRuntimeCache) BOTH(setRuntimeCache) BOTH(getRuntimeCache) \
  BOTH(setDynamicShapesKernelSpecializationStrategy) BOTH(getDynamicShapesKernelSpecializationStrategy) \
  BOTH(setCudaGraphStrategy) BOTH(getCudaGraphStrategy)
#define LATHE_FUNCTIONS_OF_VSerializationConfig(BOTH, ONLY_10) \
  BOTH(setFlags) BOTH(getFlags) BOTH(clearFlag) BOTH(setFlag) BOTH(getFlag)
// clang-format on
