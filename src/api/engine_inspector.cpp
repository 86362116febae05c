// SPDX-License-Identifier: Apache-2.0
#include "api/engine_inspector.h"

#include "api/json.h"

namespace lathe::api {
namespace {

Json describe(const plan::Plan& plan, plan::TensorId id) {
  if (id == plan::kNoTensor) return nullptr;
  const plan::Tensor& tensor = plan.tensors[id];
  Json dims = Json::array();
  for (const Expr& dim : tensor.dims) dims.push_back(dim.as_constant().value_or(-1));
  return json_object({{"Name", tensor.name},
                      {"Location", plan.target.starts_with("cpu") ? "Host" : "Device"},
                      {"Dimensions", std::move(dims)},
                      {"Format/Datatype", std::string(name_of(tensor.dtype))}});
}

Json describe(const plan::Plan& plan, const plan::Step& step) {
  Json inputs = Json::array(), outputs = Json::array();
  for (plan::TensorId id : step.inputs) inputs.push_back(describe(plan, id));
  for (plan::TensorId id : step.outputs) outputs.push_back(describe(plan, id));
  return json_object({{"Name", step.name},
                      {"LayerType", step.kernel == "eval" ? step.op : step.kernel},
                      {"Inputs", std::move(inputs)},
                      {"Outputs", std::move(outputs)},
                      {"TacticName", step.tactic},
                      {"Origin", step.origin},
                      {"Program", step.program},
                      {"Milliseconds", step.milliseconds},
                      {"Metadata", ""}});
}

Json layer(const plan::Plan& plan, const plan::Step& step) {
  if (verbosity_of(plan) == nv::ProfilingVerbosity::kDETAILED) return describe(plan, step);
  return step.name;
}

Result<> check_format(nv::LayerInformationFormat format) {
  if (format == nv::LayerInformationFormat::kJSON || format == nv::LayerInformationFormat::kONELINE) return {};
  return fail(ErrorCode::invalid_argument, "there is no format {}", static_cast<int>(format));
}

std::string one_line(const plan::Plan& plan, const plan::Step& step) {
  if (verbosity_of(plan) != nv::ProfilingVerbosity::kDETAILED) return step.name + "\n";
  return fmt::format("[{}] {} {}\n", step.kernel == "eval" ? step.op : step.kernel, step.name, step.tactic);
}

}  // namespace

const char* name_of(nv::ProfilingVerbosity verbosity) {
  switch (verbosity) {
    case nv::ProfilingVerbosity::kNONE:
      return "none";
    case nv::ProfilingVerbosity::kDETAILED:
      return "detailed";
    default:
      return "layer_names_only";
  }
}

nv::ProfilingVerbosity verbosity_of(const plan::Plan& plan) {
  for (const auto& [key, value] : plan.metadata) {
    if (key != kVerbosityKey) continue;
    for (const auto verbosity : {nv::ProfilingVerbosity::kNONE, nv::ProfilingVerbosity::kDETAILED})
      if (value == name_of(verbosity)) return verbosity;
  }
  return nv::ProfilingVerbosity::kLAYER_NAMES_ONLY;
}

bool EngineInspector::setExecutionContext(const nv::IExecutionContext* context) noexcept {
  constexpr auto kId = SettingId::IEngineInspector_setExecutionContext;
  return guarded(reporter_, setting_of(kId).name, [&]() -> Result<> {
    if (context) LATHE_TRY(notices_.consult(kId, reporter_.log()));
    context_ = context;
    return {};
  });
}

const char* EngineInspector::getLayerInformation(int32_t layerIndex, nv::LayerInformationFormat format) const noexcept {
  return guarded({reporter_, use_}, "IEngineInspector::getLayerInformation", "", [&]() -> Result<const char*> {
    LATHE_TRY(check_format(format));
    const plan::Plan& plan = core_->plan();
    if (layerIndex < 0 || static_cast<size_t>(layerIndex) >= plan.steps.size())
      return fail(ErrorCode::invalid_argument, "layer {} does not exist: the engine has {}", layerIndex,
                  plan.steps.size());
    const plan::Step& step = plan.steps[static_cast<size_t>(layerIndex)];
    if (verbosity_of(plan) == nv::ProfilingVerbosity::kNONE) return "";
    text_ = format == nv::LayerInformationFormat::kJSON ? layer(plan, step).indented() : one_line(plan, step);
    return text_.c_str();
  });
}

const char* EngineInspector::getEngineInformation(nv::LayerInformationFormat format) const noexcept {
  return guarded({reporter_, use_}, "IEngineInspector::getEngineInformation", "", [&]() -> Result<const char*> {
    LATHE_TRY(check_format(format));
    const plan::Plan& plan = core_->plan();
    const bool shown = verbosity_of(plan) != nv::ProfilingVerbosity::kNONE;
    if (format == nv::LayerInformationFormat::kJSON) {
      Json layers = Json::array(), bindings = Json::array();
      if (shown)
        for (const plan::Step& step : plan.steps) layers.push_back(layer(plan, step));
      for (const plan::Binding& binding : plan.bindings) bindings.push_back(binding.name);
      text_ = json_object({{"Layers", std::move(layers)}, {"Bindings", std::move(bindings)}}).indented();
    } else {
      text_ = "Layers:\n";
      if (shown)
        for (const plan::Step& step : plan.steps) text_ += one_line(plan, step);
      text_ += "\nBindings:\n";
      for (const plan::Binding& binding : plan.bindings) text_ += binding.name + "\n";
    }
    return text_.c_str();
  });
}

}  // namespace lathe::api
