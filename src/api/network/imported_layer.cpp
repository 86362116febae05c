// SPDX-License-Identifier: Apache-2.0
#include "api/network/imported_layer.h"

#include <algorithm>

#include "api/network/enums.h"
#include "api/network/imported_kinds.h"
#include "api/network/layers_index.h"
#include "api/network/layers_move.h"
#include "api/network/layers_pointwise.h"
#include "api/network/layers_rows.h"
#include "api/network/layers_window.h"
#include "api/network/network.h"
#include "api/network/plugin_import.h"
#include "api/network/plugin_layer.h"

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
      if (!operation) return nullptr;
      auto layer = std::make_unique<ElementWiseLayer>(network, std::vector<TensorView*>(), *operation);
      layer->set_broadcasts();
      return layer;
    }
    default:
      return nullptr;
  }
}

// The kernel is input 1, with known dims, which tell the number of output channels.
template <class L, class Attrs, class Channels>
Made convolution(NetworkDefinition& network, const ir::Node& node, const Attrs& attributes, const Channels& channels) {
  const std::optional<Dims> kernel = as_constant(node.input(1)->shape());
  if (!kernel || kernel->size() < 3 || kernel->size() > 5) return nullptr;
  const nv::Dims size = dims_of(Ints(kernel->begin() + 2, kernel->end()));
  auto layer =
      std::make_unique<L>(network, std::vector<TensorView*>(), channels(*kernel), size, nv::Weights{}, nv::Weights{});
  WindowSettings window{size,
                        dims_of(attributes.stride),
                        dims_of(attributes.pads_begin),
                        dims_of(attributes.pads_end),
                        dims_of(attributes.dilation),
                        *to_nv(attributes.padding_mode)};
  window.may_have_one = true;
  layer->set_window(window, attributes.groups);
  return layer;
}

Made window(NetworkDefinition& network, const ir::Node& node) {
  if (node.is(OpKind::pooling)) {
    const auto& attributes = node.attrs<PoolingAttrs>();
    const bool plain =
        std::all_of(attributes.dilation.begin(), attributes.dilation.end(), [](auto d) { return d == 1; });
    const size_t dims = attributes.window.size();
    if (!plain || attributes.op == PoolingOp::lp || node.num_outputs() != 1 || dims < 1 || dims > 3) return nullptr;
    const auto type = attributes.op == PoolingOp::max ? nv::PoolingType::kMAX : nv::PoolingType::kAVERAGE;
    auto layer = std::make_unique<PoolingLayer>(network, std::vector<TensorView*>(), type, dims_of(attributes.window));
    layer->set_window({dims_of(attributes.window), dims_of(attributes.stride), dims_of(attributes.pads_begin),
                       dims_of(attributes.pads_end), dims_of(attributes.dilation), *to_nv(attributes.padding_mode)},
                      !attributes.count_include_pad);
    return layer;
  }
  if (node.is(OpKind::convolution)) {
    const auto& attributes = node.attrs<ConvolutionAttrs>();
    return convolution<ConvolutionLayer>(network, node, attributes, [](const Dims& kernel) { return kernel[0]; });
  }
  if (!node.is(OpKind::deconvolution)) return nullptr;
  const auto& attributes = node.attrs<DeconvolutionAttrs>();
  const auto is_zero = [](int64_t value) { return value == 0; };
  if (!attributes.output_shape.empty() || !std::ranges::all_of(attributes.output_padding, is_zero)) return nullptr;
  return convolution<DeconvolutionLayer>(network, node, attributes,
                                         [&](const Dims& kernel) { return kernel[1] * attributes.groups; });
}

Made rows(NetworkDefinition& network, const ir::Node& node) {
  switch (node.kind()) {
    case OpKind::matmul: {
      const auto& attributes = node.attrs<MatmulAttrs>();
      const auto operation = [](const ir::Value* operand, bool transpose) {
        if (operand->rank() == 1) return nv::MatrixOperation::kVECTOR;
        return transpose ? nv::MatrixOperation::kTRANSPOSE : nv::MatrixOperation::kNONE;
      };
      auto layer = std::make_unique<MatrixMultiplyLayer>(network, std::vector<TensorView*>(),
                                                         operation(node.input(0), attributes.transpose_a),
                                                         operation(node.input(1), attributes.transpose_b));
      layer->set_broadcasts();
      return layer;
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

// The first `kept` dimensions are not normalised.
Made normalization(NetworkDefinition& network, int rank, int64_t kept, double epsilon, std::optional<int64_t> groups) {
  Ints axes;
  for (int64_t d = kept; d < rank; ++d) axes.push_back(d);
  auto layer = std::make_unique<NormalizationLayer>(network, std::vector<TensorView*>(), mask_of(axes, rank), true);
  layer->set_parameters(epsilon, groups.value_or(1), groups.has_value());
  return layer;
}

Made normalizations(NetworkDefinition& network, const ir::Node& node) {
  const int rank = node.input(0) ? node.input(0)->rank() : 0;
  switch (node.kind()) {
    case OpKind::softmax: {
      const auto& attributes = node.attrs<SoftmaxAttrs>();
      if (attributes.log) return nullptr;
      auto layer = std::make_unique<SoftMaxLayer>(network, std::vector<TensorView*>());
      layer->set_axes(mask_of({attributes.axis}, rank));
      return layer;
    }
    case OpKind::layer_normalization: {
      const auto& attributes = node.attrs<LayerNormalizationAttrs>();
      if (node.num_outputs() != 1) return nullptr;
      return normalization(network, rank, attributes.axis < 0 ? attributes.axis + rank : attributes.axis,
                           attributes.epsilon, std::nullopt);
    }
    case OpKind::instance_normalization:
      return rank < 3 ? nullptr : normalization(network, rank, 2, node.attrs<InstanceNormalizationAttrs>().epsilon, 1);
    case OpKind::group_normalization: {
      const auto& attributes = node.attrs<GroupNormalizationAttrs>();
      if (rank < 3 || attributes.groups == 1) return nullptr;  // one group is not what a layer takes 1 for
      return normalization(network, rank, 2, attributes.epsilon, attributes.groups);
    }
    case OpKind::lrn: {
      const auto& attributes = node.attrs<LrnAttrs>();
      if (attributes.size > 15 || attributes.size % 2 == 0) return nullptr;
      return std::make_unique<LRNLayer>(network, std::vector<TensorView*>(), attributes.size,
                                        static_cast<float>(attributes.alpha), static_cast<float>(attributes.beta),
                                        static_cast<float>(attributes.bias));
    }
    default:
      return nullptr;
  }
}

Made selection(NetworkDefinition& network, const ir::Node& node) {
  const int rank = node.input(0) ? node.input(0)->rank() : 0;
  switch (node.kind()) {
    case OpKind::topk: {
      const auto& attributes = node.attrs<TopkAttrs>();
      return std::make_unique<TopKLayer>(network, std::vector<TensorView*>(),
                                         attributes.largest ? nv::TopKOperation::kMAX : nv::TopKOperation::kMIN, 1,
                                         mask_of({attributes.axis}, rank), nv::DataType::kINT64);
    }
    case OpKind::gather_nd: {
      auto layer = std::make_unique<GatherLayer>(network, std::vector<TensorView*>(), 0, nv::GatherMode::kND);
      layer->set_batch_dims(node.attrs<GatherNdAttrs>().batch_dims);
      return layer;
    }
    case OpKind::scatter_elements: {
      const auto& attributes = node.attrs<ScatterElementsAttrs>();
      if (attributes.reduction != ScatterReduction::none) return nullptr;
      return std::make_unique<ScatterLayer>(network, std::vector<TensorView*>(), nv::ScatterMode::kELEMENT,
                                            static_cast<int32_t>(attributes.axis));
    }
    case OpKind::scatter_nd:
      if (node.attrs<ScatterNdAttrs>().reduction != ScatterReduction::none) return nullptr;
      return std::make_unique<ScatterLayer>(network, std::vector<TensorView*>(), nv::ScatterMode::kND);
    case OpKind::nonzero:
      return std::make_unique<NonZeroLayer>(network, std::vector<TensorView*>(), nv::DataType::kINT64);
    case OpKind::concat: {
      auto layer = std::make_unique<ConcatenationLayer>(network, std::vector<TensorView*>());
      const int64_t axis = node.attrs<ConcatAttrs>().axis;
      layer->set_axis(static_cast<int32_t>(axis < 0 ? axis + rank : axis));
      return layer;
    }
    case OpKind::squeeze:
      if (!node.input(1)) return nullptr;
      return std::make_unique<SqueezeLayer>(network, std::vector<TensorView*>());
    case OpKind::unsqueeze:
      return std::make_unique<UnsqueezeLayer>(network, std::vector<TensorView*>());
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
    case OpKind::fill: {
      const Tensor& value = node.attrs<FillAttrs>().value;
      const DType dtype = value.dtype();
      if (dtype == DType::boolean || (!is_floating(dtype) && !is_integer(dtype))) return nullptr;
      auto layer = std::make_unique<FillLayer>(network, std::vector<TensorView*>(), nv::Dims{},
                                               nv::FillOperation::kLINSPACE, to_nv(dtype));
      layer->set_one_number(value.at_double(0), value.at(0), !is_floating(dtype));
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
  if (node->is(OpKind::plugin)) {
    std::shared_ptr<HeldPlugin> held = network.plugins()->find(node->name());
    Made layer;
    if (held->v2)
      layer = std::make_unique<PluginV2Layer>(network, std::vector<TensorView*>(), std::move(held));
    else
      layer = std::make_unique<PluginV3Layer>(network, std::vector<TensorView*>(), std::move(held));
    layer->adopt(node);
    return layer;
  }
  for (const auto make :
       {make_slice, make_reshape, make_scale, make_resize, make_quantization, make_reduction, make_one_hot})
    if (Made layer = make(network, node)) return layer;
  Made layer;
  for (const auto make : {window, pointwise, rows, normalizations, selection, movement})
    if (!layer) layer = make(network, *node);
  if (!layer) layer = std::make_unique<ImportedLayer>(network, node->attributes());
  layer->adopt(node);
  return layer;
}

}  // namespace lathe::api
