// SPDX-License-Identifier: Apache-2.0
// What builders and their configurations of generation 10 have besides, and weak typing, as Lathe's own settings say
// it.
#include <algorithm>

#include "api/builder/builder.h"
#include "api/builder/builder_config.h"
#include "api/builder/layer_types.h"
#include "api/deprecation.h"
#include "api/network/layer.h"
#include "api/network/network.h"

namespace lathe::api {

namespace {

using nv::BuilderFlag;

constexpr std::pair<BuilderFlag, const char*> kWeakFlags[] = {
    {BuilderFlag::kFP16, "kFP16"},
    {BuilderFlag::kBF16, "kBF16"},
    {BuilderFlag::kINT8, "kINT8"},
    {BuilderFlag::kFP8, "kFP8"},
    {BuilderFlag::kINT4, "kINT4"},
    {BuilderFlag::kFP4, "kFP4"},
    {BuilderFlag::kOBEY_PRECISION_CONSTRAINTS, "kOBEY_PRECISION_CONSTRAINTS"},
    {BuilderFlag::kPREFER_PRECISION_CONSTRAINTS, "kPREFER_PRECISION_CONSTRAINTS"}};

// By which name the passes know a layer: of several that one node of a model became, by the node's.
const std::string& known_name(const Layer& layer) {
  const std::vector<std::string>& origin = layer.nodes().back()->origin();
  return std::ranges::find(origin, layer.name()) != origin.end() ? layer.name() : origin.front();
}

Result<> pin_layer(const Layer& layer, std::vector<PrecisionPin>& pins) {
  if (layer.nodes().empty()) return {};  // a setting of a layer without nodes has nothing to speak of
  PrecisionPin pin;
  pin.layer = known_name(layer);
  if (layer.precisionIsSet()) {
    LATHE_ASSIGN(pin.precision, to_dtype(layer.getPrecision()));
  }
  for (const auto& [output, type] : layer.output_types()) {
    LATHE_ASSIGN(const DType dtype, to_dtype(type));
    pin.outputs.emplace_back(static_cast<size_t>(output), dtype);
  }
  if (pin.precision || !pin.outputs.empty()) pins.push_back(std::move(pin));
  return {};
}

}  // namespace

Result<OwnSettings> types_of(const BuilderConfig& settings, const NetworkDefinition& network) {
  OwnSettings types = settings;
  if (network.getFlag(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)) {
    for (const auto& [flag, name] : kWeakFlags)
      if (settings.has(flag))
        return fail(ErrorCode::config_invalid,
                    "BuilderFlag::{} is set, and the network is strongly typed: clear the flag, or create the network "
                    "without NetworkDefinitionCreationFlag::kSTRONGLY_TYPED",
                    name);
    return types;
  }
  if (settings.has(BuilderFlag::kBF16)) types.precision = DType::bf16, types.bf16_too = true;
  if (settings.has(BuilderFlag::kFP16)) types.precision = DType::f16;
  if (settings.has(BuilderFlag::kINT8)) types.int8 = true;
  if (settings.has(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS)) types.constraints = PrecisionConstraints::kPREFER;
  if (settings.has(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS)) types.constraints = PrecisionConstraints::kOBEY;
  for (const auto& layer : network.layers()) LATHE_TRY(pin_layer(*layer, types.layer_types));
  return types;
}

void BuilderConfig::setInt8Calibrator(nv::IInt8Calibrator* calibrator) noexcept {
  static constinit Deprecation deprecation("IBuilderConfig::setInt8Calibrator", "INetworkDefinition::addQuantize()");
  deprecation.tell(*core_->reporter);
  put(SettingId::IBuilderConfig_setInt8Calibrator, &Values::calibrator, calibrator);
}

void BuilderConfig::setAlgorithmSelector(nv::IAlgorithmSelector* selector) noexcept {
  put(SettingId::IBuilderConfig_setAlgorithmSelector, &Values::selector, selector);
}

bool BuilderConfig::setCalibrationProfile(const nv::IOptimizationProfile* profile) noexcept {
  static constinit Deprecation deprecation("IBuilderConfig::setCalibrationProfile",
                                           "INetworkDefinition::addQuantize()");
  deprecation.tell(*core_->reporter);
  return put(SettingId::IBuilderConfig_setCalibrationProfile, &Values::calibration_profile, profile);
}

void BuilderConfig::setQuantizationFlags(nv::QuantizationFlags flags) noexcept {
  static constinit Deprecation deprecation("IBuilderConfig::setQuantizationFlags", "INetworkDefinition::addQuantize()");
  deprecation.tell(*core_->reporter);
  Result<> check;
  if (flags >> nv::EnumMax<nv::QuantizationFlag>() != 0)
    check = fail(ErrorCode::invalid_argument, "{:#x} has bits of no QuantizationFlag", flags);
  put(SettingId::IBuilderConfig_setQuantizationFlags, &Values::quantization, flags, check);
}

void BuilderConfig::setQuantizationFlag(nv::QuantizationFlag flag) noexcept {
  setQuantizationFlags(values_.quantization | bit_of(flag));
}

void BuilderConfig::clearQuantizationFlag(nv::QuantizationFlag flag) noexcept {
  setQuantizationFlags(values_.quantization & ~bit_of(flag));
}

bool BuilderConfig::getQuantizationFlag(nv::QuantizationFlag flag) const noexcept {
  return (values_.quantization & bit_of(flag)) != 0;
}

namespace {

// Kernels of CPUs compute in float32 and int8; those of GPUs in all types.
bool targets_cpu() noexcept { return default_target().name.starts_with("cpu"); }

}  // namespace

bool Builder::platformHasFastFp16() const noexcept {
  static constinit Deprecation deprecation("IBuilder::platformHasFastFp16", "a strongly typed network");
  deprecation.tell(*core_->reporter);
  return guarded(core_->entry(), "IBuilder::platformHasFastFp16", false,
                 [&]() -> Result<bool> { return !targets_cpu(); });
}

bool Builder::platformHasFastInt8() const noexcept {
  static constinit Deprecation deprecation("IBuilder::platformHasFastInt8", "a strongly typed network");
  deprecation.tell(*core_->reporter);
  return true;
}

bool Builder::platformHasTf32() const noexcept {
  static constinit Deprecation deprecation("IBuilder::platformHasTf32", "BuilderFlag::kTF32");
  deprecation.tell(*core_->reporter);
  return guarded(core_->entry(), "IBuilder::platformHasTf32", false, [&]() -> Result<bool> { return !targets_cpu(); });
}

}  // namespace lathe::api
