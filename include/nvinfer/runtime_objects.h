// SPDX-License-Identifier: Apache-2.0
// Host memory, runtime, refitter, optimization profile and small configurations. Include NvInferRuntime.h instead.
#ifndef NVINFER_RUNTIME_OBJECTS_H
#define NVINFER_RUNTIME_OBJECTS_H

#include "nvinfer/runtime_enums.h"
#include "nvinfer/runtime_interfaces.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Bytes made by the library, freed by deleting the object.
class IHostMemory : public INoCopy {
 public:
  virtual ~IHostMemory() noexcept = 0;
  void* data() const noexcept { return mImpl->data(); }
  std::size_t size() const noexcept { return mImpl->size(); }

  // kINT8 for plans and other opaque bytes.
  DataType type() const noexcept { return mImpl->type(); }

 protected:
  apiv::VHostMemory* mImpl;
};
inline IHostMemory::~IHostMemory() noexcept = default;

namespace impl {

// A reader of the first version, which cannot seek. What it throws is a failure to read.
class SequentialReader final : public IStreamReaderV2 {
 public:
  explicit SequentialReader(IStreamReader& reader) noexcept : mReader(reader) {}
  int64_t read(void* destination, int64_t nbBytes, cudaStream_t) noexcept override {
    try {
      return mReader.read(destination, nbBytes);
    } catch (...) {
      return -1;
    }
  }
  bool seek(int64_t, SeekPosition) noexcept override { return false; }

 private:
  IStreamReader& mReader;
};

}  // namespace impl

// Turns plans into engines. The caller deletes it; engines keep alive what they need. Deserializing and all const
// functions may be called from several threads at once.
class IRuntime : public INoCopy {
 public:
  virtual ~IRuntime() noexcept = 0;

  // Accepted for compatibility; there are no DLA cores.
  void setDLACore(int32_t dlaCore) noexcept { mImpl->setDLACore(dlaCore); }
  int32_t getDLACore() const noexcept { return mImpl->getDLACore(); }
  int32_t getNbDLACores() const noexcept { return mImpl->getNbDLACores(); }

  // nullptr restores the default. Not owned; must outlive all engines of this runtime.
  void setGpuAllocator(IGpuAllocator* allocator) noexcept { mImpl->setGpuAllocator(allocator); }

  // nullptr detaches. Engines made later use it, too.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

  // nullptr on failure. The bytes may be freed after the call. The caller deletes the engine. A plan decides what runs
  // in this process and on its devices: load none that you do not trust (docs/trust.md).
  ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept {
    return mImpl->deserializeCudaEngine(blob, size);
  }

  // Reads one plan from where the reader stands, and nothing behind it. Load none that you do not trust
  // (docs/trust.md).
  ICudaEngine* deserializeCudaEngine(IStreamReaderV2& streamReader) {
    return mImpl->deserializeCudaEngineV2(streamReader);
  }
  // Likewise; trust is as important here (docs/trust.md).
  TRT_DEPRECATED ICudaEngine* deserializeCudaEngine(IStreamReader& streamReader) {
#if NV_TENSORRT_MAJOR >= 11
    impl::SequentialReader adapter(streamReader);
    return mImpl->deserializeCudaEngineV2(adapter);
#else
    return mImpl->deserializeCudaEngine(streamReader);
#endif
  }

  ILogger* getLogger() const noexcept { return mImpl->getLogger(); }

  // Threads for deserialization, at least 1 (the default). False when out of range.
  bool setMaxThreads(int32_t maxThreads) noexcept { return mImpl->setMaxThreads(maxThreads); }
  int32_t getMaxThreads() const noexcept { return mImpl->getMaxThreads(); }

  // Where temporary files go; nullptr for the system's place. The string is copied.
  void setTemporaryDirectory(const char* path) noexcept { mImpl->setTemporaryDirectory(path); }
  const char* getTemporaryDirectory() const noexcept { return mImpl->getTemporaryDirectory(); }

  // Bit i stands for TempfileControlFlag i; which kinds of temporary files are allowed.
  void setTempfileControlFlags(TempfileControlFlags flags) noexcept { mImpl->setTempfileControlFlags(flags); }
  TempfileControlFlags getTempfileControlFlags() const noexcept { return mImpl->getTempfileControlFlags(); }

  // This runtime's own registry; its parent is the global one.
  IPluginRegistry& getPluginRegistry() noexcept { return mImpl->getPluginRegistry(); }

  // A runtime of another version from a shared library; nullptr on failure.
  IRuntime* loadRuntime(const char* path) noexcept { return mImpl->loadRuntime(path); }

  // Whether plans that contain host code may be loaded; off by default.
  void setEngineHostCodeAllowed(bool allowed) noexcept { mImpl->setEngineHostCodeAllowed(allowed); }
  bool getEngineHostCodeAllowed() const noexcept { return mImpl->getEngineHostCodeAllowed(); }

 protected:
  apiv::VRuntime* mImpl;
};
inline IRuntime::~IRuntime() noexcept = default;

// Replaces weights of an engine in place. The engine must be idle meanwhile; its contexts stay valid. Not thread-safe.
// The caller deletes it before the engine.
class IRefitter : public INoCopy {
 public:
  virtual ~IRefitter() noexcept = 0;

  // By layer and role. False when there are no such weights, or count or type differ. Values are not copied until the
  // refit.
  bool setWeights(const char* layerName, WeightsRole role, Weights weights) noexcept {
    return mImpl->setWeights(layerName, role, weights);
  }

  // False when something is missing or invalid; the engine may then be partly updated.
  bool refitCudaEngine() noexcept { return mImpl->refitCudaEngine(); }

  // Fill up to `size` entries and return how many there are: weights still needed, and all refittable weights. The
  // arrays may be nullptr when size is 0.
  int32_t getMissing(int32_t size, const char** layerNames, WeightsRole* roles) noexcept {
    return mImpl->getMissing(size, layerNames, roles);
  }
  int32_t getAll(int32_t size, const char** layerNames, WeightsRole* roles) noexcept {
    return mImpl->getAll(size, layerNames, roles);
  }

  // nullptr detaches.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

  // By the name given with INetworkDefinition::setWeightsName() or in the model.
  bool setNamedWeights(const char* name, Weights weights) noexcept { return mImpl->setNamedWeights(name, weights); }

  // As getMissing() and getAll(), by name.
  int32_t getMissingWeights(int32_t size, const char** weightsNames) noexcept {
    return mImpl->getMissingWeights(size, weightsNames);
  }
  int32_t getAllWeights(int32_t size, const char** weightsNames) noexcept {
    return mImpl->getAllWeights(size, weightsNames);
  }

  ILogger* getLogger() const noexcept { return mImpl->getLogger(); }

  // At least 1 (the default). False when out of range.
  bool setMaxThreads(int32_t maxThreads) noexcept { return mImpl->setMaxThreads(maxThreads); }
  int32_t getMaxThreads() const noexcept { return mImpl->getMaxThreads(); }

  bool setNamedWeights(const char* name, Weights weights, TensorLocation location) noexcept {
    return mImpl->setNamedWeightsWithLocation(name, weights, location);
  }

  // What was set; empty weights when nothing was.
  Weights getNamedWeights(const char* weightsName) const noexcept { return mImpl->getNamedWeights(weightsName); }
  TensorLocation getWeightsLocation(const char* weightsName) const noexcept {
    return mImpl->getWeightsLocation(weightsName);
  }

  bool unsetNamedWeights(const char* weightsName) noexcept { return mImpl->unsetNamedWeights(weightsName); }

  // Whether new weights are checked for values that cannot be represented; on by default.
  void setWeightsValidation(bool weightsValidation) noexcept { mImpl->setWeightsValidation(weightsValidation); }
  bool getWeightsValidation() const noexcept { return mImpl->getWeightsValidation(); }

  // Host-side weights may be freed when the call returns, device-side ones when `stream` has reached this point.
  bool refitCudaEngineAsync(cudaStream_t stream) noexcept { return mImpl->refitCudaEngineAsync(stream); }

  // Type and count that the engine expects; values is nullptr. Count -1 when the name is unknown.
  Weights getWeightsPrototype(const char* weightsName) const noexcept {
    return mImpl->getWeightsPrototype(weightsName);
  }

#if NV_TENSORRT_MAJOR < 11
  // Values of this tensor lie in [min, max]: with BuilderFlag::kINT8 it may be held in int8. False unless both are
  // finite and min <= max. INetworkDefinition::addQuantize() replaces it.
  TRT_DEPRECATED bool setDynamicRange(const char* tensorName, float min, float max) noexcept {
    return mImpl->setDynamicRange(tensorName, min, max);
  }
  TRT_DEPRECATED float getDynamicRangeMin(const char* tensorName) const noexcept {
    return mImpl->getDynamicRangeMin(tensorName);
  }
  TRT_DEPRECATED float getDynamicRangeMax(const char* tensorName) const noexcept {
    return mImpl->getDynamicRangeMax(tensorName);
  }
  TRT_DEPRECATED int32_t getTensorsWithDynamicRange(int32_t size, const char** tensorNames) const noexcept {
    return mImpl->getTensorsWithDynamicRange(size, tensorNames);
  }
#endif

 protected:
  apiv::VRefitter* mImpl;
};
inline IRefitter::~IRefitter() noexcept = default;

// Ranges of the dynamic inputs. Owned by the builder. Setters return false on inconsistencies that show at once; the
// build checks everything.
class IOptimizationProfile : public INoCopy {
 public:
  // Call for kMIN, kOPT and kMAX of each dynamic input: 0 <= min <= opt <= max, static dims as in the network. The
  // getter's nbDims is -1 when unset.
  bool setDimensions(const char* inputName, OptProfileSelector select, const Dims& dims) noexcept {
    return mImpl->setDimensions(inputName, select, dims);
  }
  Dims getDimensions(const char* inputName, OptProfileSelector select) const noexcept {
    return mImpl->getDimensions(inputName, select);
  }

  // Values of a shape tensor input; -1 when unset.
  int32_t getNbShapeValues(const char* inputName) const noexcept { return mImpl->getNbShapeValues(inputName); }

  // Extra memory, as a fraction in [0, 1] of the least, that engines may use for this profile; 1 by default.
  bool setExtraMemoryTarget(float target) noexcept { return mImpl->setExtraMemoryTarget(target); }
  float getExtraMemoryTarget() const noexcept { return mImpl->getExtraMemoryTarget(); }

  // True when no inconsistency is known yet.
  bool isValid() const noexcept { return mImpl->isValid(); }

  // As setDimensions(), for the values of a shape tensor input, at most 64. The getter returns nullptr when unset.
  bool setShapeValuesV2(const char* inputName, OptProfileSelector select, const int64_t* values,
                        int32_t nbValues) noexcept {
    return mImpl->setShapeValuesV2(inputName, select, values, nbValues);
  }
  const int64_t* getShapeValuesV2(const char* inputName, OptProfileSelector select) const noexcept {
    return mImpl->getShapeValuesV2(inputName, select);
  }

#if NV_TENSORRT_MAJOR < 11
  // As setShapeValuesV2(), for values that fit into 32 bits.
  TRT_DEPRECATED bool setShapeValues(const char* inputName, OptProfileSelector select, const int32_t* values,
                                     int32_t nbValues) noexcept {
    return mImpl->setShapeValues(inputName, select, values, nbValues);
  }
  TRT_DEPRECATED const int32_t* getShapeValues(const char* inputName, OptProfileSelector select) const noexcept {
    return mImpl->getShapeValues(inputName, select);
  }
#endif

 protected:
  virtual ~IOptimizationProfile() noexcept = 0;
  apiv::VOptimizationProfile* mImpl;
};
inline IOptimizationProfile::~IOptimizationProfile() noexcept = default;

// How ICudaEngine::serializeWithConfig() writes. The caller deletes it.
class ISerializationConfig : public INoCopy {
 public:
  virtual ~ISerializationConfig() noexcept = 0;

  // Bit i stands for SerializationFlag i.
  bool setFlags(SerializationFlags serializationFlags) noexcept { return mImpl->setFlags(serializationFlags); }
  SerializationFlags getFlags() const noexcept { return mImpl->getFlags(); }
  bool clearFlag(SerializationFlag serializationFlag) noexcept { return mImpl->clearFlag(serializationFlag); }
  bool setFlag(SerializationFlag serializationFlag) noexcept { return mImpl->setFlag(serializationFlag); }
  bool getFlag(SerializationFlag serializationFlag) const noexcept { return mImpl->getFlag(serializationFlag); }

 protected:
  apiv::VSerializationConfig* mImpl;
};
inline ISerializationConfig::~ISerializationConfig() noexcept = default;

// Kernels that were compiled while engines were running or set up, for devices of one kind: a process that begins with
// those of an earlier one compiles none of them again. Thread-safe, and contexts and engines may share it; it must
// outlive the contexts that use it. The caller deletes it. lathe.h has functions for caches in files.
class IRuntimeCache : public INoCopy {
 public:
  virtual ~IRuntimeCache() noexcept = 0;

  // The kernels, sorted; equal ones give equal bytes, and an empty cache gives some, too. The caller deletes the
  // result. Null on failure.
  IHostMemory* serialize() const noexcept { return mImpl->serialize(); }

  // Adds the kernels of serialize(); of those that are there already the ones in the cache stay. False, and the cache
  // is as it was, where the bytes are damaged or of another version of the library, operating system, GPU or driver.
  bool deserialize(const void* blob, size_t size) noexcept { return mImpl->deserialize(blob, size); }

  // Forgets all kernels. Contexts that run them go on to.
  bool reset() noexcept { return mImpl->reset(); }

 protected:
  apiv::VRuntimeCache* mImpl;
};
inline IRuntimeCache::~IRuntimeCache() noexcept = default;

// How execution contexts are set up: each takes what is set when it is created, later changes count for later ones. The
// caller deletes it.
class IRuntimeConfig : public INoCopy {
 public:
  virtual ~IRuntimeConfig() noexcept = 0;

  // kSTATIC by default.
  void setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy strategy) noexcept {
    mImpl->setExecutionContextAllocationStrategy(strategy);
  }
  ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept {
    return mImpl->getExecutionContextAllocationStrategy();
  }

  // An empty cache for kernels of this engine's device. The caller deletes it. Null on failure.
  IRuntimeCache* createRuntimeCache() const noexcept { return mImpl->createRuntimeCache(); }

  // Where contexts look for kernels that must be compiled for the device, and put them. Not owned: it must outlive the
  // contexts. False where another library made it, or it is for another device than the engine's.
  bool setRuntimeCache(const IRuntimeCache& cache) noexcept { return mImpl->setRuntimeCache(cache); }
  // Null where none was set.
  IRuntimeCache* getRuntimeCache() const noexcept { return mImpl->getRuntimeCache(); }

  // kLAZY by default.
  void setDynamicShapesKernelSpecializationStrategy(DynamicShapesKernelSpecializationStrategy strategy) noexcept {
    mImpl->setDynamicShapesKernelSpecializationStrategy(strategy);
  }
  DynamicShapesKernelSpecializationStrategy getDynamicShapesKernelSpecializationStrategy() const noexcept {
    return mImpl->getDynamicShapesKernelSpecializationStrategy();
  }

  // kDISABLED by default. False, and nothing is changed, where there is no such strategy.
  bool setCudaGraphStrategy(CudaGraphStrategy strategy) noexcept { return mImpl->setCudaGraphStrategy(strategy); }
  CudaGraphStrategy getCudaGraphStrategy() const noexcept { return mImpl->getCudaGraphStrategy(); }

 protected:
  apiv::VRuntimeConfig* mImpl;
};
inline IRuntimeConfig::~IRuntimeConfig() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_RUNTIME_OBJECTS_H
