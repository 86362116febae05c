// SPDX-License-Identifier: Apache-2.0
// Layers that rearrange elements or make tensors.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

class ShuffleLayer final : public LayerOf<nv::IShuffleLayer, nv::apiv::VShuffleLayer> {
 public:
  ShuffleLayer(NetworkDefinition& network, std::vector<TensorView*> inputs);

  void set_transpose(const nv::Permutation& permutation) { first_ = permutation; }
  void set_zero_copies(bool copies) { zero_copies_ = copies; }
  void set_reshape(const nv::Dims& dims, bool zero_copies) { reshape_ = dims, zero_copies_ = zero_copies; }

  void setFirstTranspose(const nv::Permutation& permutation) noexcept override { set(first_, permutation); }
  const nv::Permutation& getFirstTranspose() const noexcept override { return first_; }
  void setReshapeDimensions(const nv::Dims& dimensions) noexcept override { set(reshape_, dimensions, 1); }
  nv::Dims getReshapeDimensions() const noexcept override { return has(1) ? invalid_dims() : reshape_; }
  void setSecondTranspose(const nv::Permutation& permutation) noexcept override { set(second_, permutation); }
  const nv::Permutation& getSecondTranspose() const noexcept override { return second_; }
  void setZeroIsPlaceholder(bool zeroIsPlaceholder) noexcept override { set(zero_copies_, zeroIsPlaceholder); }
  bool getZeroIsPlaceholder() const noexcept override { return zero_copies_; }

 private:
  int32_t max_inputs() const override { return 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  static Result<ir::Value*> transpose(LayerLowering& lowering, ir::Value* x, const nv::Permutation& permutation);

  nv::Permutation first_, second_;
  nv::Dims reshape_ = invalid_dims();  // invalid: no reshape
  bool zero_copies_ = true;
};

class ConcatenationLayer final : public LayerOf<nv::IConcatenationLayer, nv::apiv::VConcatenationLayer> {
 public:
  ConcatenationLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kCONCATENATION, "Concatenation", std::move(inputs)) {}

  void set_axis(int32_t axis) { axis_ = axis; }

  void setAxis(int32_t axis) noexcept override { set(axis_, std::optional(axis)); }
  int32_t getAxis() const noexcept override { return axis_for(rank_of_input(0).value_or(0)); }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  int32_t axis_for(int rank) const { return axis_.value_or(std::max(0, rank - 3)); }

  std::optional<int32_t> axis_;
};

// Squeeze and unsqueeze: x and the axes.
template <class Interface, class Table, class Attrs, nv::LayerType type>
class AxesLayer final : public LayerOf<Interface, Table> {
 public:
  AxesLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf<Interface, Table>(network, type, type == nv::LayerType::kSQUEEZE ? "Squeeze" : "Unsqueeze",
                                  std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override {
    return std::vector{lowering.add(Attrs(), {this->in(0), lowering.cast(this->in(1), DType::i64)})};
  }
};

using SqueezeLayer = AxesLayer<nv::ISqueezeLayer, nv::apiv::VSqueezeLayer, SqueezeAttrs, nv::LayerType::kSQUEEZE>;
using UnsqueezeLayer =
    AxesLayer<nv::IUnsqueezeLayer, nv::apiv::VUnsqueezeLayer, UnsqueezeAttrs, nv::LayerType::kUNSQUEEZE>;

class PaddingLayer final : public LayerOf<nv::IPaddingLayer, nv::apiv::VPaddingLayer> {
 public:
  PaddingLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, const nv::Dims& pre, const nv::Dims& post)
      : LayerOf(network, nv::LayerType::kPADDING, "Padding", std::move(inputs)), pre_(pre), post_(post) {}

  void setPrePaddingNd(const nv::Dims& padding) noexcept override { set(pre_, padding); }
  nv::Dims getPrePaddingNd() const noexcept override { return pre_; }
  void setPostPaddingNd(const nv::Dims& padding) noexcept override { set(post_, padding); }
  nv::Dims getPostPaddingNd() const noexcept override { return post_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::Dims pre_, post_;
};

class ShapeLayer final : public LayerOf<nv::IShapeLayer, nv::apiv::VShapeLayer> {
 public:
  ShapeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kSHAPE, "Shape", std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class ConstantLayer final : public LayerOf<nv::IConstantLayer, nv::apiv::VConstantLayer> {
 public:
  // `owner` keeps the memory of an imported layer's weights.
  ConstantLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, const nv::Dims& dims, nv::Weights weights,
                std::shared_ptr<const void> owner = nullptr)
      : LayerOf(network, nv::LayerType::kCONSTANT, "Constant", std::move(inputs)),
        dims_(dims),
        weights_(weights),
        owner_(std::move(owner)) {}

  void setWeights(nv::Weights weights) noexcept override { set(weights_, weights); }
  nv::Weights getWeights() const noexcept override { return weights_; }
  void setDimensions(const nv::Dims& dimensions) noexcept override { set(dims_, dimensions); }
  nv::Dims getDimensions() const noexcept override { return dims_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::Dims dims_;
  nv::Weights weights_;
  std::shared_ptr<const void> owner_;
};

class FillLayer final : public LayerOf<nv::IFillLayer, nv::apiv::VFillLayer> {
 public:
  FillLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, const nv::Dims& dims,
            nv::FillOperation operation, nv::DataType type);

  void set_one_number(double real, int64_t integer, bool is_integer) {
    alpha_ = {real, integer, is_integer}, beta_ = {0, 0, is_integer}, integers_ = is_integer;
  }

  void setDimensions(const nv::Dims& dimensions) noexcept override { set(dims_, dimensions, 0); }
  nv::Dims getDimensions() const noexcept override { return has(0) ? invalid_dims() : dims_; }
  void setOperation(nv::FillOperation op) noexcept override { set(operation_, op); }
  nv::FillOperation getOperation() const noexcept override { return operation_; }
  void setAlpha(double alpha) noexcept override {
    change(
        alpha, [&] { alpha_.real = alpha, alpha_.is_integer = integers_ = false; }, 1);
  }
  double getAlpha() const noexcept override { return has(1) ? -1.0 : alpha_.real; }
  void setBeta(double beta) noexcept override {
    change(
        beta, [&] { beta_.real = beta, beta_.is_integer = integers_ = false; }, 2);
  }
  double getBeta() const noexcept override { return has(2) ? -1.0 : beta_.real; }
  void setAlphaInt64(int64_t alpha) noexcept override {
    change(
        alpha, [&] { alpha_.integer = alpha, alpha_.is_integer = integers_ = true; }, 1);
  }
  int64_t getAlphaInt64() const noexcept override { return has(1) ? -1 : alpha_.integer; }
  void setBetaInt64(int64_t beta) noexcept override {
    change(
        beta, [&] { beta_.integer = beta, beta_.is_integer = integers_ = true; }, 2);
  }
  int64_t getBetaInt64() const noexcept override { return has(2) ? -1 : beta_.integer; }
  bool isAlphaBetaInt64() const noexcept override { return integers_; }
  nv::DataType getToType() const noexcept override { return type_; }
  void setToType(nv::DataType toType) noexcept override { set(type_, toType); }

 private:
  int32_t max_inputs() const override { return 3; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  // As one pair of setters gives it, or the other; neither: the default, which is the same for both.
  struct Number {
    double real;
    int64_t integer;
    std::optional<bool> is_integer = {};

    bool is_zero() const { return is_integer.value_or(false) ? integer == 0 : real == 0; }
  };
  static Result<ir::Value*> constant(LayerLowering& lowering, DType dtype, const Number& number);
  Result<ir::Value*> number(LayerLowering& lowering, size_t input, DType dtype, const Number& number);
  Result<std::vector<ir::Value*>> random(LayerLowering& lowering, DType dtype, ir::Value* dims);

  int64_t stream_;  // of random numbers: each layer has its own
  nv::Dims dims_;
  nv::FillOperation operation_;
  nv::DataType type_;
  Number alpha_{0, 0}, beta_{1, 1};
  bool integers_ = false;
};

}  // namespace lathe::api
