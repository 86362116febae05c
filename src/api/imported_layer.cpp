// SPDX-License-Identifier: Apache-2.0
#include "api/imported_layer.h"

namespace lathe::api {
namespace {

// Shows name, inputs and outputs; has no settings of its own.
class ImportedLayer final : public nv::ILayer, public Layer {
 public:
  ImportedLayer(NetworkDefinition& network, nv::LayerType type, ir::Node* node)
      : Layer(network, type, "Imported", {}), attributes_(node->attributes().clone()) {
    mLayer = this;
    set_public(this);
  }
  ~ImportedLayer() noexcept override = default;

 private:
  Result<std::vector<ir::Value*>> lower(Lowering& lowering) override {
    std::vector<ir::Value*> inputs;
    for (int32_t i = 0; i < Layer::getNbInputs(); ++i) inputs.push_back(in(static_cast<size_t>(i)));
    const auto count = static_cast<size_t>(Layer::getNbOutputs());
    LATHE_ASSIGN(ir::Node * node, lowering.add_node(*attributes_, std::move(inputs), count));
    std::vector<ir::Value*> outputs;
    for (size_t i = 0; i < count; ++i) outputs.push_back(node->output(i));
    return outputs;
  }

  std::unique_ptr<Attributes> attributes_;
};

// The kind that comes nearest; kPLUGIN for ops that no layer kind describes.
nv::LayerType layer_type(OpKind kind) {
  using nv::LayerType;
  switch (kind) {
    case OpKind::constant:
      return LayerType::kCONSTANT;
    case OpKind::identity:
      return LayerType::kIDENTITY;
    case OpKind::cast:
      return LayerType::kCAST;
    case OpKind::unary:
      return LayerType::kUNARY;
    case OpKind::activation:
      return LayerType::kACTIVATION;
    case OpKind::elementwise:
      return LayerType::kELEMENTWISE;
    case OpKind::prelu:
      return LayerType::kPARAMETRIC_RELU;
    case OpKind::select:
      return LayerType::kSELECT;
    case OpKind::matmul:
      return LayerType::kMATRIX_MULTIPLY;
    case OpKind::convolution:
      return LayerType::kCONVOLUTION;
    case OpKind::deconvolution:
      return LayerType::kDECONVOLUTION;
    case OpKind::einsum:
      return LayerType::kEINSUM;
    case OpKind::pooling:
      return LayerType::kPOOLING;
    case OpKind::lrn:
      return LayerType::kLRN;
    case OpKind::resize:
      return LayerType::kRESIZE;
    case OpKind::reduce:
      return LayerType::kREDUCE;
    case OpKind::arg_reduce:
    case OpKind::topk:
      return LayerType::kTOPK;
    case OpKind::softmax:
      return LayerType::kSOFTMAX;
    case OpKind::cumulative:
      return LayerType::kCUMULATIVE;
    case OpKind::batch_normalization:
      return LayerType::kSCALE;
    case OpKind::instance_normalization:
    case OpKind::layer_normalization:
    case OpKind::group_normalization:
    case OpKind::rms_normalization:
    case OpKind::lp_normalization:
      return LayerType::kNORMALIZATION;
    case OpKind::reshape:
    case OpKind::flatten:
    case OpKind::transpose:
    case OpKind::depth_to_space:
    case OpKind::space_to_depth:
      return LayerType::kSHUFFLE;
    case OpKind::squeeze:
      return LayerType::kSQUEEZE;
    case OpKind::unsqueeze:
      return LayerType::kUNSQUEEZE;
    case OpKind::slice:
    case OpKind::split:
    case OpKind::expand:
    case OpKind::tile:
      return LayerType::kSLICE;
    case OpKind::pad:
      return LayerType::kPADDING;
    case OpKind::concat:
      return LayerType::kCONCATENATION;
    case OpKind::shape:
      return LayerType::kSHAPE;
    case OpKind::fill:
    case OpKind::range:
      return LayerType::kFILL;
    case OpKind::gather:
    case OpKind::gather_elements:
    case OpKind::gather_nd:
      return LayerType::kGATHER;
    case OpKind::scatter_elements:
    case OpKind::scatter_nd:
      return LayerType::kSCATTER;
    case OpKind::one_hot:
      return LayerType::kONE_HOT;
    case OpKind::nonzero:
      return LayerType::kNON_ZERO;
    default:
      return LayerType::kPLUGIN;
  }
}

}  // namespace

std::unique_ptr<Layer> make_imported_layer(NetworkDefinition& network, ir::Node* node) {
  auto layer = std::make_unique<ImportedLayer>(network, layer_type(node->kind()), node);
  layer->adopt(node);
  return layer;
}

}  // namespace lathe::api
