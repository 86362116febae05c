// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_move.h"

#include <algorithm>

#include "api/network/network_add.h"

namespace lathe::api {
namespace {

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

Result<std::vector<ir::Value*>> ConcatenationLayer::lower(LayerLowering& lowering) {
  std::vector<ir::Value*> inputs;
  for (int32_t i = 0; i < Layer::getNbInputs(); ++i) inputs.push_back(in(static_cast<size_t>(i)));
  return std::vector{lowering.concat(std::move(inputs), axis_for(in(0)->rank()))};
}

Result<std::vector<ir::Value*>> PaddingLayer::lower(LayerLowering& lowering) {
  const int rank = in(0)->rank();
  const int32_t count = pre_.nbDims;
  if (count < 1 || count > rank || post_.nbDims != count)
    return fail(ErrorCode::invalid_argument,
                "padding has {} and {} dims for an input of rank {}; both are of as many of the last dimensions", count,
                post_.nbDims, rank);
  Ints pads(static_cast<size_t>(2 * rank), 0);
  for (int i = 0; i < count; ++i) {
    pads[static_cast<size_t>(rank - count + i)] = pre_.d[i];
    pads[static_cast<size_t>(2 * rank - count + i)] = post_.d[i];
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

FillLayer::FillLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, const nv::Dims& dims,
                     nv::FillOperation operation, nv::DataType type)
    : LayerOf(network, nv::LayerType::kFILL, "Fill", std::move(inputs)),
      stream_(-1 - static_cast<int64_t>(network.num_layers())),  // those of imported nodes are from 0 on
      dims_(dims),
      operation_(operation),
      type_(type) {}

Result<ir::Value*> FillLayer::constant(LayerLowering& lowering, DType dtype, const Number& number) {
  const bool is_integer = number.is_integer.value_or(false);
  if (is_integer && dtype == DType::i64) return lowering.integer_scalar(number.integer);
  const double wanted = is_integer ? static_cast<double>(number.integer) : number.real;
  ir::Value* made = lowering.scalar(wanted, dtype);
  if (!is_floating(dtype) && made->constant() && made->constant()->at_double(0) != wanted)
    return fail(ErrorCode::invalid_argument, "{} is no number of type {}", wanted, name_of(dtype));
  return made;
}

Result<ir::Value*> FillLayer::number(LayerLowering& lowering, size_t input, DType dtype, const Number& number) {
  if (!has(input)) return constant(lowering, dtype, number);
  if (in(input)->dtype() != dtype || in(input)->rank() != 0)
    return fail(ErrorCode::type_mismatch, "input {} is a {} without dimensions, but '{}' is {}{}", input,
                name_of(dtype), in(input)->name(), name_of(in(input)->dtype()), to_string(in(input)->shape()));
  return in(input);
}

// Uniform in [alpha, beta), or normal with mean alpha and standard deviation beta; other numbers in each run.
Result<std::vector<ir::Value*>> FillLayer::random(LayerLowering& lowering, DType dtype, ir::Value* dims) {
  if (!is_floating(dtype))
    return fail(ErrorCode::type_mismatch, "random numbers are of a floating-point type, not {}", name_of(dtype));
  LATHE_ASSIGN(ir::Value * alpha, number(lowering, 1, dtype, alpha_));
  LATHE_ASSIGN(ir::Value * beta, number(lowering, 2, dtype, beta_));
  RandomAttrs attributes;
  attributes.dtype = dtype;
  FreshSeedAttrs seed;
  seed.stream = stream_;
  const bool normal = operation_ == nv::FillOperation::kRANDOM_NORMAL;
  if (normal) attributes.op = RandomOp::normal;
  ir::Value* drawn = lowering.add(attributes, {dims, lowering.add(seed, {})});
  ir::Value* width = normal ? beta : lowering.minus(beta, alpha);
  return std::vector{lowering.plus(lowering.mul(drawn, width), alpha)};
}

// alpha + beta * i along one dimension; with input 2, beta per dimension: alpha + sum of beta[d] * index[d].
Result<std::vector<ir::Value*>> FillLayer::lower(LayerLowering& lowering) {
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
  if (operation_ != nv::FillOperation::kLINSPACE) return random(lowering, dtype, dims);
  const std::optional<int64_t> rank = dims->shape().size() == 1 ? dims->shape()[0].as_constant() : std::nullopt;
  if (!rank) return fail(ErrorCode::shape_unknown, "the number of output dimensions must be known while building");
  const bool is_flat = !has(2) && beta_.is_zero();
  if (*rank != 1 && !has(2) && !is_flat)
    return fail(ErrorCode::invalid_argument, "more than one dimension needs beta as input 2");
  ir::Value* y = in(1);
  if (!y) {
    LATHE_ASSIGN(y, constant(lowering, dtype, alpha_));
  }
  y = lowering.expand(y, dims);
  if (is_flat) return std::vector{y};
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

nv::IConcatenationLayer* NetworkDefinition::addConcatenation(nv::ITensor* const* inputs, int32_t nbInputs) noexcept {
  constexpr const char* kWhere = "INetworkDefinition::addConcatenation";
  if (!inputs || nbInputs < 1) return refuse<ConcatenationLayer>(kWhere);
  return add<ConcatenationLayer>(kWhere, std::span(inputs, static_cast<size_t>(nbInputs)));
}

nv::ISqueezeLayer* NetworkDefinition::addSqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept {
  return add<SqueezeLayer>("INetworkDefinition::addSqueeze", {&input, &axes});
}

nv::IUnsqueezeLayer* NetworkDefinition::addUnsqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept {
  return add<UnsqueezeLayer>("INetworkDefinition::addUnsqueeze", {&input, &axes});
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
