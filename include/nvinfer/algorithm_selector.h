// SPDX-License-Identifier: Apache-2.0
// Algorithm selectors of generation 10, which chose among tactics; builds ask none. Include NvInfer.h instead.
#ifndef NVINFER_ALGORITHM_SELECTOR_H
#define NVINFER_ALGORITHM_SELECTOR_H

#include "nvinfer/network.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

class IAlgorithmIOInfo;
class IAlgorithmVariant;

namespace apiv {

class VAlgorithmIOInfo : public VRoot {
 public:
  virtual DataType getDataType() const noexcept = 0;
  virtual Dims getStrides() const noexcept = 0;
  virtual int64_t getVectorizedDim() const noexcept = 0;
  virtual int64_t getComponentsPerElement() const noexcept = 0;
};

class VAlgorithmVariant : public VRoot {
 public:
  virtual int64_t getImplementation() const noexcept = 0;
  virtual int64_t getTactic() const noexcept = 0;
};

class VAlgorithmContext : public VRoot {
 public:
  virtual const char* getName() const noexcept = 0;
  virtual Dims getDimensions(int32_t index, OptProfileSelector select) const noexcept = 0;
  virtual int32_t getNbInputs() const noexcept = 0;
  virtual int32_t getNbOutputs() const noexcept = 0;
};

class VAlgorithm : public VRoot {
 public:
  virtual const IAlgorithmVariant& getAlgorithmVariant() const noexcept = 0;
  virtual float getTimingMSec() const noexcept = 0;
  virtual std::size_t getWorkspaceSize() const noexcept = 0;
  virtual const IAlgorithmIOInfo* getAlgorithmIOInfoByIndex(int32_t index) const noexcept = 0;
};

}  // namespace apiv

// Type and layout of an input or output of a tactic.
class TRT_DEPRECATED IAlgorithmIOInfo : public INoCopy {
 public:
  DataType getDataType() const noexcept { return mImpl->getDataType(); }
  Dims getStrides() const noexcept { return mImpl->getStrides(); }
  int64_t getVectorizedDim() const noexcept { return mImpl->getVectorizedDim(); }
  int64_t getComponentsPerElement() const noexcept { return mImpl->getComponentsPerElement(); }

 protected:
  ~IAlgorithmIOInfo() noexcept override = default;
  apiv::VAlgorithmIOInfo* mImpl;
};

// Names a tactic within a layer.
class TRT_DEPRECATED IAlgorithmVariant : public INoCopy {
 public:
  int64_t getImplementation() const noexcept { return mImpl->getImplementation(); }
  int64_t getTactic() const noexcept { return mImpl->getTactic(); }

 protected:
  ~IAlgorithmVariant() noexcept override = default;
  apiv::VAlgorithmVariant* mImpl;
};

// The layer that a tactic is chosen for.
class TRT_DEPRECATED IAlgorithmContext : public INoCopy {
 public:
  const char* getName() const noexcept { return mImpl->getName(); }
  Dims getDimensions(int32_t index, OptProfileSelector select) const noexcept {
    return mImpl->getDimensions(index, select);
  }
  int32_t getNbInputs() const noexcept { return mImpl->getNbInputs(); }
  int32_t getNbOutputs() const noexcept { return mImpl->getNbOutputs(); }

 protected:
  ~IAlgorithmContext() noexcept override = default;
  apiv::VAlgorithmContext* mImpl;
};

// A tactic with its time and the scratch memory that it takes.
class TRT_DEPRECATED IAlgorithm : public INoCopy {
 public:
  const IAlgorithmVariant& getAlgorithmVariant() const noexcept { return mImpl->getAlgorithmVariant(); }
  float getTimingMSec() const noexcept { return mImpl->getTimingMSec(); }
  std::size_t getWorkspaceSize() const noexcept { return mImpl->getWorkspaceSize(); }
  const IAlgorithmIOInfo* getAlgorithmIOInfoByIndex(int32_t index) const noexcept {
    return mImpl->getAlgorithmIOInfoByIndex(index);
  }

 protected:
  ~IAlgorithm() noexcept override = default;
  apiv::VAlgorithm* mImpl;
};

namespace v_1_0 {

// Implemented by the application.
class TRT_DEPRECATED IAlgorithmSelector : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IAlgorithmSelector", 1, 0}; }

  // Writes the indices of the tactics that may be used to `selection` and returns how many there are.
  virtual int32_t selectAlgorithms(const IAlgorithmContext& context, const IAlgorithm* const* choices,
                                   int32_t nbChoices, int32_t* selection) noexcept = 0;

  // The choice for each layer.
  virtual void reportAlgorithms(const IAlgorithmContext* const* algoContexts, const IAlgorithm* const* algoChoices,
                                int32_t nbAlgorithms) noexcept = 0;

  ~IAlgorithmSelector() noexcept override = default;
};

}  // namespace v_1_0

using IAlgorithmSelector = v_1_0::IAlgorithmSelector;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_ALGORITHM_SELECTOR_H
