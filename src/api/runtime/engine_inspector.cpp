// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/engine_inspector.h"

#include "api/plan_keys.h"
#include "api/runtime/execution_context.h"
#include "device/family.h"
#include "plan/blocks.h"

namespace lathe::api {
namespace {

// What setMetadata() said of the layers that became this step.
std::string metadata_of(const plan::Plan& plan, const plan::Step& step) {
  constexpr const char* kSeparator = "\x1e";  // the record separator, as in TensorRT
  std::string text;
  for (const std::string& layer : step.origin)
    if (const std::string* metadata = find_key(plan, kLayerMetadataKey, layer))
      text += (text.empty() ? "" : kSeparator) + *metadata;
  return text;
}

Result<> check_format(nv::LayerInformationFormat format) {
  if (format == nv::LayerInformationFormat::kJSON || format == nv::LayerInformationFormat::kONELINE) return {};
  return fail(ErrorCode::invalid_argument, "there is no format {}", static_cast<int>(format));
}

// What a step does, for the eye: the op that is evaluated, else what runs it.
std::string type_of(const plan::Step& step) {
  if (step.is<plan::Evaluation>()) return step.op;
  return std::string(step.is<plan::Copy>() ? step.kind() : step.kernel());
}

// Steps of blocks are indented.
std::string one_line(const plan::Plan& plan, const plan::Step& step, uint32_t depth) {
  const std::string indent(2 * size_t{depth}, ' ');
  if (verbosity_of(plan) != nv::ProfilingVerbosity::kDETAILED) return fmt::format("{}{}\n", indent, step.name);
  return fmt::format("{}[{}] {} {}\n", indent, type_of(step), step.name, step.tactic);
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
  const std::string* value = find_key(plan, kVerbosityKey);
  for (const auto verbosity : {nv::ProfilingVerbosity::kNONE, nv::ProfilingVerbosity::kDETAILED})
    if (value && *value == name_of(verbosity)) return verbosity;
  return nv::ProfilingVerbosity::kLAYER_NAMES_ONLY;
}

Json EngineInspector::describe(plan::TensorId id) const {
  if (id == plan::kNoTensor) return nullptr;
  const plan::Plan& plan = core_->plan();
  const plan::TensorDesc& tensor = plan.tensors[id];
  Dims shown;
  if (context_) shown = static_cast<const ExecutionContext&>(*context_).inner().tensor_dims(id);
  const DeviceFamily* family = find_family(plan.target);
  Json dims = Json::array();
  for (size_t d = 0; d < tensor.dims.size(); ++d)
    dims.push_back(shown.empty() ? tensor.dims[d].as_constant().value_or(-1) : shown[d]);
  return json_object({{"Name", tensor.name},
                      {"Location", family && family->is_host() ? "Host" : "Device"},
                      {"Dimensions", std::move(dims)},
                      {"Format/Datatype", std::string(name_of(tensor.dtype))}});
}

Json EngineInspector::describe(const plan::Step& step) const {
  Json inputs = Json::array(), outputs = Json::array();
  for (plan::TensorId id : step.inputs) inputs.push_back(describe(id));
  for (plan::TensorId id : step.outputs) outputs.push_back(describe(id));
  return json_object({{"Name", step.name},
                      {"LayerType", type_of(step)},
                      {"Inputs", std::move(inputs)},
                      {"Outputs", std::move(outputs)},
                      {"TacticName", step.tactic},
                      {"Origin", step.origin},
                      {"Program", std::string(step.program())},
                      {"Milliseconds", step.milliseconds},
                      {"Metadata", metadata_of(core_->plan(), step)}});
}

Json EngineInspector::layer(const plan::Step& step) const {
  if (verbosity_of(core_->plan()) == nv::ProfilingVerbosity::kDETAILED) return describe(step);
  return step.name;
}

bool EngineInspector::setExecutionContext(const nv::IExecutionContext* context) noexcept {
  return guarded({reporter_, use_}, "IEngineInspector::setExecutionContext", [&]() -> Result<> {
    if (context && &static_cast<const ExecutionContext&>(*context).core() != core_.get())
      return fail(ErrorCode::invalid_argument, "the context is of another engine");
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
    text_ = format == nv::LayerInformationFormat::kJSON ? layer(step).indented() : one_line(plan, step, 0);
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
        for (const plan::Step& step : plan.steps) layers.push_back(layer(step));
      for (size_t i = 0; i < core_->num_io(); ++i) bindings.push_back(plan.bindings[i].name);
      text_ = json_object({{"Layers", std::move(layers)}, {"Bindings", std::move(bindings)}}).indented();
    } else {
      text_ = "Layers:\n";
      LATHE_ASSIGN(const std::vector<plan::StepPlace> places, plan::find_places(plan.steps));
      for (size_t i = 0; shown && i < places.size(); ++i) text_ += one_line(plan, plan.steps[i], places[i].depth);
      text_ += "\nBindings:\n";
      for (size_t i = 0; i < core_->num_io(); ++i) text_ += plan.bindings[i].name + "\n";
    }
    return text_.c_str();
  });
}

}  // namespace lathe::api
