// SPDX-License-Identifier: Apache-2.0
// Conditionals and the layers at their edge. In the graph their outputs are lazy choices (ops/ops.def).
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

template <class Interface, class Table>
class ConditionalBoundary : public LayerOf<Interface, Table>, public nv::apiv::VConditionalBoundaryLayer {
 public:
  nv::IIfConditional* getConditional() const noexcept override { return conditional_; }

 protected:
  ConditionalBoundary(NetworkDefinition& network, nv::LayerType type, const char* kind, std::vector<TensorView*> inputs,
                      nv::IIfConditional* conditional)
      : LayerOf<Interface, Table>(network, type, kind, std::move(inputs)), conditional_(conditional) {
    this->mBoundary = this;
  }

 private:
  nv::IIfConditional* conditional_;
};

class ConditionLayer final : public ConditionalBoundary<nv::IConditionLayer, nv::apiv::VConditionLayer> {
 public:
  ConditionLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::IIfConditional* conditional)
      : ConditionalBoundary(network, nv::LayerType::kCONDITION, "Condition", std::move(inputs), conditional) {}

  int32_t getNbOutputs() const noexcept override { return 0; }  // its output is for the conditional's alone

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class ConditionalInputLayer final
    : public ConditionalBoundary<nv::IIfConditionalInputLayer, nv::apiv::VConditionalInputLayer> {
 public:
  ConditionalInputLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::IIfConditional* conditional)
      : ConditionalBoundary(network, nv::LayerType::kCONDITIONAL_INPUT, "ConditionInput", std::move(inputs),
                            conditional) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class ConditionalOutputLayer final
    : public ConditionalBoundary<nv::IIfConditionalOutputLayer, nv::apiv::VConditionalOutputLayer> {
 public:
  ConditionalOutputLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::IIfConditional* conditional)
      : ConditionalBoundary(network, nv::LayerType::kCONDITIONAL_OUTPUT, "ConditionOutput", std::move(inputs),
                            conditional) {}

  int32_t getNbInputs() const noexcept override { return 2; }  // but for the condition
  void set_condition(const ConditionLayer& condition) { read(2, condition.output(0)); }

 private:
  int32_t max_inputs() const override { return 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class Conditional final : public nv::IIfConditional, public nv::apiv::VIfConditional {
 public:
  Conditional(NetworkDefinition& network, std::string name) : network_(network), name_(std::move(name)) {
    mImpl = this;
  }

  nv::IConditionLayer* setCondition(nv::ITensor& condition) noexcept override;
  nv::IIfConditionalInputLayer* addInput(nv::ITensor& input) noexcept override;
  nv::IIfConditionalOutputLayer* addOutput(nv::ITensor& trueSubgraphOutput,
                                           nv::ITensor& falseSubgraphOutput) noexcept override;
  void setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return name_.c_str(); }

 private:
  bool give_condition(const char* where) noexcept;

  NetworkDefinition& network_;
  std::string name_;
  ConditionLayer* condition_ = nullptr;
  std::vector<ConditionalOutputLayer*> outputs_;
};

}  // namespace lathe::api
