// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, normalization and element-wise layers. Include NvInfer.h instead.
#ifndef NVINFER_LAYERS_BASIC_H
#define NVINFER_LAYERS_BASIC_H

#include "nvinfer/tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Correlation over 2 or 3 spatial dimensions of an N,C,... tensor. Weights are [K, C/groups, spatial...]. Optional
// inputs: 1 kernel, 2 bias; they replace the static weights, and weights that are set later replace them.
class IConvolutionLayer : public ILayer {
 public:
  // K.
  void setNbOutputMaps(int64_t nbOutputMaps) noexcept { mImpl->setNbOutputMaps(nbOutputMaps); }
  int64_t getNbOutputMaps() const noexcept { return mImpl->getNbOutputMaps(); }

  // 1 by default. Must divide C and K.
  void setNbGroups(int64_t nbGroups) noexcept { mImpl->setNbGroups(nbGroups); }
  int64_t getNbGroups() const noexcept { return mImpl->getNbGroups(); }

  void setKernelWeights(Weights weights) noexcept { mImpl->setKernelWeights(weights); }
  Weights getKernelWeights() const noexcept { return mImpl->getKernelWeights(); }

  // K values, or empty.
  void setBiasWeights(Weights weights) noexcept { mImpl->setBiasWeights(weights); }
  Weights getBiasWeights() const noexcept { return mImpl->getBiasWeights(); }

  // At the start and the end of each spatial dimension; 0 by default.
  void setPrePadding(const Dims& padding) noexcept { mImpl->setPrePadding(padding); }
  Dims getPrePadding() const noexcept { return mImpl->getPrePadding(); }
  void setPostPadding(const Dims& padding) noexcept { mImpl->setPostPadding(padding); }
  Dims getPostPadding() const noexcept { return mImpl->getPostPadding(); }

  // kEXPLICIT_ROUND_DOWN by default. The SAME modes ignore explicit padding.
  void setPaddingMode(PaddingMode paddingMode) noexcept { mImpl->setPaddingMode(paddingMode); }
  PaddingMode getPaddingMode() const noexcept { return mImpl->getPaddingMode(); }

  void setKernelSizeNd(const Dims& kernelSize) noexcept { mImpl->setKernelSizeNd(kernelSize); }
  Dims getKernelSizeNd() const noexcept { return mImpl->getKernelSizeNd(); }

  // 1 by default.
  void setStrideNd(const Dims& stride) noexcept { mImpl->setStrideNd(stride); }
  Dims getStrideNd() const noexcept { return mImpl->getStrideNd(); }

  // Sets start and end alike. The getter's nbDims is -1 when they differ.
  void setPaddingNd(const Dims& padding) noexcept { mImpl->setPaddingNd(padding); }
  Dims getPaddingNd() const noexcept { return mImpl->getPaddingNd(); }

  // 1 by default.
  void setDilationNd(const Dims& dilation) noexcept { mImpl->setDilationNd(dilation); }
  Dims getDilationNd() const noexcept { return mImpl->getDilationNd(); }

  using ILayer::setInput;

 protected:
  virtual ~IConvolutionLayer() noexcept = 0;
  apiv::VConvolutionLayer* mImpl;
};
inline IConvolutionLayer::~IConvolutionLayer() noexcept = default;

// Transposed convolution over 2 or 3 spatial dimensions. Weights are [C, K/groups, spatial...]. Padding trims the
// output. Optional inputs: 1 kernel, 2 bias; they replace the static weights, and weights that are set later replace
// them.
class IDeconvolutionLayer : public ILayer {
 public:
  // K.
  void setNbOutputMaps(int64_t nbOutputMaps) noexcept { mImpl->setNbOutputMaps(nbOutputMaps); }
  int64_t getNbOutputMaps() const noexcept { return mImpl->getNbOutputMaps(); }

  // 1 by default.
  void setNbGroups(int64_t nbGroups) noexcept { mImpl->setNbGroups(nbGroups); }
  int64_t getNbGroups() const noexcept { return mImpl->getNbGroups(); }

  void setKernelWeights(Weights weights) noexcept { mImpl->setKernelWeights(weights); }
  Weights getKernelWeights() const noexcept { return mImpl->getKernelWeights(); }

  // K values, or empty.
  void setBiasWeights(Weights weights) noexcept { mImpl->setBiasWeights(weights); }
  Weights getBiasWeights() const noexcept { return mImpl->getBiasWeights(); }

  // At the start and the end of each spatial dimension; 0 by default.
  void setPrePadding(const Dims& padding) noexcept { mImpl->setPrePadding(padding); }
  Dims getPrePadding() const noexcept { return mImpl->getPrePadding(); }
  void setPostPadding(const Dims& padding) noexcept { mImpl->setPostPadding(padding); }
  Dims getPostPadding() const noexcept { return mImpl->getPostPadding(); }

  // kEXPLICIT_ROUND_DOWN by default.
  void setPaddingMode(PaddingMode paddingMode) noexcept { mImpl->setPaddingMode(paddingMode); }
  PaddingMode getPaddingMode() const noexcept { return mImpl->getPaddingMode(); }

  void setKernelSizeNd(const Dims& kernelSize) noexcept { mImpl->setKernelSizeNd(kernelSize); }
  Dims getKernelSizeNd() const noexcept { return mImpl->getKernelSizeNd(); }

  // 1 by default.
  void setStrideNd(const Dims& stride) noexcept { mImpl->setStrideNd(stride); }
  Dims getStrideNd() const noexcept { return mImpl->getStrideNd(); }

  // Sets start and end alike. The getter's nbDims is -1 when they differ.
  void setPaddingNd(const Dims& padding) noexcept { mImpl->setPaddingNd(padding); }
  Dims getPaddingNd() const noexcept { return mImpl->getPaddingNd(); }

  // 1 by default.
  void setDilationNd(const Dims& dilation) noexcept { mImpl->setDilationNd(dilation); }
  Dims getDilationNd() const noexcept { return mImpl->getDilationNd(); }

  using ILayer::setInput;

 protected:
  virtual ~IDeconvolutionLayer() noexcept = 0;
  apiv::VDeconvolutionLayer* mImpl;
};
inline IDeconvolutionLayer::~IDeconvolutionLayer() noexcept = default;

// Maximum or average over windows of 2 or 3 spatial dimensions.
class IPoolingLayer : public ILayer {
 public:
  void setPoolingType(PoolingType type) noexcept { mImpl->setPoolingType(type); }
  PoolingType getPoolingType() const noexcept { return mImpl->getPoolingType(); }

  // For kMAX_AVERAGE_BLEND: (1 - f) * max + f * average; 0 by default.
  void setBlendFactor(float blendFactor) noexcept { mImpl->setBlendFactor(blendFactor); }
  float getBlendFactor() const noexcept { return mImpl->getBlendFactor(); }

  // Whether padding is left out of the average's denominator; true by default.
  void setAverageCountExcludesPadding(bool exclusive) noexcept { mImpl->setAverageCountExcludesPadding(exclusive); }
  bool getAverageCountExcludesPadding() const noexcept { return mImpl->getAverageCountExcludesPadding(); }

  // At the start and the end of each spatial dimension; 0 by default.
  void setPrePadding(const Dims& padding) noexcept { mImpl->setPrePadding(padding); }
  Dims getPrePadding() const noexcept { return mImpl->getPrePadding(); }
  void setPostPadding(const Dims& padding) noexcept { mImpl->setPostPadding(padding); }
  Dims getPostPadding() const noexcept { return mImpl->getPostPadding(); }

  // kEXPLICIT_ROUND_DOWN by default.
  void setPaddingMode(PaddingMode paddingMode) noexcept { mImpl->setPaddingMode(paddingMode); }
  PaddingMode getPaddingMode() const noexcept { return mImpl->getPaddingMode(); }

  void setWindowSizeNd(const Dims& windowSize) noexcept { mImpl->setWindowSizeNd(windowSize); }
  Dims getWindowSizeNd() const noexcept { return mImpl->getWindowSizeNd(); }

  // 1 by default.
  void setStrideNd(const Dims& stride) noexcept { mImpl->setStrideNd(stride); }
  Dims getStrideNd() const noexcept { return mImpl->getStrideNd(); }

  // Sets start and end alike. The getter's nbDims is -1 when they differ.
  void setPaddingNd(const Dims& padding) noexcept { mImpl->setPaddingNd(padding); }
  Dims getPaddingNd() const noexcept { return mImpl->getPaddingNd(); }

 protected:
  virtual ~IPoolingLayer() noexcept = 0;
  apiv::VPoolingLayer* mImpl;
};
inline IPoolingLayer::~IPoolingLayer() noexcept = default;

// A function of each element.
class IActivationLayer : public ILayer {
 public:
  void setActivationType(ActivationType type) noexcept { mImpl->setActivationType(type); }
  ActivationType getActivationType() const noexcept { return mImpl->getActivationType(); }

  // Parameters; which ones are used depends on the type.
  void setAlpha(float alpha) noexcept { mImpl->setAlpha(alpha); }
  void setBeta(float beta) noexcept { mImpl->setBeta(beta); }
  float getAlpha() const noexcept { return mImpl->getAlpha(); }
  float getBeta() const noexcept { return mImpl->getBeta(); }

 protected:
  virtual ~IActivationLayer() noexcept = 0;
  apiv::VActivationLayer* mImpl;
};
inline IActivationLayer::~IActivationLayer() noexcept = default;

// x where x >= 0, else x * slope; slope (input 1) is repeated to x's shape.
class IParametricReLULayer : public ILayer {
 protected:
  virtual ~IParametricReLULayer() noexcept = 0;
  apiv::VParametricReLULayer* mImpl;
};
inline IParametricReLULayer::~IParametricReLULayer() noexcept = default;

// A function of each element.
class IUnaryLayer : public ILayer {
 public:
  void setOperation(UnaryOperation op) noexcept { mImpl->setOperation(op); }
  UnaryOperation getOperation() const noexcept { return mImpl->getOperation(); }

 protected:
  virtual ~IUnaryLayer() noexcept = 0;
  apiv::VUnaryLayer* mImpl;
};
inline IUnaryLayer::~IUnaryLayer() noexcept = default;

// A function of two tensors of equal rank and type; sizes of 1 are repeated.
class IElementWiseLayer : public ILayer {
 public:
  void setOperation(ElementWiseOperation op) noexcept { mImpl->setOperation(op); }
  ElementWiseOperation getOperation() const noexcept { return mImpl->getOperation(); }

 protected:
  virtual ~IElementWiseLayer() noexcept = 0;
  apiv::VElementWiseLayer* mImpl;
};
inline IElementWiseLayer::~IElementWiseLayer() noexcept = default;

// (x * scale + shift) ^ power. Empty weights stand for 1, 0 and 1.
class IScaleLayer : public ILayer {
 public:
  // One value for all, per channel, or per element.
  void setMode(ScaleMode mode) noexcept { mImpl->setMode(mode); }
  ScaleMode getMode() const noexcept { return mImpl->getMode(); }

  void setShift(Weights shift) noexcept { mImpl->setShift(shift); }
  Weights getShift() const noexcept { return mImpl->getShift(); }

  void setScale(Weights scale) noexcept { mImpl->setScale(scale); }
  Weights getScale() const noexcept { return mImpl->getScale(); }

  void setPower(Weights power) noexcept { mImpl->setPower(power); }
  Weights getPower() const noexcept { return mImpl->getPower(); }

  // 1 by default.
  int32_t getChannelAxis() const noexcept { return mImpl->getChannelAxis(); }
  void setChannelAxis(int32_t channelAxis) noexcept { mImpl->setChannelAxis(channelAxis); }

 protected:
  virtual ~IScaleLayer() noexcept = 0;
  apiv::VScaleLayer* mImpl;
};
inline IScaleLayer::~IScaleLayer() noexcept = default;

// Local response normalization across channels: x / (k + alpha * mean of squares over the window) ^ beta.
class ILRNLayer : public ILayer {
 public:
  // Odd, 1 to 15.
  void setWindowSize(int64_t windowSize) noexcept { mImpl->setWindowSize(windowSize); }
  int64_t getWindowSize() const noexcept { return mImpl->getWindowSize(); }

  void setAlpha(float alpha) noexcept { mImpl->setAlpha(alpha); }
  float getAlpha() const noexcept { return mImpl->getAlpha(); }

  void setBeta(float beta) noexcept { mImpl->setBeta(beta); }
  float getBeta() const noexcept { return mImpl->getBeta(); }

  void setK(float k) noexcept { mImpl->setK(k); }
  float getK() const noexcept { return mImpl->getK(); }

 protected:
  virtual ~ILRNLayer() noexcept = 0;
  apiv::VLRNLayer* mImpl;
};
inline ILRNLayer::~ILRNLayer() noexcept = default;

// Soft-max along one dimension.
class ISoftMaxLayer : public ILayer {
 public:
  // Exactly one bit: bit i means dimension i. By default max(0, rank - 3).
  void setAxes(uint32_t axes) noexcept { mImpl->setAxes(axes); }
  uint32_t getAxes() const noexcept { return mImpl->getAxes(); }

 protected:
  virtual ~ISoftMaxLayer() noexcept = 0;
  apiv::VSoftMaxLayer* mImpl;
};
inline ISoftMaxLayer::~ISoftMaxLayer() noexcept = default;

// Soft-max over the first bounds[z] entries of each row of a [Z, S] tensor; the rest is 0.
class IRaggedSoftMaxLayer : public ILayer {
 protected:
  virtual ~IRaggedSoftMaxLayer() noexcept = 0;
  apiv::VRaggedSoftMaxLayer* mImpl;
};
inline IRaggedSoftMaxLayer::~IRaggedSoftMaxLayer() noexcept = default;

// Reduces some dimensions to one value each.
class IReduceLayer : public ILayer {
 public:
  void setOperation(ReduceOperation op) noexcept { mImpl->setOperation(op); }
  ReduceOperation getOperation() const noexcept { return mImpl->getOperation(); }

  // Bit i means dimension i. At least one.
  void setReduceAxes(uint32_t reduceAxes) noexcept { mImpl->setReduceAxes(reduceAxes); }
  uint32_t getReduceAxes() const noexcept { return mImpl->getReduceAxes(); }

  // Whether reduced dimensions stay, with size 1.
  void setKeepDimensions(bool keepDimensions) noexcept { mImpl->setKeepDimensions(keepDimensions); }
  bool getKeepDimensions() const noexcept { return mImpl->getKeepDimensions(); }

 protected:
  virtual ~IReduceLayer() noexcept = 0;
  apiv::VReduceLayer* mImpl;
};
inline IReduceLayer::~IReduceLayer() noexcept = default;

// Running sums along the axis in input 1, a constant 0-D integer tensor.
class ICumulativeLayer : public ILayer {
 public:
  // False when unknown.
  bool setOperation(CumulativeOperation op) noexcept { return mImpl->setOperation(op); }
  CumulativeOperation getOperation() const noexcept { return mImpl->getOperation(); }

  // Whether element i is left out of result i.
  void setExclusive(bool exclusive) noexcept { mImpl->setExclusive(exclusive); }
  bool getExclusive() const noexcept { return mImpl->getExclusive(); }

  // From last to first.
  void setReverse(bool reverse) noexcept { mImpl->setReverse(reverse); }
  bool getReverse() const noexcept { return mImpl->getReverse(); }

 protected:
  virtual ~ICumulativeLayer() noexcept = 0;
  apiv::VCumulativeLayer* mImpl;
};
inline ICumulativeLayer::~ICumulativeLayer() noexcept = default;

// Product of two batches of matrices or vectors; leading dimensions are equal or 1.
class IMatrixMultiplyLayer : public ILayer {
 public:
  // How input `index` (0 or 1) is read.
  void setOperation(int32_t index, MatrixOperation op) noexcept { mImpl->setOperation(index, op); }
  MatrixOperation getOperation(int32_t index) const noexcept { return mImpl->getOperation(index); }

 protected:
  virtual ~IMatrixMultiplyLayer() noexcept = 0;
  apiv::VMatrixMultiplyLayer* mImpl;
};
inline IMatrixMultiplyLayer::~IMatrixMultiplyLayer() noexcept = default;

// Sum of products in Einstein's notation.
class IEinsumLayer : public ILayer {
 public:
  // Lower-case labels, "ij,jk->ik"; the output part and an ellipsis are optional. False when malformed. Copied.
  bool setEquation(const char* equation) noexcept { return mImpl->setEquation(equation); }
  const char* getEquation() const noexcept { return mImpl->getEquation(); }

 protected:
  virtual ~IEinsumLayer() noexcept = 0;
  apiv::VEinsumLayer* mImpl;
};
inline IEinsumLayer::~IEinsumLayer() noexcept = default;

// (x - mean) / sqrt(variance + epsilon) * scale + bias over some dimensions. Inputs 1 and 2: scale and bias.
class INormalizationLayer : public ILayer {
 public:
  // 1e-5 by default.
  void setEpsilon(float eps) noexcept { mImpl->setEpsilon(eps); }
  float getEpsilon() const noexcept { return mImpl->getEpsilon(); }

  // Bit i means dimension i.
  void setAxes(uint32_t axesMask) noexcept { mImpl->setAxes(axesMask); }
  uint32_t getAxes() const noexcept { return mImpl->getAxes(); }

  // Splits the channels; 1 by default. Other numbers need all dimensions behind the channels as axes.
  void setNbGroups(int64_t nbGroups) noexcept { mImpl->setNbGroups(nbGroups); }
  int64_t getNbGroups() const noexcept { return mImpl->getNbGroups(); }

  // Whether scale and bias follow the rules of addNormalizationV2().
  bool isV2() const noexcept { return mImpl->isV2(); }

#if NV_TENSORRT_MAJOR < 11
  // kFLOAT by default. addCast() replaces it.
  TRT_DEPRECATED void setComputePrecision(DataType type) noexcept { mImpl->setComputePrecision(type); }
  TRT_DEPRECATED DataType getComputePrecision() const noexcept { return mImpl->getComputePrecision(); }
#endif

 protected:
  virtual ~INormalizationLayer() noexcept = 0;
  apiv::VNormalizationLayer* mImpl;
};
inline INormalizationLayer::~INormalizationLayer() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_LAYERS_BASIC_H
