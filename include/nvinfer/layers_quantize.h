// SPDX-License-Identifier: Apache-2.0
// Quantization layers. Include NvInfer.h instead.
#ifndef NVINFER_LAYERS_QUANTIZE_H
#define NVINFER_LAYERS_QUANTIZE_H

#include "nvinfer/tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// round_half_even(x / scale), clamped to the output type's range. Input 1: scale; optional input 2: zero point, all 0.
class IQuantizeLayer : public ILayer {
 public:
  // For a 1-D scale: the dimension it runs along. -1 at first.
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }

  // Elements per scale, for a scale of the same rank as x. False when invalid.
  bool setBlockShape(const Dims& blockShape) noexcept { return mImpl->setBlockShape(blockShape); }
  Dims getBlockShape() const noexcept { return mImpl->getBlockShape(); }

  // kINT8, kFP8, kINT4 or kFP4.
  void setToType(DataType toType) noexcept { mImpl->setToType(toType); }
  DataType getToType() const noexcept { return mImpl->getToType(); }

 protected:
  virtual ~IQuantizeLayer() noexcept = 0;
  apiv::VQuantizeLayer* mImpl;
};
inline IQuantizeLayer::~IQuantizeLayer() noexcept = default;

// x * scale. Input 1: scale; optional input 2: zero point, all 0.
class IDequantizeLayer : public ILayer {
 public:
  // For a 1-D scale: the dimension it runs along. -1 at first.
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }

  // Elements per scale, for a scale of the same rank as x. False when invalid.
  bool setBlockShape(const Dims& blockShape) noexcept { return mImpl->setBlockShape(blockShape); }
  Dims getBlockShape() const noexcept { return mImpl->getBlockShape(); }

  // kFLOAT, kHALF or kBF16.
  void setToType(DataType toType) noexcept { mImpl->setToType(toType); }
  DataType getToType() const noexcept { return mImpl->getToType(); }

 protected:
  virtual ~IDequantizeLayer() noexcept = 0;
  apiv::VDequantizeLayer* mImpl;
};
inline IDequantizeLayer::~IDequantizeLayer() noexcept = default;

// Quantizes blocks with scales found at run time: output 0 data, output 1 scales. Optional input 1: a second-level
// scale.
class IDynamicQuantizeLayer : public ILayer {
 public:
  void setToType(DataType toType) noexcept { mImpl->setToType(toType); }
  DataType getToType() const noexcept { return mImpl->getToType(); }

  void setScaleType(DataType scaleType) noexcept { mImpl->setScaleType(scaleType); }
  DataType getScaleType() const noexcept { return mImpl->getScaleType(); }

  // Deprecated: setBlockShape().
  TRT_DEPRECATED void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }
  TRT_DEPRECATED int32_t getAxis() const noexcept { return mImpl->getAxis(); }
  TRT_DEPRECATED void setBlockSize(int32_t size) noexcept { mImpl->setBlockSize(size); }
  TRT_DEPRECATED int32_t getBlockSize() const noexcept { return mImpl->getBlockSize(); }

  void setBlockShape(const Dims& blockShape) noexcept { mImpl->setBlockShape(blockShape); }
  Dims getBlockShape() const noexcept { return mImpl->getBlockShape(); }

  using ILayer::setInput;

 protected:
  virtual ~IDynamicQuantizeLayer() noexcept = 0;
  apiv::VDynamicQuantizeLayer* mImpl;
};
inline IDynamicQuantizeLayer::~IDynamicQuantizeLayer() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_LAYERS_QUANTIZE_H
