// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_move.h"

#include <algorithm>

#include "api/network/network_add.h"

namespace lathe::api {
namespace {

using SqueezeLayer = AxesLayer<nv::ISqueezeLayer, nv::apiv::VSqueezeLayer, SqueezeAttrs, nv::LayerType::kSQUEEZE>;
using UnsqueezeLayer =
    AxesLayer<nv::IUnsqueezeLayer, nv::apiv::VUnsqueezeLayer, UnsqueezeAttrs, nv::LayerType::kUNSQUEEZE>;

bool is_identity(const nv::Permutation& permutation, int rank) {
  for (int i = 0; i < rank; ++i)
    if (permutation.order[i] != i) return false;
  return true;
}

}  // namespace

ShuffleLayer::ShuffleLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
    : LayerOf(network, nv::LayerType::kSHUFFLE, "Shuffle", std::move(inputs)) {
  for (int32_t i = 0; i < nv::Dims::MAX_DIMS; ++i) first_.order[i] = second_.order[i] = i;
}

Result<ir::Value*> ShuffleLayer::transpose(LayerLowering& lowering, ir::Value* x, const nv::Permutation& permutation) {
  if (x->rank() > nv::Dims::MAX_DIMS || is_identity(permutation, x->rank())) return x;
  TransposeAttrs attributes;
  attributes.perm.assign(permutation.order, permutation.order + x->rank());
  return lowering.add(attributes, {x});
}

Result<std::vector<ir::Value*>> ShuffleLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(ir::Value * x, transpose(lowering, in(0), first_));
  ReshapeAttrs attributes;
  attributes.allow_zero = !zero_copies_;
  if (has(1)) {
    LATHE_ASSIGN(ir::Value * dims, lowering.cast(in(1), DType::i64));
    LATHE_ASSIGN(x, lowering.add(attributes, {x, dims}));
  } else if (reshape_.nbDims >= 0) {
    LATHE_ASSIGN(const Dims dims, to_dims(reshape_));
    LATHE_ASSIGN(x, lowering.reshape(x, dims, !zero_copies_));
  }
  LATHE_ASSIGN(x, transpose(lowering, x, second_));
  return std::vector{x};
}

Result<ir::Value*> SliceLayer::operand(LayerLowering& lowering, size_t input, const nv::Dims& dims, size_t count) {
  if (has(input)) return lowering.cast(in(input), DType::i64);
  LATHE_ASSIGN(const Dims values, to_dims(dims));
  if (values.size() != count)
    return fail(ErrorCode::invalid_argument, "start, size or stride has {} entries; {} are needed", values.size(),
                count);
  return lowering.ints(values);
}

// start + size * stride; below 0, where a negative stride passes element 0, the least number: a small negative end
// would count from the other side.
Result<ir::Value*> SliceLayer::end_of(LayerLowering& lowering, ir::Value* start, ir::Value* size, ir::Value* stride) {
  if (start->constant() && size->constant() && stride->constant()) {
    Ints ends;
    for (int64_t i = 0; i < start->constant()->volume(); ++i) {
      const int64_t end = start->constant()->at(i) + size->constant()->at(i) * stride->constant()->at(i);
      ends.push_back(end < 0 ? INT64_MIN + 1 : end);
    }
    return lowering.ints(ends);
  }
  if (!stride->constant()) return fail(ErrorCode::op_mode_unsupported, "strides must be known while building");
  for (int64_t i = 0; i < stride->constant()->volume(); ++i)
    if (stride->constant()->at(i) < 1)
      return fail(ErrorCode::op_mode_unsupported, "stride {} needs start and size to be known while building",
                  stride->constant()->at(i));
  LATHE_ASSIGN(ir::Value * length, lowering.elementwise(ElementwiseOp::mul, size, stride));
  return lowering.elementwise(ElementwiseOp::add, start, length);
}

// Stride 0 repeats one element: slice it out with size 1, then expand.
Result<ir::Value*> SliceLayer::repeat(LayerLowering& lowering) {
  nv::Dims size = size_, stride = stride_;
  Ints ones;
  for (int32_t i = 0; i < stride.nbDims; ++i) {
    if (stride.d[i] == 0) size.d[i] = stride.d[i] = 1;
  }
  const auto count = static_cast<size_t>(start_.nbDims);
  LATHE_ASSIGN(ir::Value * starts, operand(lowering, 1, start_, count));
  LATHE_ASSIGN(ir::Value * sizes, operand(lowering, 2, size, count));
  LATHE_ASSIGN(ir::Value * strides, operand(lowering, 3, stride, count));
  LATHE_ASSIGN(ir::Value * ends, end_of(lowering, starts, sizes, strides));
  for (size_t i = 0; i < count; ++i) ones.push_back(static_cast<int64_t>(i));
  LATHE_ASSIGN(ir::Value * axes, lowering.ints(ones));
  LATHE_ASSIGN(ir::Value * piece, lowering.add(SliceAttrs(), {in(0), starts, ends, axes, strides}));
  LATHE_ASSIGN(ir::Value * dims, operand(lowering, 2, size_, count));
  return lowering.add(ExpandAttrs(), {piece, dims});
}

Result<std::vector<ir::Value*>> SliceLayer::lower(LayerLowering& lowering) {
  if (mode_ != nv::SampleMode::kSTRICT_BOUNDS)
    return fail(ErrorCode::op_mode_unsupported, "slice modes other than kSTRICT_BOUNDS are not supported");
  if (has(5)) return fail(ErrorCode::op_mode_unsupported, "axes as an input are not supported; call setAxes()");
  Ints axes;
  const int rank = in(0)->rank();
  for (int i = 0; i < (axes_.nbDims < 0 ? rank : axes_.nbDims); ++i) axes.push_back(axes_.nbDims < 0 ? i : axes_.d[i]);
  const size_t count = axes.size();
  const bool repeats = !has(3) && std::find(stride_.d, stride_.d + std::max(stride_.nbDims, 0), 0) !=
                                      stride_.d + std::max(stride_.nbDims, 0);
  if (repeats) {
    if (has(1) || has(2) || axes_.nbDims >= 0)
      return fail(ErrorCode::op_mode_unsupported, "stride 0 needs static start and size for all dimensions");
    LATHE_ASSIGN(ir::Value * y, repeat(lowering));
    return std::vector{y};
  }
  LATHE_ASSIGN(ir::Value * starts, operand(lowering, 1, start_, count));
  LATHE_ASSIGN(ir::Value * sizes, operand(lowering, 2, size_, count));
  LATHE_ASSIGN(ir::Value * strides, operand(lowering, 3, stride_, count));
  LATHE_ASSIGN(ir::Value * ends, end_of(lowering, starts, sizes, strides));
  LATHE_ASSIGN(ir::Value * axes_value, lowering.ints(axes));
  LATHE_ASSIGN(ir::Value * y, lowering.add(SliceAttrs(), {in(0), starts, ends, axes_value, strides}));
  return std::vector{y};
}

Result<std::vector<ir::Value*>> ConcatenationLayer::lower(LayerLowering& lowering) {
  ConcatAttrs attributes;
  attributes.axis = axis_;
  std::vector<ir::Value*> inputs;
  for (int32_t i = 0; i < Layer::getNbInputs(); ++i) inputs.push_back(in(static_cast<size_t>(i)));
  LATHE_ASSIGN(ir::Value * y, lowering.add(attributes, std::move(inputs)));
  return std::vector{y};
}

Result<std::vector<ir::Value*>> PaddingLayer::lower(LayerLowering& lowering) {
  const int rank = in(0)->rank();
  if (pre_.nbDims != 2 || post_.nbDims != 2 || rank < 2)
    return fail(ErrorCode::invalid_argument, "padding has {} and {} dims for an input of rank {}; 2 are needed",
                pre_.nbDims, post_.nbDims, rank);
  Ints pads(static_cast<size_t>(2 * rank), 0);
  for (int i = 0; i < 2; ++i) {
    pads[static_cast<size_t>(rank - 2 + i)] = pre_.d[i];
    pads[static_cast<size_t>(2 * rank - 2 + i)] = post_.d[i];
  }
  LATHE_ASSIGN(ir::Value * amounts, lowering.ints(pads));
  LATHE_ASSIGN(ir::Value * y, lowering.add(PadAttrs(), {in(0), amounts}));
  return std::vector{y};
}

Result<std::vector<ir::Value*>> ShapeLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(ir::Value * y, lowering.add(ShapeAttrs(), {in(0)}));
  return std::vector{y};
}

Result<std::vector<ir::Value*>> ConstantLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(Dims dims, to_dims(dims_));
  LATHE_ASSIGN(ir::Value * y, lowering.weights(weights_, std::move(dims)));
  return std::vector{y};
}

Result<ir::Value*> FillLayer::number(LayerLowering& lowering, DType dtype, double real, int64_t integer) {
  if (!integers_ || dtype != DType::i64) return lowering.scalar(dtype, integers_ ? static_cast<double>(integer) : real);
  return lowering.constant(Tensor::of<int64_t>({}, {integer}));
}

// alpha + beta * i along one dimension; with input 2, beta per dimension: alpha + sum of beta[d] * index[d].
Result<std::vector<ir::Value*>> FillLayer::lower(LayerLowering& lowering) {
  if (operation_ != nv::FillOperation::kLINSPACE)
    return fail(ErrorCode::op_mode_unsupported, "random fill is not supported");
  LATHE_ASSIGN(const DType dtype, to_dtype(type_));
  ir::Value* dims = nullptr;
  if (has(0)) {
    LATHE_ASSIGN(dims, lowering.cast(in(0), DType::i64));
  } else {
    LATHE_ASSIGN(const Dims sizes, to_dims(dims_));
    LATHE_ASSIGN(dims, lowering.ints(sizes));
  }
  const std::optional<int64_t> rank = dims->shape().size() == 1 ? dims->shape()[0].as_constant() : std::nullopt;
  if (!rank) return fail(ErrorCode::shape_unknown, "the number of output dimensions must be known while building");
  if (*rank != 1 && !has(2)) return fail(ErrorCode::invalid_argument, "more than one dimension needs beta as input 2");
  ir::Value* y = in(1);
  if (!y) {
    LATHE_ASSIGN(y, number(lowering, dtype, alpha_, int_alpha_));
  }
  LATHE_ASSIGN(y, lowering.add(ExpandAttrs(), {y, dims}));
  for (int64_t d = 0; d < *rank; ++d) {
    LATHE_ASSIGN(ir::Value * index, lowering.constant(Tensor::of<int64_t>({}, {d})));
    LATHE_ASSIGN(ir::Value * zero, lowering.constant(Tensor::of<int64_t>({}, {0})));
    LATHE_ASSIGN(ir::Value * one, lowering.constant(Tensor::of<int64_t>({}, {1})));
    LATHE_ASSIGN(ir::Value * size, lowering.add(GatherAttrs(), {dims, index}));
    LATHE_ASSIGN(ir::Value * range, lowering.add(RangeAttrs(), {zero, size, one}));
    LATHE_ASSIGN(ir::Value * steps, lowering.cast(range, dtype));
    ir::Value* beta = in(2);
    if (beta && beta->rank() == 1) {
      LATHE_ASSIGN(beta, lowering.add(GatherAttrs(), {beta, index}));
    } else if (!beta) {
      LATHE_ASSIGN(beta, number(lowering, dtype, beta_, int_beta_));
    }
    LATHE_ASSIGN(ir::Value * scaled, lowering.elementwise(ElementwiseOp::mul, steps, beta));
    Ints column(static_cast<size_t>(*rank), 1);
    column[static_cast<size_t>(d)] = -1;
    if (*rank > 1) {
      LATHE_ASSIGN(scaled, lowering.reshape(scaled, column));
    }
    LATHE_ASSIGN(y, lowering.elementwise(ElementwiseOp::add, y, scaled));
  }
  return std::vector{y};
}

nv::IShuffleLayer* NetworkDefinition::addShuffle(nv::ITensor& input) noexcept {
  return add<ShuffleLayer>("INetworkDefinition::addShuffle", {&input});
}

nv::ISliceLayer* NetworkDefinition::addSlice(nv::ITensor& input, const nv::Dims& start, const nv::Dims& size,
                                             const nv::Dims& stride) noexcept {
  return add<SliceLayer>("INetworkDefinition::addSlice", {&input}, start, size, stride);
}

nv::IConcatenationLayer* NetworkDefinition::addConcatenation(nv::ITensor* const* inputs, int32_t nbInputs) noexcept {
  constexpr const char* kWhere = "INetworkDefinition::addConcatenation";
  if (!inputs || nbInputs < 1) return refuse<ConcatenationLayer>(kWhere, nullptr);
  return add<ConcatenationLayer>(kWhere, {inputs, inputs + nbInputs});
}

nv::ISqueezeLayer* NetworkDefinition::addSqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept {
  return add<SqueezeLayer>("INetworkDefinition::addSqueeze", {&input, &axes}, "Squeeze");
}

nv::IUnsqueezeLayer* NetworkDefinition::addUnsqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept {
  return add<UnsqueezeLayer>("INetworkDefinition::addUnsqueeze", {&input, &axes}, "Unsqueeze");
}

nv::IPaddingLayer* NetworkDefinition::addPaddingNd(nv::ITensor& input, const nv::Dims& prePadding,
                                                   const nv::Dims& postPadding) noexcept {
  return add<PaddingLayer>("INetworkDefinition::addPaddingNd", {&input}, prePadding, postPadding);
}

nv::IShapeLayer* NetworkDefinition::addShape(nv::ITensor& input) noexcept {
  return add<ShapeLayer>("INetworkDefinition::addShape", {&input});
}

nv::IConstantLayer* NetworkDefinition::addConstant(const nv::Dims& dimensions, nv::Weights weights) noexcept {
  return add<ConstantLayer>("INetworkDefinition::addConstant", {}, dimensions, weights);
}

nv::IFillLayer* NetworkDefinition::addFillV2(const nv::Dims& dimensions, nv::FillOperation op,
                                             nv::DataType outputType) noexcept {
  return add<FillLayer>("INetworkDefinition::addFill", {}, dimensions, op, outputType);
}

}  // namespace lathe::api
