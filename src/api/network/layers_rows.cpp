// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_rows.h"

#include <algorithm>

#include "api/deprecation.h"
#include "api/network/enums.h"
#include "api/network/network_add.h"
#include "ops/subscripts.h"

namespace lathe::api {
namespace {

constexpr int32_t kMaxK = 3840;

Result<int64_t> single_axis(uint32_t mask, int rank) {
  LATHE_ASSIGN(const auto axes, axes_of(mask, rank));
  if (axes.size() != 1) return fail(ErrorCode::invalid_argument, "axes {:#x} must name exactly one dimension", mask);
  return axes[0];
}

}  // namespace

Result<std::vector<ir::Value*>> SoftMaxLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const int64_t axis, single_axis(axes_for(in(0)->rank()), in(0)->rank()));
  return std::vector{lowering.softmax(in(0), axis)};
}

Result<std::vector<ir::Value*>> LRNLayer::lower(LayerLowering& lowering) {
  if (window_ < 1 || window_ > 15 || window_ % 2 == 0)
    return fail(ErrorCode::invalid_argument, "window {} must be odd and in [1, 15]", window_);
  LrnAttrs attributes;
  attributes.size = window_;
  attributes.alpha = alpha_;
  attributes.beta = beta_;
  attributes.bias = k_;
  return std::vector{lowering.add(attributes, {in(0)})};
}

Result<std::vector<ir::Value*>> ReduceLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const ReduceOp op, to_ours(operation_));
  LATHE_ASSIGN(const Ints axes, axes_of(axes_, in(0)->rank()));
  if (axes.empty()) return fail(ErrorCode::invalid_argument, "at least one axis must be reduced");
  return std::vector{lowering.reduce(op, in(0), axes, keep_)};
}

bool TopKLayer::setIndicesType(nv::DataType type) noexcept {
  return guarded(entry(), "ITopKLayer::setIndicesType", [&]() -> Result<> {
    LATHE_TRY(to_index_type(type));
    indices_ = type, touch();
    return {};
  });
}

Result<std::vector<ir::Value*>> TopKLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const DType type, to_index_type(indices_));
  TopkAttrs attributes;
  attributes.largest = operation_ == nv::TopKOperation::kMAX;
  LATHE_ASSIGN(attributes.axis, single_axis(axes_, in(0)->rank()));
  ir::Value* k = nullptr;
  if (has(1)) {
    k = lowering.reshape(lowering.cast(in(1), DType::i64), {1});
  } else {
    if (k_ < 1 || k_ > kMaxK) return fail(ErrorCode::invalid_argument, "k is {}; 1 to {} is allowed", k_, kMaxK);
    k = lowering.ints({k_});
  }
  std::vector<ir::Value*> outputs = lowering.add_all(attributes, {in(0), k}, 2);
  outputs[1] = lowering.cast(outputs[1], type);
  return outputs;
}

bool CumulativeLayer::setOperation(nv::CumulativeOperation op) noexcept {
  return guarded(entry(), "ICumulativeLayer::setOperation", [&]() -> Result<> {
    LATHE_TRY(check_argument(op));
    operation_ = op, touch();
    return {};
  });
}

Result<std::vector<ir::Value*>> CumulativeLayer::lower(LayerLowering& lowering) {
  CumulativeAttrs attributes;
  attributes.exclusive = exclusive_;
  attributes.reverse = reverse_;
  return std::vector{lowering.add(attributes, {in(0), in(1)})};
}

void MatrixMultiplyLayer::setOperation(int32_t index, nv::MatrixOperation op) noexcept {
  guarded(entry(), "IMatrixMultiplyLayer::setOperation", [&]() -> Result<> {
    if (index != 0 && index != 1) return fail(ErrorCode::invalid_argument, "there is no input {}", index);
    LATHE_TRY(check_argument(op));
    operations_[index] = op, touch();
    return {};
  });
}

// A vector becomes a matrix with one row (left) or one column (right), and that dimension is taken out of the result.
Result<std::vector<ir::Value*>> MatrixMultiplyLayer::lower(LayerLowering& lowering) {
  ir::Value* operands[2] = {in(0), in(1)};
  Ints squeezed;
  for (int i = 0; i < 2; ++i) {
    if (operations_[i] != nv::MatrixOperation::kVECTOR) continue;
    const int64_t axis = i == 0 ? -2 : -1;
    operands[i] = lowering.unsqueeze(operands[i], {axis});
    squeezed.push_back(axis);
  }
  const bool same_ranks = broadcasts_ || operands[0]->rank() == operands[1]->rank();
  if (!same_ranks || std::min(operands[0]->rank(), operands[1]->rank()) < 2)
    return fail(ErrorCode::shape_mismatch, "operands have ranks {} and {} as matrices; equal ranks >= 2 are needed",
                operands[0]->rank(), operands[1]->rank());
  const auto transposes = [&](int i) { return operations_[i] == nv::MatrixOperation::kTRANSPOSE; };
  ir::Value* y = lowering.matmul(operands[0], operands[1], {.a = transposes(0), .b = transposes(1)});
  return std::vector{squeezed.empty() ? y : lowering.squeeze(y, squeezed)};
}

bool EinsumLayer::setEquation(const char* equation) noexcept {
  return guarded(entry(), "IEinsumLayer::setEquation", [&]() -> Result<> {
    LATHE_ASSIGN(std::string text, to_string(equation, "equation"));
    std::vector<int64_t> ranks;
    for (size_t i = 0; has(i); ++i)
      if (const std::optional<int> rank = rank_of_input(i)) ranks.push_back(*rank);
    if (ranks.size() == static_cast<size_t>(Layer::getNbInputs()))
      if (Result<Subscripts> parsed = parse_subscripts(text, ranks); !parsed)
        return in_layer(std::move(parsed).error());
    equation_ = std::move(text);
    touch();
    return {};
  });
}

Result<std::vector<ir::Value*>> EinsumLayer::lower(LayerLowering& lowering) {
  EinsumAttrs attributes;
  attributes.equation = equation_;
  std::vector<ir::Value*> inputs;
  for (int32_t i = 0; i < Layer::getNbInputs(); ++i) inputs.push_back(in(static_cast<size_t>(i)));
  return std::vector{lowering.add(attributes, std::move(inputs))};
}

Result<std::vector<ir::Value*>> NormalizationLayer::lower_groups(LayerLowering& lowering) {
  const int rank = in(0)->rank();
  const uint32_t spatial = rank < 2 ? 0 : (bit_of(rank) - 1) & ~3u;
  if (axes_ != spatial)
    return fail(ErrorCode::invalid_argument,
                "axes are {:#x}, but {} groups are normalised over all dimensions behind the channels, {:#x}", axes_,
                groups_, spatial);
  GroupNormalizationAttrs attributes;
  attributes.groups = groups_;
  attributes.epsilon = epsilon_;
  ir::Value* scale = lowering.reshape(in(1), {-1});
  ir::Value* bias = lowering.reshape(in(2), {-1});
  return std::vector{lowering.add(attributes, {in(0), scale, bias})};
}

Result<std::vector<ir::Value*>> NormalizationLayer::lower(LayerLowering& lowering) {
  if (groups_ != 1) return lower_groups(lowering);
  LATHE_ASSIGN(const Ints axes, axes_of(axes_, in(0)->rank()));
  if (axes.empty()) return fail(ErrorCode::invalid_argument, "at least one axis must be normalised");
  const auto beside = [&](size_t i) {
    if (!by_channel_) return in(i);
    Ints dims(axes.size(), 1);  // behind the channels
    dims.insert(dims.begin(), -1);
    return lowering.reshape(in(i), dims);
  };
  ir::Value* x = lowering.minus(in(0), lowering.reduce(ReduceOp::mean, in(0), axes));
  ir::Value* variance = lowering.reduce(ReduceOp::mean, lowering.mul(x, x), axes);
  ir::Value* deviation = lowering.unary(UnaryOp::sqrt, lowering.binary(ElementwiseOp::add, variance, epsilon_));
  ir::Value* y = lowering.mul(lowering.divide(x, deviation), beside(1));
  return std::vector{has(2) ? lowering.plus(y, beside(2)) : y};
}

nv::ISoftMaxLayer* NetworkDefinition::addSoftMax(nv::ITensor& input) noexcept {
  return add<SoftMaxLayer>("INetworkDefinition::addSoftMax", {&input});
}

nv::ILRNLayer* NetworkDefinition::addLRN(nv::ITensor& input, int64_t window, float alpha, float beta,
                                         float k) noexcept {
  return add<LRNLayer>("INetworkDefinition::addLRN", {&input}, window, alpha, beta, k);
}

nv::IReduceLayer* NetworkDefinition::addReduce(nv::ITensor& input, nv::ReduceOperation operation, uint32_t reduceAxes,
                                               bool keepDimensions) noexcept {
  return add<ReduceLayer>("INetworkDefinition::addReduce", {&input}, operation, reduceAxes, keepDimensions);
}

nv::ITopKLayer* NetworkDefinition::addTopK(nv::ITensor& input, nv::TopKOperation op, int32_t k,
                                           uint32_t reduceAxes) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addTopK", "addTopK() with a type of indices");
  deprecation.tell(reporter());
  return addTopKV2(input, op, k, reduceAxes, nv::DataType::kINT32);
}

nv::ITopKLayer* NetworkDefinition::addTopKV2(nv::ITensor& input, nv::TopKOperation op, int32_t k, uint32_t reduceAxes,
                                             nv::DataType indicesType) noexcept {
  return add<TopKLayer>("INetworkDefinition::addTopK", {&input}, op, k, reduceAxes, indicesType);
}

nv::ICumulativeLayer* NetworkDefinition::addCumulative(nv::ITensor& input, nv::ITensor& axis,
                                                       nv::CumulativeOperation operation, bool exclusive,
                                                       bool reverse) noexcept {
  return add<CumulativeLayer>("INetworkDefinition::addCumulative", {&input, &axis}, operation, exclusive, reverse);
}

nv::IMatrixMultiplyLayer* NetworkDefinition::addMatrixMultiply(nv::ITensor& input0, nv::MatrixOperation op0,
                                                               nv::ITensor& input1, nv::MatrixOperation op1) noexcept {
  return add<MatrixMultiplyLayer>("INetworkDefinition::addMatrixMultiply", {&input0, &input1}, op0, op1);
}

nv::IEinsumLayer* NetworkDefinition::addEinsum(nv::ITensor* const* inputs, int32_t nbInputs,
                                               const char* equation) noexcept {
  if (!inputs || nbInputs < 1 || !equation) return refuse<EinsumLayer>("INetworkDefinition::addEinsum");
  return add<EinsumLayer>("INetworkDefinition::addEinsum", std::span(inputs, static_cast<size_t>(nbInputs)), equation);
}

nv::INormalizationLayer* NetworkDefinition::addNormalization(nv::ITensor& input, nv::ITensor& scale, nv::ITensor& bias,
                                                             uint32_t axesMask) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addNormalization", "addNormalizationV2()");
  deprecation.tell(reporter());
  return add<NormalizationLayer>("INetworkDefinition::addNormalization", {&input, &scale, &bias}, axesMask, false);
}

nv::INormalizationLayer* NetworkDefinition::addNormalizationV2(nv::ITensor& input, nv::ITensor& scale,
                                                               nv::ITensor& bias, uint32_t axesMask) noexcept {
  return add<NormalizationLayer>("INetworkDefinition::addNormalizationV2", {&input, &scale, &bias}, axesMask, true);
}

}  // namespace lathe::api
