// SPDX-License-Identifier: Apache-2.0
// Tensors and the base of all layers. Include NvInfer.h instead.
#ifndef NVINFER_TENSOR_H
#define NVINFER_TENSOR_H

#include "NvInferRuntime.h"
#include "nvinfer/network_enums.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Bit i allows TensorFormat i.
using TensorFormats = uint32_t;

// A value in a network. Owned by the network.
class ITensor : public INoCopy {
 public:
  // At most 4096 bytes with the terminator; copied. Must be unique among inputs and outputs.
  void setName(const char* name) noexcept { mImpl->setName(name); }
  const char* getName() const noexcept { return mImpl->getName(); }

  // Of network inputs only. -1 means known at run time.
  void setDimensions(const Dims& dimensions) noexcept { mImpl->setDimensions(dimensions); }
  Dims getDimensions() const noexcept { return mImpl->getDimensions(); }

  DataType getType() const noexcept { return mImpl->getType(); }

  bool isNetworkInput() const noexcept { return mImpl->isNetworkInput(); }
  bool isNetworkOutput() const noexcept { return mImpl->isNetworkOutput(); }

  // Without effect.
  TRT_DEPRECATED void setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept {
    mImpl->setBroadcastAcrossBatch(broadcastAcrossBatch);
  }
  TRT_DEPRECATED bool getBroadcastAcrossBatch() const noexcept { return mImpl->getBroadcastAcrossBatch(); }

  TensorLocation getLocation() const noexcept { return mImpl->getLocation(); }

  // Without effect; the library decides.
  TRT_DEPRECATED void setLocation(TensorLocation location) noexcept { mImpl->setLocation(location); }

  // Of network inputs and outputs: bit i allows TensorFormat i. All by default.
  void setAllowedFormats(TensorFormats formats) noexcept { mImpl->setAllowedFormats(formats); }
  TensorFormats getAllowedFormats() const noexcept { return mImpl->getAllowedFormats(); }

  // Whether its values are needed to compute shapes, and whether it holds data computed on the device. Reliable once
  // the network is complete; a tensor may be both or neither.
  bool isShapeTensor() const noexcept { return mImpl->isShapeTensor(); }
  bool isExecutionTensor() const noexcept { return mImpl->isExecutionTensor(); }

  // Names a dimension of an input. Dimensions of equal name have equal sizes. nullptr removes it.
  void setDimensionName(int32_t index, const char* name) noexcept { mImpl->setDimensionName(index, name); }
  const char* getDimensionName(int32_t index) const noexcept { return mImpl->getDimensionName(index); }

#if NV_TENSORRT_MAJOR < 11
  // Of network inputs: their type. Others are refused where they have another: addCast().
  TRT_DEPRECATED void setType(DataType type) noexcept { mImpl->setType(type); }

  // Values of this tensor lie in [min, max]: with BuilderFlag::kINT8, and in networks without quantize layers, it is
  // held in int8 where convolutions or matrix products read it, symmetrically, whatever a calibrator says. False unless
  // both are finite and min <= max. INetworkDefinition::addQuantize() replaces it.
  TRT_DEPRECATED bool setDynamicRange(float min, float max) noexcept { return mImpl->setDynamicRange(min, max); }
  TRT_DEPRECATED bool dynamicRangeIsSet() const noexcept { return mImpl->dynamicRangeIsSet(); }
  TRT_DEPRECATED void resetDynamicRange() noexcept { mImpl->resetDynamicRange(); }
  TRT_DEPRECATED float getDynamicRangeMin() const noexcept { return mImpl->getDynamicRangeMin(); }
  TRT_DEPRECATED float getDynamicRangeMax() const noexcept { return mImpl->getDynamicRangeMax(); }
#endif

 protected:
  virtual ~ITensor() noexcept = 0;
  apiv::VTensor* mImpl;
};
inline ITensor::~ITensor() noexcept = default;

// Base of all layers. Owned by the network.
class ILayer : public INoCopy {
 public:
  LayerType getType() const noexcept { return mLayer->getType(); }

  // Copied; at most 4096 bytes with the terminator.
  void setName(const char* name) noexcept { mLayer->setName(name); }
  const char* getName() const noexcept { return mLayer->getName(); }

  int32_t getNbInputs() const noexcept { return mLayer->getNbInputs(); }

  // nullptr when out of range or when an optional input is absent.
  ITensor* getInput(int32_t index) const noexcept { return mLayer->getInput(index); }

  int32_t getNbOutputs() const noexcept { return mLayer->getNbOutputs(); }

  // nullptr when out of range.
  ITensor* getOutput(int32_t index) const noexcept { return mLayer->getOutput(index); }

  // Replaces an input, or adds an optional one. Reports an error when `index` is not allowed.
  void setInput(int32_t index, ITensor& tensor) noexcept { mLayer->setInput(index, tensor); }

  DataType getOutputType(int32_t index) const noexcept { return mLayer->getOutputType(index); }

  // Free text shown by the engine inspector. Copied.
  void setMetadata(const char* metadata) noexcept { mLayer->setMetadata(metadata); }
  const char* getMetadata() const noexcept { return mLayer->getMetadata(); }

  // For collective layers: how many processes take part. False when less than 1.
  bool setNbRanks(int32_t nbRanks) noexcept { return mLayer->setNbRanks(nbRanks); }
  int32_t getNbRanks() const noexcept { return mLayer->getNbRanks(); }

#if NV_TENSORRT_MAJOR < 11
  // The type that the layer computes in and the type of an output, in networks that are not strongly typed. Obeyed with
  // BuilderFlag::kOBEY_PRECISION_CONSTRAINTS, where a kernel can with kPREFER_PRECISION_CONSTRAINTS, not looked at
  // without. INetworkDefinition::addCast() replaces them.
  TRT_DEPRECATED void setPrecision(DataType dataType) noexcept { mLayer->setPrecision(dataType); }
  TRT_DEPRECATED DataType getPrecision() const noexcept { return mLayer->getPrecision(); }
  TRT_DEPRECATED bool precisionIsSet() const noexcept { return mLayer->precisionIsSet(); }
  TRT_DEPRECATED void resetPrecision() noexcept { mLayer->resetPrecision(); }
  TRT_DEPRECATED void setOutputType(int32_t index, DataType dataType) noexcept {
    mLayer->setOutputType(index, dataType);
  }
  TRT_DEPRECATED bool outputTypeIsSet(int32_t index) const noexcept { return mLayer->outputTypeIsSet(index); }
  TRT_DEPRECATED void resetOutputType(int32_t index) noexcept { mLayer->resetOutputType(index); }
#endif

 protected:
  virtual ~ILayer() noexcept = 0;
  apiv::VLayer* mLayer;
};
inline ILayer::~ILayer() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_TENSOR_H
