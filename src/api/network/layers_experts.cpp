// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_experts.h"

#include <cmath>

#include "api/network/block_quantization.h"
#include "api/network/network_add.h"
#include "api/network/operand_checks.h"
#include "compose/mixture_of_experts.h"

namespace lathe::api {
namespace {

using Op = ElementwiseOp;

// Extents agree where both are known.
bool fits(const ir::Value* value, const Shape& wanted) {
  if (value->shape().size() != wanted.size()) return false;
  for (size_t d = 0; d < wanted.size(); ++d) {
    const Expr& have = value->shape()[d];
    if (have.is_constant() && wanted[d].is_constant() && have != wanted[d]) return false;
  }
  return true;
}

}  // namespace

Result<> MoELayer::take(size_t first, std::initializer_list<nv::ITensor*> tensors) {
  std::vector<TensorView*> views;
  for (nv::ITensor* tensor : tensors) {
    LATHE_ASSIGN(views.emplace_back(), network_.own(tensor));
  }
  for (TensorView* view : views) read(first++, view);
  return {};
}

void MoELayer::setGatedWeights(nv::ITensor& fcGateWeights, nv::ITensor& fcUpWeights, nv::ITensor& fcDownWeights,
                               nv::MoEActType activationType) noexcept {
  guarded(entry(), "IMoELayer::setGatedWeights", [&]() -> Result<> {
    if (Result<> checked = check_argument(activationType); !checked) return in_layer(std::move(checked).error());
    LATHE_TRY(take(kGate, {&fcGateWeights, &fcUpWeights, &fcDownWeights}));
    activation_ = activationType;
    return {};
  });
}

void MoELayer::setGatedBiases(nv::ITensor& fcGateBiases, nv::ITensor& fcUpBiases, nv::ITensor& fcDownBiases) noexcept {
  guarded(entry(), "IMoELayer::setGatedBiases", [&] {
    return take(kGateBias, {&fcGateBiases, &fcUpBiases, &fcDownBiases});
  });
}

void MoELayer::setQuantizationStatic(nv::ITensor& fcDownActivationScale, nv::DataType dataType) noexcept {
  guarded(entry(), "IMoELayer::setQuantizationStatic", [&]() -> Result<> {
    if (Result<> checked = check_argument(dataType); !checked) return in_layer(std::move(checked).error());
    LATHE_TRY(take(kScale, {&fcDownActivationScale}));
    quantized_type_ = dataType, quantization_ = Quantization::given;
    return {};
  });
}

void MoELayer::setQuantizationDynamicDblQ(nv::ITensor& fcDownActivationDblQScale, nv::DataType dataType,
                                          const nv::Dims& blockShape, nv::DataType dynQOutputScaleType) noexcept {
  guarded(entry(), "IMoELayer::setQuantizationDynamicDblQ", [&]() -> Result<> {
    const auto check = [&]() -> Result<> {
      LATHE_TRY(check_argument(dataType));
      LATHE_TRY(check_argument(blockShape));
      return check_argument(dynQOutputScaleType);
    };
    if (Result<> checked = check(); !checked) return in_layer(std::move(checked).error());
    LATHE_TRY(take(kScale, {&fcDownActivationDblQScale}));
    quantized_type_ = dataType, block_ = blockShape, scale_type_ = dynQOutputScaleType;
    quantization_ = Quantization::found;
    return {};
  });
}

void MoELayer::setSwigluParams(float limit, float alpha, float beta) noexcept {
  change(limit, [&] { limit_ = limit, alpha_ = alpha, beta_ = beta; });
}

Result<> MoELayer::check_tokens() const {
  LATHE_TRY(check_floats(in(kHidden)));
  LATHE_TRY(check_integers(in(kChosen), "chosen experts"));
  LATHE_TRY(check_same_type(in(kScores), in(kHidden)));
  const Shape& x = in(kHidden)->shape();
  if (x.size() != 3 || in(kChosen)->rank() != 3 || !fits(in(kChosen), {x[0], x[1], in(kChosen)->shape()[2]}) ||
      !fits(in(kScores), in(kChosen)->shape()))
    return fail(
        ErrorCode::shape_mismatch,
        "hidden states are [batch, tokens, hidden], chosen experts and their scores [batch, tokens, choices], but "
        "they are {}, {} and {}",
        to_string(x), to_string(in(kChosen)->shape()), to_string(in(kScores)->shape()));
  return {};
}

Result<> MoELayer::check_weights_given() const {
  if (!in(kGate) || !in(kUp) || !in(kDown))
    return fail(ErrorCode::graph_invalid, "its experts have no weights; call setGatedWeights()");
  if (in(kGate)->rank() != 3)
    return fail(ErrorCode::shape_mismatch, "weights are [experts, hidden, inner], but '{}' is {}", in(kGate)->name(),
                to_string(in(kGate)->shape()));
  const Expr &count = in(kGate)->shape()[0], &inner = in(kGate)->shape()[2], &hidden = in(kHidden)->shape()[2];
  const Shape wanted[] = {{count, hidden, inner}, {count, hidden, inner}, {count, inner, hidden},
                          {count, inner},         {count, inner},         {count, hidden}};
  for (size_t i = kGate; i <= kDownBias; ++i) {
    if (!in(i)) continue;
    LATHE_TRY(check_same_type(in(i), in(kHidden)));
    if (!fits(in(i), wanted[i - kGate]))
      return fail(ErrorCode::shape_mismatch, "'{}' is {}, but must be {}", in(i)->name(), to_string(in(i)->shape()),
                  to_string(wanted[i - kGate]));
  }
  if (!in(kGateBias) == !in(kUpBias) && !in(kUpBias) == !in(kDownBias)) return {};
  return fail(ErrorCode::graph_invalid, "it has some biases and not all three; call setGatedBiases()");
}

ir::Value* MoELayer::combined(LayerLowering& lowering, ir::Value* gate, ir::Value* up) const {
  if (activation_ == nv::MoEActType::kNONE) return lowering.mul(gate, up);
  ir::Value* opened = lowering.activation(ActivationOp::sigmoid, lowering.binary(Op::mul, gate, double{alpha_}));
  if (std::isfinite(limit_)) {
    gate = lowering.binary(Op::min, gate, double{limit_});
    up = lowering.binary(Op::max, lowering.binary(Op::min, up, double{limit_}), -double{limit_});
  }
  if (beta_ != 0) up = lowering.binary(Op::add, up, double{beta_});
  return lowering.mul(lowering.mul(gate, opened), up);
}

// What the down projection sees: numbers rounded to the levels. Blocks are of [1, rows, inner], a row for each choice.
Result<ir::Value*> MoELayer::quantized(LayerLowering& lowering, ir::Value* inner, ir::Value* numbers) const {
  ir::Value* scale = in(kScale);
  if (quantization_ == Quantization::none) {
    if (!scale) return inner;
    return fail(ErrorCode::invalid_argument, "'{}' is the scale of what? Call setQuantizationStatic()", scale->name());
  }
  LATHE_TRY(check_floats(scale));
  if (quantization_ == Quantization::found) {
    if (volume(scale->shape()) != Expr(1))
      return fail(ErrorCode::shape_mismatch, "the scale of scales is one number, but '{}' is {}", scale->name(),
                  to_string(scale->shape()));
    FlattenAttrs flatten;
    flatten.axis = 3;
    ir::Value* rows = lowering.unsqueeze(lowering.add(flatten, {inner}), {0});
    LATHE_ASSIGN(const DynamicQuantization how, block_quantization(*rows, block_, quantized_type_, scale_type_));
    rows = dequantize_blocks(lowering, dynamic_quantize(lowering, rows, scale, how), scale, how, inner->dtype());
    return lowering.reshape(rows, lowering.shape_of(inner), true);
  }
  if (quantized_type_ != nv::DataType::kFP8 && quantized_type_ != nv::DataType::kINT8)
    return fail(ErrorCode::type_mismatch, "with a scale that is given, it quantises to kFP8 or kINT8");
  const bool single = volume(scale->shape()) == Expr(1);
  const Expr& experts = in(kDown)->shape()[0];
  if (!single && !fits(scale, {experts}))
    return fail(ErrorCode::shape_mismatch, "the scale is one number, or one for each of {} experts, but '{}' is {}",
                experts.to_string(), scale->name(), to_string(scale->shape()));
  scale = lowering.cast(scale, inner->dtype());
  scale = single ? lowering.reshape(scale, Ints{}) : lowering.unsqueeze(lowering.gather(scale, numbers, 0), {-1});
  QuantizeAttrs levels;
  LATHE_ASSIGN(levels.to, to_dtype(quantized_type_));
  DequantizeAttrs floats;
  floats.to = inner->dtype();
  return lowering.add(floats, {lowering.add(levels, {inner, scale}), scale});
}

Result<std::vector<ir::Value*>> MoELayer::lower(LayerLowering& lowering) {
  LATHE_TRY(check_tokens());
  LATHE_TRY(check_weights_given());
  if (std::isnan(limit_) || limit_ <= 0 || !std::isfinite(alpha_) || !std::isfinite(beta_))
    return fail(ErrorCode::invalid_argument, "the limit {} must be positive, alpha {} and beta {} finite", limit_,
                alpha_, beta_);
  std::optional<Error> refused;
  Experts experts{in(kGate), in(kUp), in(kDown), in(kGateBias), in(kUpBias), in(kDownBias)};
  experts.combine = [&](ir::Value* gate, ir::Value* up, ir::Value* numbers) {
    ir::Value* inner = combined(lowering, gate, up);
    if (lowering.failed()) return inner;
    Result<ir::Value*> rounded = quantized(lowering, inner, numbers);
    if (rounded) return *rounded;
    refused = std::move(rounded).error();
    return inner;
  };
  ir::Value* y = mixture_of_experts(lowering, in(kHidden), in(kChosen), in(kScores), experts);
  if (refused) return fail(*refused);
  return std::vector{y};
}

nv::IMoELayer* NetworkDefinition::addMoE(nv::ITensor& hiddenStates, nv::ITensor& selectedExpertsForTokens,
                                         nv::ITensor& scoresForSelectedExperts) noexcept {
  return add<MoELayer>("INetworkDefinition::addMoE",
                       {&hiddenStates, &selectedExpertsForTokens, &scoresForSelectedExperts});
}

}  // namespace lathe::api
