// SPDX-License-Identifier: Apache-2.0
// Layers that move data, convert types, or make tensors. Include NvInfer.h instead.
#ifndef NVINFER_LAYERS_SHAPE_H
#define NVINFER_LAYERS_SHAPE_H

#include "nvinfer/tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// order[i] is the input dimension that becomes dimension i.
struct Permutation {
  int32_t order[Dims::MAX_DIMS];
};

// Transpose, reshape, transpose, in this order; each is optional. Optional input 1 gives the reshape dimensions.
class IShuffleLayer : public ILayer {
 public:
  // order[i] is the input dimension that becomes dimension i. Identity by default.
  void setFirstTranspose(Permutation permutation) noexcept { mImpl->setFirstTranspose(permutation); }
  Permutation getFirstTranspose() const noexcept { return mImpl->getFirstTranspose(); }

  // 0 copies the size at the same place, one -1 is inferred. Drops input 1; the getter's nbDims is -1 when that gives
  // them.
  void setReshapeDimensions(const Dims& dimensions) noexcept { mImpl->setReshapeDimensions(dimensions); }
  Dims getReshapeDimensions() const noexcept { return mImpl->getReshapeDimensions(); }

  void setSecondTranspose(Permutation permutation) noexcept { mImpl->setSecondTranspose(permutation); }
  Permutation getSecondTranspose() const noexcept { return mImpl->getSecondTranspose(); }

  // Whether 0 copies the input's size (default) or means an empty dimension.
  void setZeroIsPlaceholder(bool zeroIsPlaceholder) noexcept { mImpl->setZeroIsPlaceholder(zeroIsPlaceholder); }
  bool getZeroIsPlaceholder() const noexcept { return mImpl->getZeroIsPlaceholder(); }

  using ILayer::setInput;

 protected:
  virtual ~IShuffleLayer() noexcept = 0;
  apiv::VShuffleLayer* mImpl;
};
inline IShuffleLayer::~IShuffleLayer() noexcept = default;

// out[i] = in[start + i * stride]. Optional inputs: 1 start, 2 size, 3 stride, 4 fill value, 5 axes; they replace the
// static values, whose getters then return nbDims -1; a setter drops its input.
class ISliceLayer : public ILayer {
 public:
  void setStart(const Dims& start) noexcept { mImpl->setStart(start); }
  Dims getStart() const noexcept { return mImpl->getStart(); }

  void setSize(const Dims& size) noexcept { mImpl->setSize(size); }
  Dims getSize() const noexcept { return mImpl->getSize(); }

  // May be 0 or negative.
  void setStride(const Dims& stride) noexcept { mImpl->setStride(stride); }
  Dims getStride() const noexcept { return mImpl->getStride(); }

  // What happens outside the input; kSTRICT_BOUNDS by default.
  void setMode(SampleMode mode) noexcept { mImpl->setMode(mode); }
  SampleMode getMode() const noexcept { return mImpl->getMode(); }

  // The dimensions that start, size and stride are for; all by default.
  void setAxes(const Dims& axes) noexcept { mImpl->setAxes(axes); }
  Dims getAxes() const noexcept { return mImpl->getAxes(); }

  using ILayer::setInput;

 protected:
  virtual ~ISliceLayer() noexcept = 0;
  apiv::VSliceLayer* mImpl;
};
inline ISliceLayer::~ISliceLayer() noexcept = default;

// Joins inputs along a dimension; all others are equal.
class IConcatenationLayer : public ILayer {
 public:
  // By default max(0, rank - 3).
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }

 protected:
  virtual ~IConcatenationLayer() noexcept = 0;
  apiv::VConcatenationLayer* mImpl;
};
inline IConcatenationLayer::~IConcatenationLayer() noexcept = default;

// Removes the dimensions of size 1 listed in input 1, a constant 1-D integer tensor.
class ISqueezeLayer : public ILayer {
 public:
  using ILayer::setInput;

 protected:
  virtual ~ISqueezeLayer() noexcept = 0;
  apiv::VSqueezeLayer* mImpl;
};
inline ISqueezeLayer::~ISqueezeLayer() noexcept = default;

// Inserts dimensions of size 1 at the places listed in input 1, a constant 1-D integer tensor.
class IUnsqueezeLayer : public ILayer {
 public:
  using ILayer::setInput;

 protected:
  virtual ~IUnsqueezeLayer() noexcept = 0;
  apiv::VUnsqueezeLayer* mImpl;
};
inline IUnsqueezeLayer::~IUnsqueezeLayer() noexcept = default;

// Adds zeros around the last two dimensions; negative amounts crop.
class IPaddingLayer : public ILayer {
 public:
  void setPrePaddingNd(const Dims& padding) noexcept { mImpl->setPrePaddingNd(padding); }
  Dims getPrePaddingNd() const noexcept { return mImpl->getPrePaddingNd(); }

  void setPostPaddingNd(const Dims& padding) noexcept { mImpl->setPostPaddingNd(padding); }
  Dims getPostPaddingNd() const noexcept { return mImpl->getPostPaddingNd(); }

 protected:
  virtual ~IPaddingLayer() noexcept = 0;
  apiv::VPaddingLayer* mImpl;
};
inline IPaddingLayer::~IPaddingLayer() noexcept = default;

// Reverses the first lengths[b] (input 1) entries of each sequence.
class IReverseSequenceLayer : public ILayer {
 public:
  // 1 by default.
  void setBatchAxis(int32_t batchAxis) noexcept { mImpl->setBatchAxis(batchAxis); }
  int32_t getBatchAxis() const noexcept { return mImpl->getBatchAxis(); }

  // 0 by default.
  void setSequenceAxis(int32_t sequenceAxis) noexcept { mImpl->setSequenceAxis(sequenceAxis); }
  int32_t getSequenceAxis() const noexcept { return mImpl->getSequenceAxis(); }

 protected:
  virtual ~IReverseSequenceLayer() noexcept = 0;
  apiv::VReverseSequenceLayer* mImpl;
};
inline IReverseSequenceLayer::~IReverseSequenceLayer() noexcept = default;

// The sizes of its input, as a 1-D INT64 tensor.
class IShapeLayer : public ILayer {
 protected:
  virtual ~IShapeLayer() noexcept = 0;
  apiv::VShapeLayer* mImpl;
};
inline IShapeLayer::~IShapeLayer() noexcept = default;

// A value known while building.
class IConstantLayer : public ILayer {
 public:
  // Not owned; count must be the product of the dimensions.
  void setWeights(Weights weights) noexcept { mImpl->setWeights(weights); }
  Weights getWeights() const noexcept { return mImpl->getWeights(); }

  void setDimensions(const Dims& dimensions) noexcept { mImpl->setDimensions(dimensions); }
  Dims getDimensions() const noexcept { return mImpl->getDimensions(); }

 protected:
  virtual ~IConstantLayer() noexcept = 0;
  apiv::VConstantLayer* mImpl;
};
inline IConstantLayer::~IConstantLayer() noexcept = default;

// Makes a tensor from a rule. Optional inputs: 0 dimensions, 1 alpha, 2 beta; a setter drops its input.
class IFillLayer : public ILayer {
 public:
  // The getter's nbDims is -1 when input 0 gives them.
  void setDimensions(const Dims& dimensions) noexcept { mImpl->setDimensions(dimensions); }
  Dims getDimensions() const noexcept { return mImpl->getDimensions(); }

  void setOperation(FillOperation op) noexcept { mImpl->setOperation(op); }
  FillOperation getOperation() const noexcept { return mImpl->getOperation(); }

  // kLINSPACE: start and step; kRANDOM_UNIFORM: least and largest; kRANDOM_NORMAL: mean and deviation.
  void setAlpha(double alpha) noexcept { mImpl->setAlpha(alpha); }
  double getAlpha() const noexcept { return mImpl->getAlpha(); }

  void setBeta(double beta) noexcept { mImpl->setBeta(beta); }
  double getBeta() const noexcept { return mImpl->getBeta(); }

  // As above, for integer outputs. Both numbers are set in one of these ways.
  void setAlphaInt64(int64_t alpha) noexcept { mImpl->setAlphaInt64(alpha); }
  int64_t getAlphaInt64() const noexcept { return mImpl->getAlphaInt64(); }

  void setBetaInt64(int64_t beta) noexcept { mImpl->setBetaInt64(beta); }
  int64_t getBetaInt64() const noexcept { return mImpl->getBetaInt64(); }

  bool isAlphaBetaInt64() const noexcept { return mImpl->isAlphaBetaInt64(); }

  void setToType(DataType toType) noexcept { mImpl->setToType(toType); }
  DataType getToType() const noexcept { return mImpl->getToType(); }

  using ILayer::setInput;

 protected:
  virtual ~IFillLayer() noexcept = 0;
  apiv::VFillLayer* mImpl;
};
inline IFillLayer::~IFillLayer() noexcept = default;

// Copies its input.
class IIdentityLayer : public ILayer {
 protected:
  virtual ~IIdentityLayer() noexcept = 0;
  apiv::VIdentityLayer* mImpl;
};
inline IIdentityLayer::~IIdentityLayer() noexcept = default;

// Converts element types.
class ICastLayer : public ILayer {
 public:
  void setToType(DataType toType) noexcept { mImpl->setToType(toType); }
  DataType getToType() const noexcept { return mImpl->getToType(); }

 protected:
  virtual ~ICastLayer() noexcept = 0;
  apiv::VCastLayer* mImpl;
};
inline ICastLayer::~ICastLayer() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_LAYERS_SHAPE_H
