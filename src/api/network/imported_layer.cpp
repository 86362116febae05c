// SPDX-License-Identifier: Apache-2.0
#include "api/network/imported_layer.h"

#include <algorithm>

#include "api/network/enums.h"
#include "api/network/layers_index.h"
#include "api/network/layers_move.h"
#include "api/network/layers_pointwise.h"
#include "api/network/layers_quantize.h"
#include "api/network/layers_rows.h"
#include "api/network/layers_window.h"
#include "api/network/network.h"

namespace lathe::api {
namespace {

using Made = std::unique_ptr<Layer>;

// For nodes that no layer kind describes: shows name, inputs and outputs, and has no settings. Its type is kPLUGIN, so
// that no application takes it for a class with settings of its own.
class ImportedLayer final : public nv::ILayer, public Layer {
 public:
  ImportedLayer(NetworkDefinition& network, const Attributes& attributes)
      : Layer(network, nv::LayerType::kPLUGIN, "Imported", {}), attributes_(attributes.clone()) {
    mLayer = this;
    set_public(this);
  }
  ~ImportedLayer() noexcept override = default;

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override {
    std::vector<ir::Value*> inputs;
    for (int32_t i = 0; i < Layer::getNbInputs(); ++i) inputs.push_back(in(static_cast<size_t>(i)));
    const auto count = static_cast<size_t>(Layer::getNbOutputs());
    if (nodes().empty() || nodes()[0]->bodies().empty())
      return lowering.add_all(*attributes_, std::move(inputs), count);
    const ir::Node* node =
        lowering.add_node(*attributes_, network_.graph().clone_bodies(*nodes()[0]), std::move(inputs), count);
    std::vector<ir::Value*> outputs;
    for (size_t i = 0; node && i < count; ++i) outputs.push_back(node->output(i));
    return outputs;
  }

  std::unique_ptr<Attributes> attributes_;
};

uint32_t mask_of(const Ints& axes, int rank) {
  uint32_t mask = 0;
  for (int64_t axis : axes) mask |= 1u << (axis < 0 ? axis + rank : axis);
  return mask;
}

nv::Dims dims_of(const Ints& values) { return to_nv(Dims(values)); }

nv::Permutation permutation_of(const Ints& perm, int rank) {
  nv::Permutation result{};
  for (int32_t i = 0; i < nv::Dims::MAX_DIMS; ++i) result.order[i] = i;
  for (int i = 0; i < rank; ++i)  // an empty list reverses
    result.order[i] = perm.empty() ? rank - 1 - i : static_cast<int32_t>(perm[static_cast<size_t>(i)]);
  return result;
}

// All that a layer can say of a cast.
bool saturates_up(const CastAttrs& attrs) { return attrs.saturate && attrs.scale_rounding == ScaleRounding::up; }

Made pointwise(NetworkDefinition& network, const ir::Node& node) {
  switch (node.kind()) {
    case OpKind::identity:
      return std::make_unique<IdentityLayer>(network, std::vector<TensorView*>());
    case OpKind::cast:
      if (!saturates_up(node.attrs<CastAttrs>())) return nullptr;
      return std::make_unique<CastLayer>(network, std::vector<TensorView*>(), to_nv(node.attrs<CastAttrs>().to));
    case OpKind::quantize:  // scales along an axis have the shape that an importer gave them
      if (node.input(1)->rank() != 0 || (node.input(2) && node.input(2)->rank() != 0) ||
          !node.attrs<QuantizeAttrs>().saturate)
        return nullptr;
      return std::make_unique<QuantizeLayer>(network, std::vector<TensorView*>(),
                                             to_nv(node.attrs<QuantizeAttrs>().to));
    case OpKind::dequantize:
      if (node.input(1)->rank() != 0 || (node.input(2) && node.input(2)->rank() != 0)) return nullptr;
      return std::make_unique<DequantizeLayer>(network, std::vector<TensorView*>(),
                                               to_nv(node.attrs<DequantizeAttrs>().to));
    case OpKind::prelu:
      return std::make_unique<ParametricReLULayer>(network, std::vector<TensorView*>());
    case OpKind::select:
      return std::make_unique<SelectLayer>(network, std::vector<TensorView*>());
    case OpKind::unary: {
      const auto& attributes = node.attrs<UnaryAttrs>();
      const auto operation = to_nv(attributes.op);
      if (!operation || !attributes.detect_negative || !attributes.detect_positive) return nullptr;
      return std::make_unique<UnaryLayer>(network, std::vector<TensorView*>(), *operation);
    }
    case OpKind::activation: {
      const auto& attributes = node.attrs<ActivationAttrs>();
      const auto type = to_nv(attributes.op);
      if (!type) return nullptr;
      auto layer = std::make_unique<ActivationLayer>(network, std::vector<TensorView*>(), *type);
      layer->set_parameters(static_cast<float>(attributes.alpha), static_cast<float>(attributes.beta));
      return layer;
    }
    case OpKind::elementwise: {
      const auto operation = to_nv(node.attrs<ElementwiseAttrs>().op);
      if (!operation || node.input(0)->rank() != node.input(1)->rank()) return nullptr;
      return std::make_unique<ElementWiseLayer>(network, std::vector<TensorView*>(), *operation);
    }
    default:
      return nullptr;
  }
}

Made window(NetworkDefinition& network, const ir::Node& node) {
  if (node.is(OpKind::pooling)) {
    const auto& attributes = node.attrs<PoolingAttrs>();
    const bool plain =
        std::all_of(attributes.dilation.begin(), attributes.dilation.end(), [](auto d) { return d == 1; });
    const size_t dims = attributes.window.size();
    if (!plain || attributes.op == PoolingOp::lp || node.num_outputs() != 1 || dims < 2 || dims > 3) return nullptr;
    const auto type = attributes.op == PoolingOp::max ? nv::PoolingType::kMAX : nv::PoolingType::kAVERAGE;
    auto layer = std::make_unique<PoolingLayer>(network, std::vector<TensorView*>(), type, dims_of(attributes.window));
    layer->set_window({dims_of(attributes.window), dims_of(attributes.stride), dims_of(attributes.pads_begin),
                       dims_of(attributes.pads_end), dims_of(attributes.dilation), *to_nv(attributes.padding_mode)},
                      !attributes.count_include_pad);
    return layer;
  }
  // The kernel is input 1, with known dims.
  const std::optional<Dims> kernel = as_constant(node.input(1)->shape());
  if (!node.is(OpKind::convolution) || !kernel || kernel->size() < 4 || kernel->size() > 5) return nullptr;
  const auto& attributes = node.attrs<ConvolutionAttrs>();
  const nv::Dims size = dims_of(Ints(kernel->begin() + 2, kernel->end()));
  auto layer = std::make_unique<ConvolutionLayer>(network, std::vector<TensorView*>(), (*kernel)[0], size,
                                                  nv::Weights{}, nv::Weights{});
  layer->set_window({size, dims_of(attributes.stride), dims_of(attributes.pads_begin), dims_of(attributes.pads_end),
                     dims_of(attributes.dilation), *to_nv(attributes.padding_mode)},
                    attributes.groups);
  return layer;
}

Made rows(NetworkDefinition& network, const ir::Node& node) {
  const int rank = node.input(0) ? node.input(0)->rank() : 0;
  switch (node.kind()) {
    case OpKind::reduce: {
      const auto& attributes = node.attrs<ReduceAttrs>();
      const auto operation = to_nv(attributes.op);
      if (!operation || node.num_inputs() != 1 || attributes.axes.empty()) return nullptr;
      return std::make_unique<ReduceLayer>(network, std::vector<TensorView*>(), *operation,
                                           mask_of(attributes.axes, rank), attributes.keepdims);
    }
    case OpKind::matmul: {
      const auto& attributes = node.attrs<MatmulAttrs>();
      if (rank != node.input(1)->rank() || rank < 2) return nullptr;
      const auto operation = [](bool transpose) {
        return transpose ? nv::MatrixOperation::kTRANSPOSE : nv::MatrixOperation::kNONE;
      };
      return std::make_unique<MatrixMultiplyLayer>(
          network, std::vector<TensorView*>(), operation(attributes.transpose_a), operation(attributes.transpose_b));
    }
    case OpKind::einsum:
      return std::make_unique<EinsumLayer>(network, std::vector<TensorView*>(), node.attrs<EinsumAttrs>().equation);
    case OpKind::cumulative: {
      const auto& attributes = node.attrs<CumulativeAttrs>();
      if (attributes.op != CumulativeOp::sum) return nullptr;
      return std::make_unique<CumulativeLayer>(network, std::vector<TensorView*>(), nv::CumulativeOperation::kSUM,
                                               attributes.exclusive, attributes.reverse);
    }
    default:
      return nullptr;
  }
}

Made movement(NetworkDefinition& network, const ir::Node& node) {
  const int rank = node.input(0) ? node.input(0)->rank() : 0;
  switch (node.kind()) {
    case OpKind::constant: {
      const Tensor& value = node.attrs<ConstantAttrs>().value;
      if (value.rank() > nv::Dims::MAX_DIMS) return nullptr;
      return std::make_unique<ConstantLayer>(network, std::vector<TensorView*>(), to_nv(value.dims()),
                                             nv::Weights{to_nv(value.dtype()), value.data(), value.volume()},
                                             value.owner());
    }
    case OpKind::shape:
      if (node.attrs<ShapeAttrs>().start != 0 || node.attrs<ShapeAttrs>().end < rank) return nullptr;
      return std::make_unique<ShapeLayer>(network, std::vector<TensorView*>());
    case OpKind::transpose: {
      if (rank > nv::Dims::MAX_DIMS) return nullptr;
      auto layer = std::make_unique<ShuffleLayer>(network, std::vector<TensorView*>());
      layer->set_transpose(permutation_of(node.attrs<TransposeAttrs>().perm, rank));
      return layer;
    }
    case OpKind::reshape: {
      auto layer = std::make_unique<ShuffleLayer>(network, std::vector<TensorView*>());
      layer->set_zero_copies(!node.attrs<ReshapeAttrs>().allow_zero);
      return layer;
    }
    case OpKind::gather:
      return std::make_unique<GatherLayer>(network, std::vector<TensorView*>(),
                                           static_cast<int32_t>(node.attrs<GatherAttrs>().axis),
                                           nv::GatherMode::kDEFAULT);
    case OpKind::gather_elements:
      return std::make_unique<GatherLayer>(network, std::vector<TensorView*>(),
                                           static_cast<int32_t>(node.attrs<GatherElementsAttrs>().axis),
                                           nv::GatherMode::kELEMENT);
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Layer> make_imported_layer(NetworkDefinition& network, ir::Node* node) {
  Made layer;
  if (node->is(OpKind::convolution) || node->is(OpKind::pooling)) layer = window(network, *node);
  for (const auto make : {pointwise, rows, movement})
    if (!layer) layer = make(network, *node);
  if (!layer) layer = std::make_unique<ImportedLayer>(network, node->attributes());
  layer->adopt(node);
  return layer;
}

}  // namespace lathe::api
