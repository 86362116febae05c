// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

class SliceLayer final : public LayerOf<nv::ISliceLayer, nv::apiv::VSliceLayer> {
 public:
  SliceLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, const nv::Dims& start, const nv::Dims& size,
             const nv::Dims& stride)
      : LayerOf(network, nv::LayerType::kSLICE, "Slice", std::move(inputs)),
        start_(start),
        size_(size),
        stride_(stride) {}

  void set_sampling(nv::SampleMode mode, const nv::Dims& axes) { mode_ = mode, axes_ = axes; }

  void setStart(const nv::Dims& start) noexcept override { set(start_, start, 1); }
  nv::Dims getStart() const noexcept override { return has(1) ? invalid_dims() : start_; }
  void setSize(const nv::Dims& size) noexcept override { set(size_, size, 2); }
  nv::Dims getSize() const noexcept override { return has(2) ? invalid_dims() : size_; }
  void setStride(const nv::Dims& stride) noexcept override { set(stride_, stride, 3); }
  nv::Dims getStride() const noexcept override { return has(3) ? invalid_dims() : stride_; }
  void setMode(nv::SampleMode mode) noexcept override { set(mode_, mode); }
  nv::SampleMode getMode() const noexcept override { return mode_; }
  void setAxes(const nv::Dims& axes) noexcept override { set(axes_, axes, 5); }
  nv::Dims getAxes() const noexcept override { return has(5) ? invalid_dims() : axes_; }

 private:
  int32_t max_inputs() const override { return 6; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  // Where the slice lies, along each of its axes.
  struct Box {
    Ints axes;
    ir::Value *starts, *sizes, *strides;  // i64[axes]
  };
  Result<Ints> axes_of(LayerLowering& lowering) const;
  Result<Box> box_of(LayerLowering& lowering) const;
  Result<ir::Value*> operand(LayerLowering& lowering, size_t input, const nv::Dims& dims, size_t count) const;
  Result<> check_inside(const Box& box) const;
  Result<ir::Value*> slice_inside(LayerLowering& lowering, const Box& box) const;
  ir::Value* pad(LayerLowering& lowering, const Box& box, const Ints& pads) const;
  ir::Value* pick(LayerLowering& lowering, const Box& box) const;
  ir::Value* source_of(LayerLowering& lowering, ir::Value* position, ir::Value* extent) const;
  ir::Value* fill_value(LayerLowering& lowering) const;

  nv::Dims start_, size_, stride_;
  nv::Dims axes_ = invalid_dims();  // invalid: all dimensions
  nv::SampleMode mode_ = nv::SampleMode::kSTRICT_BOUNDS;
};

}  // namespace lathe::api
