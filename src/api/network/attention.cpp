// SPDX-License-Identifier: Apache-2.0
#include "api/network/attention.h"

#include "api/deprecation.h"
#include "api/network/network_add.h"
#include "api/network/operand_checks.h"

namespace lathe::api {
namespace {

bool is_packed(nv::AttentionIOForm form) { return form == nv::AttentionIOForm::kPACKED_NHD; }

CausalMask causal_mask(nv::CausalMaskKind kind) {
  return kind == nv::CausalMaskKind::kUPPER_LEFT    ? CausalMask::upper_left
         : kind == nv::CausalMaskKind::kLOWER_RIGHT ? CausalMask::lower_right
                                                    : CausalMask::none;
}

}  // namespace

Result<std::vector<ir::Value*>> AttentionInputLayer::lower(LayerLowering& lowering) {
  return std::vector{lowering.identity(in(0)), lowering.identity(in(1)), lowering.identity(in(2))};
}

template <class T>
bool AttentionOutputLayer::change_setting(T Settings::*setting, T value, const char* where) noexcept {
  return guarded(entry(), where, [&]() -> Result<> {
    if (Result<> checked = check_argument(value); !checked) return in_layer(std::move(checked).error());
    settings_.*setting = value, touch();
    return {};
  });
}

Result<> AttentionOutputLayer::check_operands() const {
  const int ranks[] = {is_packed(settings_.query_form) ? 3 : 4, is_packed(settings_.key_value_form) ? 3 : 4};
  for (size_t i = 0; i < 3; ++i) {
    LATHE_TRY(check_floats(in(i)));
    LATHE_TRY(check_same_type(in(i), in(0)));
    const int rank = ranks[i == 0 ? 0 : 1];
    if (in(i)->rank() != rank)
      return fail(ErrorCode::shape_mismatch, "{} of form {} are {}, but '{}' is {}",
                  i == 0 ? "queries" : "keys and values", rank == 3 ? "kPACKED_NHD" : "kPADDED_BHND",
                  rank == 3 ? "[tokens, heads, size]" : "[batch, heads, tokens, size]", in(i)->name(),
                  to_string(in(i)->shape()));
  }
  if (in(0)->shape().back() != in(1)->shape().back() && in(0)->shape().back().is_constant() &&
      in(1)->shape().back().is_constant())
    return fail(ErrorCode::shape_mismatch, "queries and keys have heads of one size, but '{}' is {} and '{}' is {}",
                in(0)->name(), to_string(in(0)->shape()), in(1)->name(), to_string(in(1)->shape()));
  return {};
}

Result<> AttentionOutputLayer::check_heads() const {
  const Expr &queries = in(0)->shape()[1], &keys = in(1)->shape()[1];
  if (queries == keys) return {};
  const std::optional<int64_t> many = queries.as_constant(), few = keys.as_constant();
  if (many && few && *few > 0 && *many % *few == 0) return {};
  return fail(ErrorCode::shape_mismatch,
              "the heads of the queries, {}, are a known multiple of those of the keys, {}, where they differ",
              queries.to_string(), keys.to_string());
}

Result<> AttentionOutputLayer::check_mask() const {
  if (!in(kMask)) return {};
  if (settings_.causal != nv::CausalMaskKind::kNONE)
    return fail(ErrorCode::invalid_argument, "it has a mask and is causal; give the mask alone, all in one");
  if (is_packed(settings_.query_form) || is_packed(settings_.key_value_form))
    return fail(ErrorCode::op_mode_unsupported,
                "a mask lies over [batch, heads, queries, keys], which packed sequences do not have; pad them, or take "
                "a causal mask");
  if (in(kMask)->dtype() != DType::boolean) LATHE_TRY(check_same_type(in(kMask), in(0)));
  if (in(kMask)->rank() == 4) return {};
  return fail(ErrorCode::shape_mismatch, "a mask is [batch, heads, queries, keys], but '{}' is {}", in(kMask)->name(),
              to_string(in(kMask)->shape()));
}

Result<> AttentionOutputLayer::check_lengths(Input lengths, nv::AttentionIOForm form, const char* what) const {
  const ir::Value* starts = in(lengths);
  if (!is_packed(form)) {
    if (!starts) return {};
    return fail(ErrorCode::invalid_argument, "{} are padded, so that they have no lengths; set the form kPACKED_NHD",
                what);
  }
  if (!starts)
    return fail(ErrorCode::invalid_argument, "{} are packed; where does each sequence begin? Set the lengths", what);
  LATHE_TRY(check_integers(starts, "lengths"));
  if (starts->rank() == 1) return {};
  return fail(ErrorCode::shape_mismatch, "lengths are one more than there are sequences, but '{}' is {}",
              starts->name(), to_string(starts->shape()));
}

Result<Attention> AttentionOutputLayer::how() const {
  Attention how;
  how.normalizes = settings_.normalization == nv::AttentionNormalizationOp::kSOFTMAX;
  const ir::Value* scale = in(kScale);
  if (settings_.quantized_type == nv::DataType::kFLOAT) {
    if (!scale) return how;
    return fail(ErrorCode::invalid_argument, "'{}' is the scale of which type? Call setNormalizationQuantizeToType()",
                scale->name());
  }
  if (settings_.quantized_type != nv::DataType::kFP8 && settings_.quantized_type != nv::DataType::kINT8)
    return fail(ErrorCode::type_mismatch, "normalised scores are quantised to kFP8 or kINT8");
  if (!scale)
    return fail(ErrorCode::invalid_argument, "normalised scores are quantised by which scale? Call {}",
                "setNormalizationQuantizeScale()");
  LATHE_TRY(check_same_type(scale, in(0)));
  if (volume(scale->shape()) != Expr(1))
    return fail(ErrorCode::shape_mismatch, "the scale is one number, but '{}' is {}", scale->name(),
                to_string(scale->shape()));
  LATHE_ASSIGN(how.weights_type, to_dtype(settings_.quantized_type));
  how.weights_scale = in(kScale);
  return how;
}

ir::Value* AttentionOutputLayer::lower_padded(LayerLowering& lowering, const Attention& how) const {
  ir::Value* mask = in(kMask) ? in(kMask) : visible_keys(lowering, in(0), in(1), causal_mask(settings_.causal));
  return attention(lowering, in(0), in(1), in(2), mask, how);
}

Result<std::vector<ir::Value*>> AttentionOutputLayer::lower(LayerLowering& lowering) {
  LATHE_TRY(check_operands());
  LATHE_TRY(check_heads());
  LATHE_TRY(check_mask());
  LATHE_TRY(check_lengths(kQueryLengths, settings_.query_form, "queries"));
  LATHE_TRY(check_lengths(kKeyValueLengths, settings_.key_value_form, "keys and values"));
  LATHE_ASSIGN(const Attention how, this->how());
  if (!in(kQueryLengths) && !in(kKeyValueLengths)) return std::vector{lower_padded(lowering, how)};
  return std::vector{packed_attention(lowering, {in(0), in(kQueryLengths)}, {in(1), in(kKeyValueLengths)}, in(2),
                                      causal_mask(settings_.causal), how)};
}

bool AttentionDefinition::setInput(int32_t index, nv::ITensor& input) noexcept {
  constexpr const char* kWhere = "IAttention::setInput";
  const auto i = static_cast<size_t>(index);
  if (i < 3) return input_->change_input(i, &input, kWhere);
  if (i < AttentionOutputLayer::kNumInputs) return output_->change_input(i, &input, kWhere);
  return guarded(network_.entry(), kWhere, [&]() -> Result<> {
    return fail(ErrorCode::invalid_argument, "attention '{}' has no input {}; the largest is {}", name_, index,
                AttentionOutputLayer::kNumInputs - 1);
  });
}

nv::ITensor* AttentionDefinition::getInput(int32_t index) const noexcept {
  return index >= 0 && index < 3 ? input_->input(static_cast<size_t>(index)) : layer().getInput(index);
}

nv::ITensor* AttentionDefinition::getOutput(int32_t index) const noexcept { return layer().getOutput(index); }

bool AttentionDefinition::setName(const char* name) noexcept {
  return guarded(network_.entry(), "IAttention::setName", [&]() -> Result<> {
    LATHE_ASSIGN(name_, to_string(name, "attention name"));
    return {};
  });
}

bool AttentionDefinition::setMetadata(const char* metadata) noexcept {
  layer().setMetadata(metadata);
  return metadata && std::string_view(layer().getMetadata()) == metadata;
}

bool AttentionDefinition::setNbRanks(int32_t nbRanks) noexcept { return layer().setNbRanks(nbRanks); }

bool AttentionDefinition::setDecomposable(bool decomposable) noexcept {
  return guarded(network_.entry(), "IAttention::setDecomposable", [&]() -> Result<> {
    decomposable_ = decomposable;
    return {};
  });
}

bool AttentionDefinition::setNormalizationOperation(nv::AttentionNormalizationOp op) noexcept {
  return output_->change_setting(&AttentionOutputLayer::Settings::normalization, op,
                                 "IAttention::setNormalizationOperation");
}

bool AttentionDefinition::setCausal(bool isCausal) noexcept {
  static constinit Deprecation deprecation("IAttention::setCausal", "setCausalKind()");
  deprecation.tell(network_.reporter());
  return output_->change_setting(&AttentionOutputLayer::Settings::causal,
                                 isCausal ? nv::CausalMaskKind::kUPPER_LEFT : nv::CausalMaskKind::kNONE,
                                 "IAttention::setCausal");
}

bool AttentionDefinition::setCausalKind(nv::CausalMaskKind kind) noexcept {
  return output_->change_setting(&AttentionOutputLayer::Settings::causal, kind, "IAttention::setCausalKind");
}

bool AttentionDefinition::setNormalizationQuantizeToType(nv::DataType type) noexcept {
  return output_->change_setting(&AttentionOutputLayer::Settings::quantized_type, type,
                                 "IAttention::setNormalizationQuantizeToType");
}

bool AttentionDefinition::setQueryForm(nv::AttentionIOForm form) noexcept {
  return output_->change_setting(&AttentionOutputLayer::Settings::query_form, form, "IAttention::setQueryForm");
}

bool AttentionDefinition::setKeyValueForm(nv::AttentionIOForm form) noexcept {
  return output_->change_setting(&AttentionOutputLayer::Settings::key_value_form, form, "IAttention::setKeyValueForm");
}

bool AttentionDefinition::setMask(nv::ITensor& mask) noexcept {
  return output_->change_input(AttentionOutputLayer::kMask, &mask, "IAttention::setMask");
}

bool AttentionDefinition::setNormalizationQuantizeScale(nv::ITensor& tensor) noexcept {
  return output_->change_input(AttentionOutputLayer::kScale, &tensor, "IAttention::setNormalizationQuantizeScale");
}

bool AttentionDefinition::setQueryLengths(nv::ITensor* lengths) noexcept {
  return output_->change_input(AttentionOutputLayer::kQueryLengths, lengths, "IAttention::setQueryLengths");
}

bool AttentionDefinition::setKeyValueLengths(nv::ITensor* lengths) noexcept {
  return output_->change_input(AttentionOutputLayer::kKeyValueLengths, lengths, "IAttention::setKeyValueLengths");
}

nv::IAttention* NetworkDefinition::addAttentionV2(nv::ITensor& query, nv::ITensor& key, nv::ITensor& value,
                                                  nv::AttentionNormalizationOp normOp,
                                                  nv::CausalMaskKind causalKind) noexcept {
  constexpr const char* kWhere = "INetworkDefinition::addAttention";
  auto* made =
      guarded(entry(), kWhere, static_cast<AttentionDefinition*>(nullptr), [&]() -> Result<AttentionDefinition*> {
        LATHE_TRY(check_argument(normOp));
        LATHE_TRY(check_argument(causalKind));
        std::string name = fmt::format("(Unnamed Attention* {})", attentions_.size());
        attentions_.push_back(std::make_unique<AttentionDefinition>(*this, std::move(name)));
        return attentions_.back().get();
      });
  if (!made) return nullptr;
  auto* input = add<AttentionInputLayer>(kWhere, {&query, &key, &value}, made);
  auto* output =
      input ? add<AttentionOutputLayer>(kWhere, {input->output(0), input->output(1), input->output(2)}, made) : nullptr;
  if (!output) return nullptr;
  made->set_layers(input, output);
  made->setNormalizationOperation(normOp);
  made->setCausalKind(causalKind);
  return made;
}

nv::IAttention* NetworkDefinition::addAttention(nv::ITensor& query, nv::ITensor& key, nv::ITensor& value,
                                                nv::AttentionNormalizationOp normOp, bool causal) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addAttention", "addAttentionV2()");
  deprecation.tell(reporter());
  return addAttentionV2(query, key, value, normOp,
                        causal ? nv::CausalMaskKind::kUPPER_LEFT : nv::CausalMaskKind::kNONE);
}

}  // namespace lathe::api
