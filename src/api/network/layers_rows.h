// SPDX-License-Identifier: Apache-2.0
// Layers that contract, reduce or normalise.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

class SoftMaxLayer final : public LayerOf<nv::ISoftMaxLayer, nv::apiv::VSoftMaxLayer> {
 public:
  SoftMaxLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kSOFTMAX, "SoftMax", std::move(inputs)) {}

  void set_axes(uint32_t axes) { axes_ = axes; }

  void setAxes(uint32_t axes) noexcept override { set(axes_, std::optional(axes)); }
  uint32_t getAxes() const noexcept override { return axes_for(rank_of_input(0).value_or(0)); }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  uint32_t axes_for(int rank) const { return axes_.value_or(1u << std::max(0, rank - 3)); }

  std::optional<uint32_t> axes_;
};

class LRNLayer final : public LayerOf<nv::ILRNLayer, nv::apiv::VLRNLayer> {
 public:
  LRNLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, int64_t window, float alpha, float beta,
           float k)
      : LayerOf(network, nv::LayerType::kLRN, "LRN", std::move(inputs)),
        window_(window),
        alpha_(alpha),
        beta_(beta),
        k_(k) {}

  void setWindowSize(int64_t windowSize) noexcept override { set(window_, windowSize); }
  int64_t getWindowSize() const noexcept override { return window_; }
  void setAlpha(float alpha) noexcept override { set(alpha_, alpha); }
  float getAlpha() const noexcept override { return alpha_; }
  void setBeta(float beta) noexcept override { set(beta_, beta); }
  float getBeta() const noexcept override { return beta_; }
  void setK(float k) noexcept override { set(k_, k); }
  float getK() const noexcept override { return k_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  int64_t window_;
  float alpha_, beta_, k_;
};

class ReduceLayer final : public LayerOf<nv::IReduceLayer, nv::apiv::VReduceLayer> {
 public:
  ReduceLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::ReduceOperation operation, uint32_t axes,
              bool keep)
      : LayerOf(network, nv::LayerType::kREDUCE, "Reduce", std::move(inputs)),
        operation_(operation),
        axes_(axes),
        keep_(keep) {}

  void setOperation(nv::ReduceOperation op) noexcept override { set(operation_, op); }
  nv::ReduceOperation getOperation() const noexcept override { return operation_; }
  void setReduceAxes(uint32_t reduceAxes) noexcept override { set(axes_, reduceAxes); }
  uint32_t getReduceAxes() const noexcept override { return axes_; }
  void setKeepDimensions(bool keepDimensions) noexcept override { set(keep_, keepDimensions); }
  bool getKeepDimensions() const noexcept override { return keep_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::ReduceOperation operation_;
  uint32_t axes_;
  bool keep_;
};

class TopKLayer final : public LayerOf<nv::ITopKLayer, nv::apiv::VTopKLayer> {
 public:
  TopKLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::TopKOperation operation, int32_t k,
            uint32_t axes, nv::DataType indices)
      : LayerOf(network, nv::LayerType::kTOPK, "TopK", std::move(inputs)),
        operation_(operation),
        k_(k),
        axes_(axes),
        indices_(indices) {}

  void setOperation(nv::TopKOperation op) noexcept override { set(operation_, op); }
  nv::TopKOperation getOperation() const noexcept override { return operation_; }
  void setK(int32_t k) noexcept override { set(k_, k, 1); }
  int32_t getK() const noexcept override { return has(1) ? -1 : k_; }
  void setReduceAxes(uint32_t reduceAxes) noexcept override { set(axes_, reduceAxes); }
  uint32_t getReduceAxes() const noexcept override { return axes_; }
  bool setIndicesType(nv::DataType type) noexcept override;
  nv::DataType getIndicesType() const noexcept override { return indices_; }

 private:
  int32_t max_inputs() const override { return 2; }
  size_t num_outputs() const override { return 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::TopKOperation operation_;
  int32_t k_;
  uint32_t axes_;
  nv::DataType indices_;
};

class CumulativeLayer final : public LayerOf<nv::ICumulativeLayer, nv::apiv::VCumulativeLayer> {
 public:
  CumulativeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::CumulativeOperation operation,
                  bool exclusive, bool reverse)
      : LayerOf(network, nv::LayerType::kCUMULATIVE, "Cumulative", std::move(inputs)),
        operation_(operation),
        exclusive_(exclusive),
        reverse_(reverse) {}

  bool setOperation(nv::CumulativeOperation op) noexcept override;
  nv::CumulativeOperation getOperation() const noexcept override { return operation_; }
  void setExclusive(bool exclusive) noexcept override { set(exclusive_, exclusive); }
  bool getExclusive() const noexcept override { return exclusive_; }
  void setReverse(bool reverse) noexcept override { set(reverse_, reverse); }
  bool getReverse() const noexcept override { return reverse_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::CumulativeOperation operation_;
  bool exclusive_, reverse_;
};

class MatrixMultiplyLayer final : public LayerOf<nv::IMatrixMultiplyLayer, nv::apiv::VMatrixMultiplyLayer> {
 public:
  MatrixMultiplyLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::MatrixOperation op0,
                      nv::MatrixOperation op1)
      : LayerOf(network, nv::LayerType::kMATRIX_MULTIPLY, "Matrix Multiply", std::move(inputs)),
        operations_{op0, op1} {}

  // As models have it: operands of fewer dimensions are matrices for all of the other's.
  void set_broadcasts() { broadcasts_ = true; }

  void setOperation(int32_t index, nv::MatrixOperation op) noexcept override;
  nv::MatrixOperation getOperation(int32_t index) const noexcept override {
    return index == 0 || index == 1 ? operations_[index] : nv::MatrixOperation::kNONE;
  }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::MatrixOperation operations_[2];
  bool broadcasts_ = false;
};

class EinsumLayer final : public LayerOf<nv::IEinsumLayer, nv::apiv::VEinsumLayer> {
 public:
  EinsumLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, std::string equation)
      : LayerOf(network, nv::LayerType::kEINSUM, "Einsum", std::move(inputs)), equation_(std::move(equation)) {}

  bool setEquation(const char* equation) noexcept override;
  const char* getEquation() const noexcept override { return equation_.c_str(); }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  std::string equation_;
};

class NormalizationLayer final : public LayerOf<nv::INormalizationLayer, nv::apiv::VNormalizationLayer> {
 public:
  NormalizationLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, uint32_t axes, bool v2)
      : LayerOf(network, nv::LayerType::kNORMALIZATION, "Normalization", std::move(inputs)), axes_(axes), v2_(v2) {}

  void set_parameters(double epsilon, int64_t groups, bool by_channel) {
    epsilon_ = static_cast<float>(epsilon), groups_ = groups, by_channel_ = by_channel;
  }

  void setEpsilon(float eps) noexcept override { set(epsilon_, eps); }
  float getEpsilon() const noexcept override { return epsilon_; }
  void setAxes(uint32_t axesMask) noexcept override { set(axes_, axesMask); }
  uint32_t getAxes() const noexcept override { return axes_; }
  void setNbGroups(int64_t nbGroups) noexcept override { set(groups_, nbGroups); }
  int64_t getNbGroups() const noexcept override { return groups_; }
  bool isV2() const noexcept override { return v2_; }
#if NV_TENSORRT_MAJOR < 11
  void setComputePrecision(nv::DataType type) noexcept override;
  nv::DataType getComputePrecision() const noexcept override { return compute_precision_; }
#endif

 private:
#if NV_TENSORRT_MAJOR < 11
  nv::DataType compute_precision_ = nv::DataType::kFLOAT;
#endif
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<std::vector<ir::Value*>> lower_groups(LayerLowering& lowering);

  uint32_t axes_;
  bool v2_;
  float epsilon_ = 1e-5f;
  int64_t groups_ = 1;
  bool by_channel_ = false;  // of imported layers: scale and bias are vectors, of one value for each channel
};

}  // namespace lathe::api
