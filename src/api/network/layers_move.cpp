// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_move.h"

#include <algorithm>

#include "api/network/network_add.h"

namespace lathe::api {
namespace {

using SqueezeLayer = AxesLayer<nv::ISqueezeLayer, nv::apiv::VSqueezeLayer, SqueezeAttrs, nv::LayerType::kSQUEEZE>;
using UnsqueezeLayer =
    AxesLayer<nv::IUnsqueezeLayer, nv::apiv::VUnsqueezeLayer, UnsqueezeAttrs, nv::LayerType::kUNSQUEEZE>;

// Of mode kSTRICT_BOUNDS.
SliceAttrs strict() {
  SliceAttrs attributes;
  attributes.strict = true;
  return attributes;
}

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
  if (is_identity(permutation, std::min<int>(x->rank(), nv::Dims::MAX_DIMS))) return x;
  if (x->rank() > nv::Dims::MAX_DIMS)
    return fail(ErrorCode::invalid_argument, "a tensor of rank {} cannot be transposed; {} is the most", x->rank(),
                nv::Dims::MAX_DIMS + 0);
  return lowering.transpose(x, Ints(permutation.order, permutation.order + x->rank()));
}

Result<std::vector<ir::Value*>> ShuffleLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(ir::Value * x, transpose(lowering, in(0), first_));
  if (has(1)) {
    x = lowering.reshape(x, lowering.cast(in(1), DType::i64), !zero_copies_);
  } else if (reshape_.nbDims >= 0) {
    LATHE_ASSIGN(const Dims dims, to_dims(reshape_));
    x = lowering.reshape(x, dims, !zero_copies_);
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
      const int64_t count = size->constant()->at(i), step = stride->constant()->at(i), first = start->constant()->at(i);
      int64_t end = 0;
      const bool far = __builtin_mul_overflow(count, step, &end) || __builtin_add_overflow(first, end, &end);
      if (count < 0 || far || (count > 0 && end - step < 0))
        return fail(ErrorCode::invalid_argument, "{} elements from {} on, {} apart, are not all inside of x", count,
                    first, step);
      ends.push_back(end < 0 ? INT64_MIN + 1 : end);
    }
    return lowering.ints(ends);
  }
  if (!stride->constant()) return fail(ErrorCode::op_mode_unsupported, "strides must be known while building");
  for (int64_t i = 0; i < stride->constant()->volume(); ++i)
    if (stride->constant()->at(i) < 1)
      return fail(ErrorCode::op_mode_unsupported, "stride {} needs start and size to be known while building",
                  stride->constant()->at(i));
  return lowering.plus(start, lowering.mul(size, stride));
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
  ir::Value* piece = lowering.add(strict(), {in(0), starts, ends, lowering.ints(ones), strides});
  LATHE_ASSIGN(ir::Value * dims, operand(lowering, 2, size_, count));
  return lowering.expand(piece, dims);
}

Result<std::vector<ir::Value*>> SliceLayer::lower(LayerLowering& lowering) {
  if (mode_ != nv::SampleMode::kSTRICT_BOUNDS)
    return fail(ErrorCode::op_mode_unsupported, "slice modes other than kSTRICT_BOUNDS are not supported");
  if (has(4)) return fail(ErrorCode::invalid_argument, "input 4 is the fill value of mode kFILL alone");
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
  return std::vector{lowering.add(strict(), {in(0), starts, ends, lowering.ints(axes), strides})};
}

Result<std::vector<ir::Value*>> ConcatenationLayer::lower(LayerLowering& lowering) {
  std::vector<ir::Value*> inputs;
  for (int32_t i = 0; i < Layer::getNbInputs(); ++i) inputs.push_back(in(static_cast<size_t>(i)));
  return std::vector{lowering.concat(std::move(inputs), axis_for(in(0)->rank()))};
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
  return std::vector{lowering.add(PadAttrs(), {in(0), lowering.ints(pads)})};
}

Result<std::vector<ir::Value*>> ShapeLayer::lower(LayerLowering& lowering) {
  return std::vector{lowering.shape_of(in(0))};
}

Result<std::vector<ir::Value*>> ConstantLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(Dims dims, to_dims(dims_));
  return std::vector{lowering.weights(weights_, std::move(dims), owner_)};
}

Result<ir::Value*> FillLayer::constant(LayerLowering& lowering, DType dtype, const Number& number) {
  const bool is_integer = number.is_integer.value_or(false);
  if (is_integer && dtype == DType::i64) return lowering.integer_scalar(number.integer);
  const double wanted = is_integer ? static_cast<double>(number.integer) : number.real;
  ir::Value* made = lowering.scalar(wanted, dtype);
  if (!is_floating(dtype) && made->constant() && made->constant()->at_double(0) != wanted)
    return fail(ErrorCode::invalid_argument, "{} is no number of type {}", wanted, name_of(dtype));
  return made;
}

// alpha + beta * i along one dimension; with input 2, beta per dimension: alpha + sum of beta[d] * index[d].
Result<std::vector<ir::Value*>> FillLayer::lower(LayerLowering& lowering) {
  if (operation_ != nv::FillOperation::kLINSPACE)
    return fail(ErrorCode::op_mode_unsupported, "random fill is not supported");
  if (!has(1) && !has(2) && alpha_.is_integer.value_or(integers_) != beta_.is_integer.value_or(integers_))
    return fail(ErrorCode::invalid_argument,
                "alpha and beta are one a real number and the other an integer; set both by setAlpha() and setBeta(), "
                "or both by setAlphaInt64() and setBetaInt64()");
  LATHE_ASSIGN(const DType dtype, to_dtype(type_));
  ir::Value* dims = nullptr;
  if (has(0)) {
    dims = lowering.cast(in(0), DType::i64);
  } else {
    LATHE_ASSIGN(const Dims sizes, to_dims(dims_));
    dims = lowering.ints(sizes);
  }
  const std::optional<int64_t> rank = dims->shape().size() == 1 ? dims->shape()[0].as_constant() : std::nullopt;
  if (!rank) return fail(ErrorCode::shape_unknown, "the number of output dimensions must be known while building");
  if (*rank != 1 && !has(2)) return fail(ErrorCode::invalid_argument, "more than one dimension needs beta as input 2");
  ir::Value* y = in(1);
  if (!y) {
    LATHE_ASSIGN(y, constant(lowering, dtype, alpha_));
  }
  y = lowering.expand(y, dims);
  for (int64_t d = 0; d < *rank; ++d) {
    ir::Value* index = lowering.integer_scalar(d);
    ir::Value* zero = lowering.integer_scalar(0);
    ir::Value* one = lowering.integer_scalar(1);
    ir::Value* range = lowering.add(RangeAttrs(), {zero, lowering.gather(dims, index, 0), one});
    ir::Value* steps = lowering.cast(range, dtype);
    ir::Value* beta = in(2);
    if (beta && beta->rank() == 1) {
      beta = lowering.gather(beta, index, 0);
    } else if (!beta) {
      LATHE_ASSIGN(beta, constant(lowering, dtype, beta_));
    }
    ir::Value* scaled = lowering.mul(steps, beta);
    Ints column(static_cast<size_t>(*rank), 1);
    column[static_cast<size_t>(d)] = -1;
    if (*rank > 1) scaled = lowering.reshape(scaled, column);
    y = lowering.plus(y, scaled);
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
