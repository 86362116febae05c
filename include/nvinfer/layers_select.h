// SPDX-License-Identifier: Apache-2.0
// Layers that pick, scatter, resample or call plugins. Include NvInfer.h instead.
#ifndef NVINFER_LAYERS_SELECT_H
#define NVINFER_LAYERS_SELECT_H

#include "nvinfer/tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Picks slices or elements of input 0 by the indices in input 1. Indices may be negative.
class IGatherLayer : public ILayer {
 public:
  // Of input 0; ignored in mode kND.
  void setGatherAxis(int32_t axis) noexcept { mImpl->setGatherAxis(axis); }
  int32_t getGatherAxis() const noexcept { return mImpl->getGatherAxis(); }

  // Leading dimensions that both inputs share.
  void setNbElementWiseDims(int32_t elementWiseDims) noexcept { mImpl->setNbElementWiseDims(elementWiseDims); }
  int32_t getNbElementWiseDims() const noexcept { return mImpl->getNbElementWiseDims(); }

  void setMode(GatherMode mode) noexcept { mImpl->setMode(mode); }
  GatherMode getMode() const noexcept { return mImpl->getMode(); }

 protected:
  virtual ~IGatherLayer() noexcept = 0;
  apiv::VGatherLayer* mImpl;
};
inline IGatherLayer::~IGatherLayer() noexcept = default;

// Copies input 0 and writes the updates (input 2) at the indices (input 1).
class IScatterLayer : public ILayer {
 public:
  void setMode(ScatterMode mode) noexcept { mImpl->setMode(mode); }
  ScatterMode getMode() const noexcept { return mImpl->getMode(); }

  // For kELEMENT; 0 by default.
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }

 protected:
  virtual ~IScatterLayer() noexcept = 0;
  apiv::VScatterLayer* mImpl;
};
inline IScatterLayer::~IScatterLayer() noexcept = default;

// Inputs: indices, values [off, on], depth. The new dimension is inserted at the axis.
class IOneHotLayer : public ILayer {
 public:
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }

 protected:
  virtual ~IOneHotLayer() noexcept = 0;
  apiv::VOneHotLayer* mImpl;
};
inline IOneHotLayer::~IOneHotLayer() noexcept = default;

// condition ? then : else, for each element; sizes of 1 are repeated.
class ISelectLayer : public ILayer {
 protected:
  virtual ~ISelectLayer() noexcept = 0;
  apiv::VSelectLayer* mImpl;
};
inline ISelectLayer::~ISelectLayer() noexcept = default;

// Coordinates of the elements that are not zero: [rank, n], in lexical order.
class INonZeroLayer : public ILayer {
 public:
  // kINT32 (default) or kINT64; false otherwise.
  bool setIndicesType(DataType type) noexcept { return mImpl->setIndicesType(type); }
  DataType getIndicesType() const noexcept { return mImpl->getIndicesType(); }

 protected:
  virtual ~INonZeroLayer() noexcept = 0;
  apiv::VNonZeroLayer* mImpl;
};
inline INonZeroLayer::~INonZeroLayer() noexcept = default;

// The k largest or smallest along one dimension: output 0 values, sorted, output 1 their indices. Optional input 1
// gives k.
class ITopKLayer : public ILayer {
 public:
  void setOperation(TopKOperation op) noexcept { mImpl->setOperation(op); }
  TopKOperation getOperation() const noexcept { return mImpl->getOperation(); }

  // At most 3840. Drops input 1; -1 when that gives it.
  void setK(int32_t k) noexcept { mImpl->setK(k); }
  int32_t getK() const noexcept { return mImpl->getK(); }

  // Exactly one bit.
  void setReduceAxes(uint32_t reduceAxes) noexcept { mImpl->setReduceAxes(reduceAxes); }
  uint32_t getReduceAxes() const noexcept { return mImpl->getReduceAxes(); }

  // kINT32 (default) or kINT64; false otherwise.
  bool setIndicesType(DataType type) noexcept { return mImpl->setIndicesType(type); }
  DataType getIndicesType() const noexcept { return mImpl->getIndicesType(); }

  using ILayer::setInput;

 protected:
  virtual ~ITopKLayer() noexcept = 0;
  apiv::VTopKLayer* mImpl;
};
inline ITopKLayer::~ITopKLayer() noexcept = default;

// Non-maximum suppression. Inputs: boxes, scores, greatest number per class; optional: 3 IoU threshold, 4 score
// threshold. Outputs: [n, 3] of batch, class, box; and n.
class INMSLayer : public ILayer {
 public:
  // kCORNER_PAIRS by default.
  void setBoundingBoxFormat(BoundingBoxFormat fmt) noexcept { mImpl->setBoundingBoxFormat(fmt); }
  BoundingBoxFormat getBoundingBoxFormat() const noexcept { return mImpl->getBoundingBoxFormat(); }

  // Boxes kept per batch and class before suppression; 5000 by default.
  void setTopKBoxLimit(int32_t limit) noexcept { mImpl->setTopKBoxLimit(limit); }
  int32_t getTopKBoxLimit() const noexcept { return mImpl->getTopKBoxLimit(); }

  // kINT32 (default) or kINT64; false otherwise.
  bool setIndicesType(DataType type) noexcept { return mImpl->setIndicesType(type); }
  DataType getIndicesType() const noexcept { return mImpl->getIndicesType(); }

  using ILayer::setInput;

 protected:
  virtual ~INMSLayer() noexcept = 0;
  apiv::VNMSLayer* mImpl;
};
inline INMSLayer::~INMSLayer() noexcept = default;

// Resamples a tensor, to output dimensions or by scales, whichever are set last. Optional input 1 gives the output
// dimensions; once it is there, both are refused.
class IResizeLayer : public ILayer {
 public:
  // The getter's nbDims is -1 when scales or input 1 give them.
  void setOutputDimensions(const Dims& dimensions) noexcept { mImpl->setOutputDimensions(dimensions); }
  Dims getOutputDimensions() const noexcept { return mImpl->getOutputDimensions(); }

  // Output size = floor(input size * scale). getScales() returns the number of scales and fills them in when `size`
  // equals it; -1 when none are set.
  void setScales(const float* scales, int32_t nbScales) noexcept { mImpl->setScales(scales, nbScales); }
  int32_t getScales(int32_t size, float* scales) const noexcept { return mImpl->getScales(size, scales); }

  // kNEAREST by default.
  void setResizeMode(InterpolationMode interpolationMode) noexcept { mImpl->setResizeMode(interpolationMode); }
  InterpolationMode getResizeMode() const noexcept { return mImpl->getResizeMode(); }

  // kASYMMETRIC by default.
  void setCoordinateTransformation(ResizeCoordinateTransformation coordTransform) noexcept {
    mImpl->setCoordinateTransformation(coordTransform);
  }
  ResizeCoordinateTransformation getCoordinateTransformation() const noexcept {
    return mImpl->getCoordinateTransformation();
  }

  // kFORMULA by default.
  void setSelectorForSinglePixel(ResizeSelector selector) noexcept { mImpl->setSelectorForSinglePixel(selector); }
  ResizeSelector getSelectorForSinglePixel() const noexcept { return mImpl->getSelectorForSinglePixel(); }

  // kFLOOR by default.
  void setNearestRounding(ResizeRoundMode value) noexcept { mImpl->setNearestRounding(value); }
  ResizeRoundMode getNearestRounding() const noexcept { return mImpl->getNearestRounding(); }

  // -0.75 by default.
  void setCubicCoeff(float A) noexcept { mImpl->setCubicCoeff(A); }
  float getCubicCoeff() const noexcept { return mImpl->getCubicCoeff(); }

  // Whether weights outside the image are set to 0 and the others rescaled; false by default.
  void setExcludeOutside(bool excludeFlag) noexcept { mImpl->setExcludeOutside(excludeFlag); }
  bool getExcludeOutside() const noexcept { return mImpl->getExcludeOutside(); }

  using ILayer::setInput;

 protected:
  virtual ~IResizeLayer() noexcept = 0;
  apiv::VResizeLayer* mImpl;
};
inline IResizeLayer::~IResizeLayer() noexcept = default;

// Samples input 0 [N, C, H, W] at the positions of input 1 [N, Ho, Wo, 2], which lie in [-1, 1].
class IGridSampleLayer : public ILayer {
 public:
  // kLINEAR by default.
  void setInterpolationMode(InterpolationMode mode) noexcept { mImpl->setInterpolationMode(mode); }
  InterpolationMode getInterpolationMode() const noexcept { return mImpl->getInterpolationMode(); }

  // Whether -1 and 1 mean the centres of the outermost pixels; false by default.
  void setAlignCorners(bool alignCorners) noexcept { mImpl->setAlignCorners(alignCorners); }
  bool getAlignCorners() const noexcept { return mImpl->getAlignCorners(); }

  // kFILL (default), kCLAMP or kREFLECT; false otherwise.
  bool setSampleMode(SampleMode mode) noexcept { return mImpl->setSampleMode(mode); }
  SampleMode getSampleMode() const noexcept { return mImpl->getSampleMode(); }

 protected:
  virtual ~IGridSampleLayer() noexcept = 0;
  apiv::VGridSampleLayer* mImpl;
};
inline IGridSampleLayer::~IGridSampleLayer() noexcept = default;

// Fails the build, or the inference, when its kBOOL input has a false element.
class IAssertionLayer : public ILayer {
 public:
  // Copied.
  void setMessage(const char* message) noexcept { mImpl->setMessage(message); }
  const char* getMessage() const noexcept { return mImpl->getMessage(); }

 protected:
  virtual ~IAssertionLayer() noexcept = 0;
  apiv::VAssertionLayer* mImpl;
};
inline IAssertionLayer::~IAssertionLayer() noexcept = default;

// Runs a plugin of the V2 family.
class TRT_DEPRECATED IPluginV2Layer : public ILayer {
 public:
  // The network's clone.
  IPluginV2& getPlugin() noexcept { return mImpl->getPlugin(); }

 protected:
  virtual ~IPluginV2Layer() noexcept = 0;
  apiv::VPluginV2Layer* mImpl;
};
inline IPluginV2Layer::~IPluginV2Layer() noexcept = default;

// Runs a V3 plugin.
class IPluginV3Layer : public ILayer {
 public:
  // The network's clone.
  IPluginV3& getPlugin() noexcept { return mImpl->getPlugin(); }

 protected:
  virtual ~IPluginV3Layer() noexcept = 0;
  apiv::VPluginV3Layer* mImpl;
};
inline IPluginV3Layer::~IPluginV3Layer() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_LAYERS_SELECT_H
