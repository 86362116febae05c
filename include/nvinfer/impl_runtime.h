// SPDX-License-Identifier: Apache-2.0
// Implementation tables of the runtime side: the library derives from them, the public classes forward to them.
// The order of the functions is part of the binary interface: never reorder, insert or remove.
#ifndef NVINFER_IMPL_RUNTIME_H
#define NVINFER_IMPL_RUNTIME_H

#include "nvinfer/logger.h"

namespace nvinfer1 {

class ICudaEngine;
class IDimensionExpr;
class IEngineInspector;
class IExecutionContext;
class IHostMemory;
class IPluginRegistry;
class IRefitter;
class IRuntime;
class IRuntimeCache;
class IRuntimeConfig;
class ISerializationConfig;
class Weights;

namespace v_1_0 {
class IDebugListener;
class IGpuAllocator;
class IOutputAllocator;
class IProfiler;
class IStreamReader;
class IStreamReaderV2;
}  // namespace v_1_0
using IDebugListener = v_1_0::IDebugListener;
using IGpuAllocator = v_1_0::IGpuAllocator;
using IOutputAllocator = v_1_0::IOutputAllocator;
using IProfiler = v_1_0::IProfiler;
using IStreamReader = v_1_0::IStreamReader;
using IStreamReaderV2 = v_1_0::IStreamReaderV2;

enum class CudaGraphStrategy : int32_t;
enum class DimensionOperation : int32_t;
enum class DynamicShapesKernelSpecializationStrategy : int32_t;
enum class EngineCapability : int32_t;
enum class EngineStat : int32_t;
enum class ExecutionContextAllocationStrategy : int32_t;
enum class HardwareCompatibilityLevel : int32_t;
enum class LayerInformationFormat : int32_t;
enum class OptProfileSelector : int32_t;
enum class ProfilingVerbosity : int32_t;
enum class SerializationFlag : int32_t;
enum class TensorFormat : int32_t;
enum class TensorLocation : int32_t;
enum class WeightsRole : int32_t;
using SerializationFlags = uint32_t;
using TacticSources = uint32_t;
using TempfileControlFlags = uint32_t;

namespace apiv {

class VRoot {
 public:
  virtual ~VRoot() noexcept = default;
};

class VHostMemory : public VRoot {
 public:
  virtual void* data() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;
  virtual DataType type() const noexcept = 0;
};

class VDimensionExpr : public VRoot {
 public:
  virtual bool isConstant() const noexcept = 0;
  virtual int64_t getConstantValue() const noexcept = 0;
  virtual bool isSizeTensor() const noexcept = 0;
};

class VExprBuilder : public VRoot {
 public:
  virtual const IDimensionExpr* constant(int64_t value) noexcept = 0;
  virtual const IDimensionExpr* operation(DimensionOperation op, const IDimensionExpr& first,
                                          const IDimensionExpr& second) noexcept = 0;
  virtual const IDimensionExpr* declareSizeTensor(int32_t outputIndex, const IDimensionExpr& opt,
                                                  const IDimensionExpr& upper) noexcept = 0;
};

class VRuntime : public VRoot {
 public:
  virtual IRuntime* getPImpl() noexcept = 0;
  virtual ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual ICudaEngine* deserializeCudaEngine(IStreamReader& streamReader) noexcept = 0;
#endif
  virtual void setDLACore(int32_t dlaCore) noexcept = 0;
  virtual int32_t getDLACore() const noexcept = 0;
  virtual int32_t getNbDLACores() const noexcept = 0;
  virtual void setGpuAllocator(IGpuAllocator* allocator) noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ILogger* getLogger() const noexcept = 0;
  virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
  virtual int32_t getMaxThreads() const noexcept = 0;
  virtual void setTemporaryDirectory(const char* path) noexcept = 0;
  virtual const char* getTemporaryDirectory() const noexcept = 0;
  virtual void setTempfileControlFlags(TempfileControlFlags flags) noexcept = 0;
  virtual TempfileControlFlags getTempfileControlFlags() const noexcept = 0;
  virtual IPluginRegistry& getPluginRegistry() noexcept = 0;
  virtual void setPluginRegistryParent(IPluginRegistry* parent) noexcept = 0;
  virtual IRuntime* loadRuntime(const char* path) noexcept = 0;
  virtual void setEngineHostCodeAllowed(bool allowed) noexcept = 0;
  virtual bool getEngineHostCodeAllowed() const noexcept = 0;
  virtual ICudaEngine* deserializeCudaEngineV2(IStreamReaderV2& streamReader) noexcept = 0;
};

class VRefitter : public VRoot {
 public:
  virtual IRefitter* getPImpl() noexcept = 0;
  virtual bool setWeights(const char* layerName, WeightsRole role, const Weights weights) noexcept = 0;
  virtual bool refitCudaEngine() noexcept = 0;
  virtual int32_t getMissing(int32_t size, const char** layerNames, WeightsRole* roles) noexcept = 0;
  virtual int32_t getAll(int32_t size, const char** layerNames, WeightsRole* roles) noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool setDynamicRange(const char* tensorName, float min, float max) noexcept = 0;
  virtual float getDynamicRangeMin(const char* tensorName) const noexcept = 0;
  virtual float getDynamicRangeMax(const char* tensorName) const noexcept = 0;
  virtual int32_t getTensorsWithDynamicRange(int32_t size, const char** tensorNames) const noexcept = 0;
#endif
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual bool setNamedWeights(const char* name, Weights weights) noexcept = 0;
  virtual int32_t getMissingWeights(int32_t size, const char** weightsNames) noexcept = 0;
  virtual int32_t getAllWeights(int32_t size, const char** weightsNames) noexcept = 0;
  virtual ILogger* getLogger() const noexcept = 0;
  virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
  virtual int32_t getMaxThreads() const noexcept = 0;
  virtual bool setNamedWeightsWithLocation(const char* name, Weights weights, TensorLocation location) noexcept = 0;
  virtual Weights getNamedWeights(const char* weightsName) const noexcept = 0;
  virtual TensorLocation getWeightsLocation(const char* weightsName) const noexcept = 0;
  virtual bool unsetNamedWeights(const char* weightsName) noexcept = 0;
  virtual void setWeightsValidation(bool weightsValidation) noexcept = 0;
  virtual bool getWeightsValidation() const noexcept = 0;
  virtual bool refitCudaEngineAsync(cudaStream_t stream) noexcept = 0;
  virtual Weights getWeightsPrototype(const char* weightsName) const noexcept = 0;
};

class VOptimizationProfile : public VRoot {
 public:
  virtual bool setDimensions(const char* inputName, OptProfileSelector select, const Dims& dims) noexcept = 0;
  virtual Dims getDimensions(const char* inputName, OptProfileSelector select) const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool setShapeValues(const char* inputName, OptProfileSelector select, const int32_t* values,
                              int32_t nbValues) noexcept = 0;
#endif
  virtual int32_t getNbShapeValues(const char* inputName) const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual const int32_t* getShapeValues(const char* inputName, OptProfileSelector select) const noexcept = 0;
#endif
  virtual bool setExtraMemoryTarget(float target) noexcept = 0;
  virtual float getExtraMemoryTarget() const noexcept = 0;
  virtual bool isValid() const noexcept = 0;
  virtual bool setShapeValuesV2(const char* inputName, OptProfileSelector select, const int64_t* values,
                                int32_t nbValues) noexcept = 0;
  virtual const int64_t* getShapeValuesV2(const char* inputName, OptProfileSelector select) const noexcept = 0;
};

class VCudaEngine : public VRoot {
 public:
  virtual ICudaEngine* getPImpl() noexcept = 0;
  virtual int32_t getNbLayers() const noexcept = 0;
  virtual IHostMemory* serialize() const noexcept = 0;
  virtual IExecutionContext* createExecutionContext(ExecutionContextAllocationStrategy strategy) noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept = 0;
  virtual size_t getDeviceMemorySize() const noexcept = 0;
#endif
  virtual bool isRefittable() const noexcept = 0;
  virtual const char* getName() const noexcept = 0;
  virtual int32_t getNbOptimizationProfiles() const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual const int32_t* getProfileTensorValues(const char* tensorName, int32_t profileIndex,
                                                OptProfileSelector select) const noexcept = 0;
#endif
  virtual EngineCapability getEngineCapability() const noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool hasImplicitBatchDimension() const noexcept = 0;
#endif
  virtual TacticSources getTacticSources() const noexcept = 0;
  virtual ProfilingVerbosity getProfilingVerbosity() const noexcept = 0;
  virtual IEngineInspector* createEngineInspector() const noexcept = 0;
  virtual Dims getTensorShape(const char* tensorName) const noexcept = 0;
  virtual DataType getTensorDataType(const char* tensorName) const noexcept = 0;
  virtual TensorLocation getTensorLocation(const char* tensorName) const noexcept = 0;
  virtual bool isShapeInferenceIO(const char* tensorName) const noexcept = 0;
  virtual TensorIOMode getTensorIOMode(const char* tensorName) const noexcept = 0;
  virtual int32_t getTensorBytesPerComponent(const char* tensorName) const noexcept = 0;
  virtual int32_t getTensorComponentsPerElement(const char* tensorName) const noexcept = 0;
  virtual TensorFormat getTensorFormat(const char* tensorName) const noexcept = 0;
  virtual const char* getTensorFormatDesc(const char* tensorName) const noexcept = 0;
  virtual int32_t getTensorVectorizedDim(const char* tensorName) const noexcept = 0;
  virtual Dims getProfileShape(const char* tensorName, int32_t profileIndex,
                               OptProfileSelector select) const noexcept = 0;
  virtual int32_t getNbIOTensors() const noexcept = 0;
  virtual const char* getIOTensorName(int32_t index) const noexcept = 0;
  virtual HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept = 0;
  virtual int32_t getNbAuxStreams() const noexcept = 0;
  virtual int32_t getTensorBytesPerComponentV2(const char* tensorName, int32_t profileIndex) const noexcept = 0;
  virtual int32_t getTensorComponentsPerElementV2(const char* tensorName, int32_t profileIndex) const noexcept = 0;
  virtual TensorFormat getTensorFormatV2(const char* tensorName, int32_t profileIndex) const noexcept = 0;
  virtual const char* getTensorFormatDescV2(const char* tensorName, int32_t profileIndex) const noexcept = 0;
  virtual int32_t getTensorVectorizedDimV2(const char* tensorName, int32_t profileIndex) const noexcept = 0;
  virtual ISerializationConfig* createSerializationConfig() noexcept = 0;
  virtual IHostMemory* serializeWithConfig(ISerializationConfig& config) const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual size_t getDeviceMemorySizeForProfile(int32_t profileIndex) const noexcept = 0;
#endif
  virtual IRefitter* createRefitter(ILogger& logger) noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool setWeightStreamingBudget(int64_t gpuMemoryBudget) noexcept = 0;
  virtual int64_t getWeightStreamingBudget() const noexcept = 0;
  virtual int64_t getMinimumWeightStreamingBudget() const noexcept = 0;
#endif
  virtual int64_t getStreamableWeightsSize() const noexcept = 0;
  virtual bool isDebugTensor(const char* name) const noexcept = 0;
  virtual bool setWeightStreamingBudgetV2(int64_t gpuMemoryBudget) noexcept = 0;
  virtual int64_t getWeightStreamingBudgetV2() const noexcept = 0;
  virtual int64_t getWeightStreamingAutomaticBudget() const noexcept = 0;
  virtual int64_t getWeightStreamingScratchMemorySize() const noexcept = 0;
  virtual int64_t getDeviceMemorySizeV2() const noexcept = 0;
  virtual int64_t getDeviceMemorySizeForProfileV2(int32_t profileIndex) const noexcept = 0;
  virtual const int64_t* getProfileTensorValuesV2(const char* tensorName, int32_t profileIndex,
                                                  OptProfileSelector select) const noexcept = 0;
  virtual IExecutionContext* createExecutionContextWithRuntimeConfig(IRuntimeConfig* runtimeConfig) noexcept = 0;
  virtual IRuntimeConfig* createRuntimeConfig() noexcept = 0;
  virtual int64_t getEngineStat(EngineStat stat) const noexcept = 0;
  virtual const char* getAliasedInputTensor(const char* tensorName) const noexcept = 0;
};

class VExecutionContext : public VRoot {
 public:
  virtual IExecutionContext* getPImpl() noexcept = 0;
  virtual void setDebugSync(bool sync) noexcept = 0;
  virtual bool getDebugSync() const noexcept = 0;
  virtual void setProfiler(IProfiler* profiler) noexcept = 0;
  virtual IProfiler* getProfiler() const noexcept = 0;
  virtual const ICudaEngine& getEngine() const noexcept = 0;
  virtual void setName(const char* name) noexcept = 0;
  virtual const char* getName() const noexcept = 0;
  virtual void setDeviceMemory(void* memory) noexcept = 0;
  virtual int32_t getOptimizationProfile() const noexcept = 0;
  virtual bool allInputDimensionsSpecified() const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool allInputShapesSpecified() const noexcept = 0;
#endif
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual bool executeV2(void* const* bindings) noexcept = 0;
  virtual bool setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t stream) noexcept = 0;
  virtual void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept = 0;
  virtual bool getEnqueueEmitsProfile() const noexcept = 0;
  virtual bool reportToProfiler() const noexcept = 0;
  virtual bool setInputShape(const char* tensorName, const Dims& dims) noexcept = 0;
  virtual Dims getTensorShape(const char* tensorName) const noexcept = 0;
  virtual Dims getTensorStrides(const char* tensorName) const noexcept = 0;
  virtual bool setTensorAddress(const char* tensorName, void* data) noexcept = 0;
  virtual const void* getTensorAddress(const char* tensorName) const noexcept = 0;
  virtual bool setInputTensorAddress(const char* tensorName, const void* data) noexcept = 0;
  virtual bool setOutputTensorAddress(const char* tensorName, void* data) noexcept = 0;
  virtual int32_t inferShapes(int32_t nbMaxNames, const char** tensorNames) noexcept = 0;
  virtual bool setInputConsumedEvent(cudaEvent_t event) noexcept = 0;
  virtual cudaEvent_t getInputConsumedEvent() const noexcept = 0;
  virtual void* getOutputTensorAddress(const char* tensorName) const noexcept = 0;
  virtual bool setOutputAllocator(const char* tensorName, IOutputAllocator* outputAllocator) noexcept = 0;
  virtual IOutputAllocator* getOutputAllocator(const char* tensorName) noexcept = 0;
  virtual int64_t getMaxOutputSize(const char* tensorName) const noexcept = 0;
  virtual bool setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept = 0;
  virtual IGpuAllocator* getTemporaryStorageAllocator() const noexcept = 0;
  virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;
  virtual void setPersistentCacheLimit(size_t size) noexcept = 0;
  virtual size_t getPersistentCacheLimit() const noexcept = 0;
  virtual bool setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept = 0;
  virtual ProfilingVerbosity getNvtxVerbosity() const noexcept = 0;
  virtual void setAuxStreams(cudaStream_t* auxStreams, int32_t nbStreams) noexcept = 0;
  virtual bool setDebugListener(IDebugListener* listener) noexcept = 0;
  virtual IDebugListener* getDebugListener() noexcept = 0;
  virtual bool setTensorDebugState(const char* name, bool flag) noexcept = 0;
  virtual bool getDebugState(const char* name) const noexcept = 0;
  virtual bool setAllTensorsDebugState(bool flag) noexcept = 0;
  virtual size_t updateDeviceMemorySizeForShapes() noexcept = 0;
  virtual void setDeviceMemoryV2(void* memory, int64_t size) noexcept = 0;
  virtual IRuntimeConfig* getRuntimeConfig() const noexcept = 0;
  virtual bool setUnfusedTensorsDebugState(bool flag) noexcept = 0;
  virtual bool getUnfusedTensorsDebugState() const noexcept = 0;
  virtual bool setCommunicator(void* communicator) noexcept = 0;
  virtual bool isStreamCapturable(cudaStream_t stream) const noexcept = 0;
};

class VEngineInspector : public VRoot {
 public:
  virtual IEngineInspector* getPImpl() noexcept = 0;
  virtual bool setExecutionContext(const IExecutionContext* context) noexcept = 0;
  virtual const IExecutionContext* getExecutionContext() const noexcept = 0;
  virtual const char* getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept = 0;
  virtual const char* getEngineInformation(LayerInformationFormat format) const noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
};

class VSerializationConfig : public VRoot {
 public:
  virtual bool setFlags(SerializationFlags serializationFlags) noexcept = 0;
  virtual SerializationFlags getFlags() const noexcept = 0;
  virtual bool clearFlag(SerializationFlag serializationFlag) noexcept = 0;
  virtual bool setFlag(SerializationFlag serializationFlag) noexcept = 0;
  virtual bool getFlag(SerializationFlag serializationFlag) const noexcept = 0;
};

class VRuntimeCache : public VRoot {
 public:
  virtual IRuntimeCache* getPImpl() noexcept = 0;
  virtual IHostMemory* serialize() const noexcept = 0;
  virtual bool deserialize(const void* blob, size_t size) noexcept = 0;
  virtual bool reset() noexcept = 0;
};

class VRuntimeConfig : public VRoot {
 public:
  virtual IRuntimeConfig* getPImpl() noexcept = 0;
  virtual void setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy strategy) noexcept = 0;
  virtual ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept = 0;
  virtual IRuntimeCache* createRuntimeCache() const noexcept = 0;
  virtual bool setRuntimeCache(const IRuntimeCache& cache) noexcept = 0;
  virtual IRuntimeCache* getRuntimeCache() const noexcept = 0;
  virtual void setDynamicShapesKernelSpecializationStrategy(
      DynamicShapesKernelSpecializationStrategy strategy) noexcept = 0;
  virtual DynamicShapesKernelSpecializationStrategy getDynamicShapesKernelSpecializationStrategy() const noexcept = 0;
  virtual bool setCudaGraphStrategy(CudaGraphStrategy strategy) noexcept = 0;
  virtual CudaGraphStrategy getCudaGraphStrategy() const noexcept = 0;
};

}  // namespace apiv

}  // namespace nvinfer1

#endif  // NVINFER_IMPL_RUNTIME_H
