// SPDX-License-Identifier: Apache-2.0
// Attentions and the layers at their edge: one through which query, key and value enter, and one that computes.
#pragma once

#include "api/network/network.h"
#include "compose/packed_attention.h"

namespace lathe::api {

template <class Interface, class Table>
class AttentionBoundary : public LayerOf<Interface, Table>, public nv::apiv::VAttentionBoundaryLayer {
 public:
  nv::IAttention* getAttention() const noexcept override { return attention_; }
  // Null takes the input away.
  bool change_input(size_t index, nv::ITensor* tensor, const char* where) noexcept {
    return guarded(this->entry(), where, [&]() -> Result<> {
      TensorView* view = nullptr;
      if (tensor) {
        LATHE_ASSIGN(view, this->network_.own(tensor));
      }
      this->read(index, view);
      return {};
    });
  }

 protected:
  AttentionBoundary(NetworkDefinition& network, nv::LayerType type, const char* kind, std::vector<TensorView*> inputs,
                    nv::IAttention* attention)
      : LayerOf<Interface, Table>(network, type, kind, std::move(inputs)), attention_(attention) {
    this->mBoundary = this;
  }

 private:
  nv::IAttention* attention_;
};

class AttentionInputLayer final : public AttentionBoundary<nv::IAttentionInputLayer, nv::apiv::VAttentionInputLayer> {
 public:
  AttentionInputLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::IAttention* attention)
      : AttentionBoundary(network, nv::LayerType::kATTENTION_INPUT, "AttentionInput", std::move(inputs), attention) {}

 private:
  size_t num_outputs() const override { return 3; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

// Inputs 0 to 2 are what the input layer gives.
class AttentionOutputLayer final
    : public AttentionBoundary<nv::IAttentionOutputLayer, nv::apiv::VAttentionOutputLayer> {
 public:
  enum Input : size_t { kMask = 3, kScale, kQueryLengths, kKeyValueLengths, kNumInputs };
  struct Settings {
    nv::AttentionNormalizationOp normalization = nv::AttentionNormalizationOp::kSOFTMAX;
    nv::CausalMaskKind causal = nv::CausalMaskKind::kNONE;
    nv::AttentionIOForm query_form = nv::AttentionIOForm::kPADDED_BHND;
    nv::AttentionIOForm key_value_form = nv::AttentionIOForm::kPADDED_BHND;
    nv::DataType quantized_type = nv::DataType::kFLOAT;  // kFLOAT: the weights are not quantised
  };

  AttentionOutputLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::IAttention* attention)
      : AttentionBoundary(network, nv::LayerType::kATTENTION_OUTPUT, "AttentionOutput", std::move(inputs), attention) {}

  const Settings& settings() const { return settings_; }
  template <class T>
  bool change_setting(T Settings::*setting, T value, const char* where) noexcept;

 private:
  int32_t max_inputs() const override { return kNumInputs; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<> check_operands() const;
  Result<> check_heads() const;
  Result<> check_mask() const;
  Result<> check_lengths(Input lengths, nv::AttentionIOForm form, const char* what) const;
  Result<Attention> how() const;
  ir::Value* lower_padded(LayerLowering& lowering, const Attention& how) const;

  Settings settings_;
};

class AttentionDefinition final : public nv::IAttention, public nv::apiv::VAttention {
 public:
  AttentionDefinition(NetworkDefinition& network, std::string name) : network_(network), name_(std::move(name)) {
    mImpl = this;
  }

  // Its layers, which the network owns.
  void set_layers(AttentionInputLayer* input, AttentionOutputLayer* output) { input_ = input, output_ = output; }

  bool setInput(int32_t index, nv::ITensor& input) noexcept override;
  int32_t getNbInputs() const noexcept override { return layer().getNbInputs(); }
  nv::ITensor* getInput(int32_t index) const noexcept override;
  int32_t getNbOutputs() const noexcept override { return 1; }
  nv::ITensor* getOutput(int32_t index) const noexcept override;
  bool setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return name_.c_str(); }
  bool setNormalizationOperation(nv::AttentionNormalizationOp op) noexcept override;
  nv::AttentionNormalizationOp getNormalizationOperation() const noexcept override {
    return output_->settings().normalization;
  }
  bool setCausal(bool isCausal) noexcept override;
  bool getCausal() const noexcept override { return getCausalKind() != nv::CausalMaskKind::kNONE; }
  bool setMask(nv::ITensor& mask) noexcept override;
  nv::ITensor* getMask() const noexcept override { return output_->input(AttentionOutputLayer::kMask); }
  bool setDecomposable(bool decomposable) noexcept override;
  bool getDecomposable() const noexcept override { return decomposable_; }
  std::string layer_name() const { return layer().getName(); }  // by which steps of a plan know it
  bool setNormalizationQuantizeScale(nv::ITensor& tensor) noexcept override;
  nv::ITensor* getNormalizationQuantizeScale() const noexcept override {
    return output_->input(AttentionOutputLayer::kScale);
  }
  bool setNormalizationQuantizeToType(nv::DataType type) noexcept override;
  nv::DataType getNormalizationQuantizeToType() const noexcept override { return output_->settings().quantized_type; }
  bool setMetadata(const char* metadata) noexcept override;
  const char* getMetadata() const noexcept override { return layer().getMetadata(); }
  bool setNbRanks(int32_t nbRanks) noexcept override;
  int32_t getNbRanks() const noexcept override { return layer().getNbRanks(); }
  bool setCausalKind(nv::CausalMaskKind kind) noexcept override;
  nv::CausalMaskKind getCausalKind() const noexcept override { return output_->settings().causal; }
  bool setQueryForm(nv::AttentionIOForm form) noexcept override;
  nv::AttentionIOForm getQueryForm() const noexcept override { return output_->settings().query_form; }
  bool setKeyValueForm(nv::AttentionIOForm form) noexcept override;
  nv::AttentionIOForm getKeyValueForm() const noexcept override { return output_->settings().key_value_form; }
  bool setQueryLengths(nv::ITensor* lengths) noexcept override;
  nv::ITensor* getQueryLengths() const noexcept override { return output_->input(AttentionOutputLayer::kQueryLengths); }
  bool setKeyValueLengths(nv::ITensor* lengths) noexcept override;
  nv::ITensor* getKeyValueLengths() const noexcept override {
    return output_->input(AttentionOutputLayer::kKeyValueLengths);
  }

 private:
  Layer& layer() const { return *output_; }  // with its name, metadata and inputs

  NetworkDefinition& network_;
  std::string name_;
  AttentionInputLayer* input_ = nullptr;
  AttentionOutputLayer* output_ = nullptr;
  bool decomposable_ = false;
};

}  // namespace lathe::api
