// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/engine_inspector.h"

#include "api/plan_keys.h"
#include "api/runtime/execution_context.h"
#include "api/runtime/type_words.h"
#include "base/own_object.h"
#include "base/tactic_value.h"
#include "device/family.h"

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

std::string tactic_value_of(const plan::Step& step) { return fmt::format("{:#018x}", tactic_value(step.tactic)); }

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

EngineInspector::TensorInfo EngineInspector::look_at(plan::TensorId id) const {
  const plan::Plan& plan = core_->plan();
  const plan::TensorDesc& tensor = plan.tensors[id];
  const DeviceFamily* family = find_family(plan.target);
  TensorInfo info{tensor.name, family && family->is_host() ? "Host" : "Device", {}, tensor.dtype};
  if (context_) info.dims = static_cast<const ExecutionContext&>(*context_).inner().tensor_dims(id);
  if (info.dims.empty())
    for (const Expr& dim : tensor.dims) info.dims.push_back(dim.as_constant().value_or(-1));
  return info;
}

std::vector<EngineInspector::TensorInfo> EngineInspector::look_at(std::span<const plan::TensorId> ids) const {
  std::vector<TensorInfo> tensors;
  for (const plan::TensorId id : ids)
    if (id != plan::kNoTensor) tensors.push_back(look_at(id));
  return tensors;
}

Json EngineInspector::to_json(std::span<const TensorInfo> tensors) {
  Json list = Json::array();
  for (const TensorInfo& tensor : tensors) {
    Json dims = Json::array();
    for (const int64_t dim : tensor.dims) dims.push_back(dim);
    list.push_back(json_object({{"Name", tensor.name},
                                {"Location", tensor.location},
                                {"Dimensions", std::move(dims)},
                                {"Format/Datatype", inspector_word(tensor.type)},
                                {"Type", std::string(name_of(tensor.type))}}));
  }
  return list;
}

std::string EngineInspector::to_line(std::span<const TensorInfo> tensors) {
  std::string line;
  for (const TensorInfo& tensor : tensors) {
    std::string dims;
    for (const int64_t dim : tensor.dims) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    line += fmt::format("{} {{ Name: {}, Location: {}, Dimensions: [{}], Format/Datatype: {} }}",
                        line.empty() ? "" : ",", tensor.name, tensor.location, dims, inspector_word(tensor.type));
  }
  return line;
}

// First what TensorRT tells, in its words.
Json EngineInspector::to_json(size_t layer) const {
  const plan::Step& step = core_->plan().steps[layer];
  if (verbosity_of(core_->plan()) != nv::ProfilingVerbosity::kDETAILED) return step.name;
  return json_object({{"Name", step.name},
                      {"LayerType", type_of(step)},
                      {"Inputs", to_json(look_at(step.inputs))},
                      {"Outputs", to_json(look_at(step.outputs))},
                      {"TacticName", step.tactic},
                      {"TacticValue", tactic_value_of(step)},
                      {"StreamId", step.stream},
                      {"Metadata", metadata_of(core_->plan(), step)},
                      {"Depth", core_->engine->places()[layer].depth},
                      {"NetworkLayers", step.origin},
                      {"Program", std::string(step.program())},
                      {"Milliseconds", step.milliseconds}});
}

// Steps of blocks are indented.
std::string EngineInspector::to_line(size_t layer) const {
  const plan::Step& step = core_->plan().steps[layer];
  const std::string indent(2 * size_t{core_->engine->places()[layer].depth}, ' ');
  if (verbosity_of(core_->plan()) != nv::ProfilingVerbosity::kDETAILED) return fmt::format("{}{}\n", indent, step.name);
  return fmt::format(
      "{}Name: {}, LayerType: {}, Inputs: [{}], Outputs: [{}], TacticName: {}, TacticValue: {}, StreamId: {}, "
      "Metadata: {}\n",
      indent, step.name, type_of(step), to_line(look_at(step.inputs)), to_line(look_at(step.outputs)), step.tactic,
      tactic_value_of(step), step.stream, metadata_of(core_->plan(), step));
}

bool EngineInspector::setExecutionContext(const nv::IExecutionContext* context) noexcept {
  return guarded({reporter_, use_}, "IEngineInspector::setExecutionContext", [&]() -> Result<> {
    if (context) {
      LATHE_ASSIGN(const ExecutionContext* const own, own_object<const ExecutionContext>(*context));
      if (&own->core() != core_.get()) return fail(ErrorCode::invalid_argument, "the context is of another engine");
    }
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
    if (verbosity_of(plan) == nv::ProfilingVerbosity::kNONE) return "";
    const auto layer = static_cast<size_t>(layerIndex);
    text_ = format == nv::LayerInformationFormat::kJSON ? to_json(layer).indented() : to_line(layer);
    return text_.c_str();
  });
}

const char* EngineInspector::getEngineInformation(nv::LayerInformationFormat format) const noexcept {
  return guarded({reporter_, use_}, "IEngineInspector::getEngineInformation", "", [&]() -> Result<const char*> {
    LATHE_TRY(check_format(format));
    const plan::Plan& plan = core_->plan();
    const size_t layers = verbosity_of(plan) == nv::ProfilingVerbosity::kNONE ? 0 : plan.steps.size();
    if (format == nv::LayerInformationFormat::kJSON) {
      Json list = Json::array(), bindings = Json::array();
      for (size_t i = 0; i < layers; ++i) list.push_back(to_json(i));
      for (size_t i = 0; i < core_->num_io(); ++i) bindings.push_back(plan.bindings[i].name);
      text_ = json_object({{"Layers", std::move(list)}, {"Bindings", std::move(bindings)}}).indented();
    } else {
      text_ = "Layers:\n";
      for (size_t i = 0; i < layers; ++i) text_ += to_line(i);
      text_ += "\nBindings:\n";
      for (size_t i = 0; i < core_->num_io(); ++i) text_ += plan.bindings[i].name + "\n";
    }
    return text_.c_str();
  });
}

}  // namespace lathe::api
