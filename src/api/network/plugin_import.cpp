// SPDX-License-Identifier: Apache-2.0
#include "api/network/plugin_import.h"

#include <algorithm>

#include "api/network/standard_plugins.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {
namespace {

// Attributes that say which plugin it is, as exporters for TensorRT write them.
constexpr const char *kVersion = "plugin_version", *kSpace = "plugin_namespace";
constexpr const char* kShapeInputs = "tensorrt_plugin_shape_input_indices";
constexpr size_t kMostCharacters = 1024;  // of names and versions, with the zero behind them

std::string text_of(const onnx::NodeProto& node, const char* name, const char* fallback) {
  const onnx::Attribute* attribute = node.find(name);
  return attribute && attribute->kind == onnx::AttributeKind::string ? std::string(attribute->string) : fallback;
}

// What the creator says of a field; null = it lists fields, and that is none of them.
const nv::PluginField* find_field(const nv::PluginFieldCollection& fields, std::string_view name) {
  for (int32_t i = 0; i < fields.nbFields; ++i)
    if (fields.fields[i].name && fields.fields[i].name == name) return &fields.fields[i];
  return nullptr;
}

// The plugin's inputs, those that are shape inputs last.
Result<std::vector<ir::Value*>> inputs_of(const onnx::NodeContext& context, const Ints& shape_inputs) {
  std::vector<ir::Value*> data, shapes;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has(i)) return fail(ErrorCode::model_invalid, "input {} is omitted; plugins are given all", i);
    const bool is_shape =
        std::find(shape_inputs.begin(), shape_inputs.end(), static_cast<int64_t>(i)) != shape_inputs.end();
    (is_shape ? shapes : data).push_back(context.input(i));
  }
  if (shapes.size() != shape_inputs.size())
    return fail(ErrorCode::model_invalid, "attribute '{}' names {} inputs, of which {} are there and differ",
                kShapeInputs, shape_inputs.size(), shapes.size());
  data.insert(data.end(), shapes.begin(), shapes.end());
  return data;
}

}  // namespace

bool PluginImport::knows(const onnx::NodeProto& node) {
  const std::string name(node.op_type), version = text_of(node, kVersion, "1");
  if (std::max(name.size(), version.size()) >= kMostCharacters) return false;  // which the registry would report
  // Standard plugins are ops of the graph without a creator, too.
  const auto* creator = core_->registry.getCreator(name.c_str(), version.c_str(), text_of(node, kSpace, "").c_str());
  return creator && !is_standard(*creator);
}

bool PluginImport::replaces(const onnx::NodeProto& node) { return overrides_ || node.find(kSpace); }

bool PluginImport::knows(std::string_view op_type) {
  int32_t count = 0;
  nv::IPluginCreatorInterface* const* creators = core_->registry.getAllCreatorsRecursive(&count);
  return std::any_of(creators, creators + count, [&](nv::IPluginCreatorInterface* each) {
    const char* name = nullptr;
    if (plugin::makes_v3_plugins(*each))
      name = static_cast<nv::IPluginCreatorV3One*>(each)->getPluginName();
    else if (plugin::makes_v2_plugins(*each))
      name = static_cast<nv::IPluginCreator*>(each)->getPluginName();
    return name && name == op_type;
  });
}

std::shared_ptr<HeldPlugin> PluginImport::find(const std::string& node) const {
  const auto found = made_.find(node);
  return found == made_.end() ? nullptr : found->second;
}

void PluginImport::warn(const std::string& text) {
  if (warned_.insert(text).second) reporter_->log().write(Severity::warning, text);
}

void PluginImport::import(onnx::NodeContext& context) {
  if (const Result<> imported = import_into(context); !imported) context.set_error(imported.error());
}

// Those attributes that nobody has read yet.
Result<PluginFields> PluginImport::fields_of(onnx::NodeContext& context, const nv::PluginFieldCollection* listed,
                                             const plugin::Who& who) {
  const bool lists = listed && listed->nbFields > 0 && listed->fields;
  PluginFields fields;
  for (const std::string_view name : context.unread_attributes()) {
    const onnx::Attribute* const attribute = context.attribute(name);
    const nv::PluginField* const field = lists ? find_field(*listed, name) : nullptr;
    if (lists && !field)
      warn(fmt::format("{}: attribute '{}' is none of the fields that its creator lists, and has no effect", who.text(),
                       name));
    else if (attribute)
      LATHE_TRY(fields.add(*attribute, field ? std::optional(field->type) : std::nullopt));
  }
  for (int32_t i = 0; lists && i < listed->nbFields; ++i)
    if (const char* const name = listed->fields[i].name; name && !context.has_attribute(name))
      warn(fmt::format("{}: the node has no attribute for field '{}'; the creator's default holds", who.text(), name));
  return fields;
}

Result<std::shared_ptr<HeldPlugin>> PluginImport::create(onnx::NodeContext& context,
                                                         nv::IPluginCreatorInterface& creator, const plugin::Who& who,
                                                         size_t data_inputs) {
  auto* const v3 = plugin::makes_v3_plugins(creator) ? static_cast<nv::IPluginCreatorV3One*>(&creator) : nullptr;
  auto* const v2 = plugin::makes_v2_plugins(creator) ? static_cast<nv::IPluginCreator*>(&creator) : nullptr;
  if (!v3 && !v2) {
    const char* const kind = creator.getInterfaceInfo().kind;
    return fail(ErrorCode::op_unsupported, "{}: its creator is a '{}'; a '{}' or a '{}' is wanted", who.text(),
                kind ? kind : "", plugin::kCreatorKind, plugin::kCreatorKindV2);
  }
  LATHE_ASSIGN(const PluginFields fields, fields_of(context, v3 ? v3->getFieldNames() : v2->getFieldNames(), who));
  const nv::PluginFieldCollection collection = fields.collection();
  const auto null = [&]() -> Result<std::shared_ptr<HeldPlugin>> {
    return plugin::refuse(ErrorCode::attribute_invalid, who, "createPlugin", "gives null for the fields [{}]",
                          fields.names());
  };
  if (v3) {
    std::unique_ptr<nv::IPluginV3> made(v3->createPlugin(who.layer.c_str(), &collection, nv::TensorRTPhase::kBUILD));
    return made ? HeldPlugin::of(std::move(made), nullptr, data_inputs, who.layer) : null();
  }
  nv::IPluginV2* const made = v2->createPlugin(who.layer.c_str(), &collection);
  if (!made) return null();
  LATHE_ASSIGN(std::unique_ptr<plugin::V2Plugin> owned, plugin::V2Plugin::own(made, who.layer));
  if (const char* const space = v2->getPluginNamespace()) made->setPluginNamespace(space);
  plugin::V2Plugin* const plugin = owned.get();
  return HeldPlugin::of(std::move(owned), plugin, data_inputs, who.layer);
}

Result<> PluginImport::import_into(onnx::NodeContext& context) {
  const std::string version = context.string(kVersion, "1"), space = context.string(kSpace, "");
  const Ints shape_inputs = context.integers(kShapeInputs);
  const plugin::Who who{context.name(), std::string(context.op()), version};
  nv::IPluginCreatorInterface* const creator =
      core_->registry.getCreator(who.name.c_str(), version.c_str(), space.c_str());
  if (!creator)  // the node is in a function, whose call gives the version
    return fail(ErrorCode::op_unsupported, "{}: the registry has no creator of that version in namespace '{}'",
                who.text(), space);
  LATHE_ASSIGN(std::vector<ir::Value*> inputs, inputs_of(context, shape_inputs));
  LATHE_ASSIGN(const auto held, create(context, *creator, who, inputs.size() - shape_inputs.size()));
  if (context.num_outputs() > held->outputs)
    return fail(ErrorCode::model_invalid, "{}: the node has {} outputs, and the plugin {}", who.text(),
                context.num_outputs(), held->outputs);
  LATHE_ASSIGN(const PluginAttrs attributes, held->describe(context.name(), inputs));
  const std::vector<ir::Value*> results = context.add_all(attributes, std::move(inputs), held->outputs);
  if (context.failed()) return {};
  ir::Node& node = *results.front()->producer();
  for (int i = 1; made_.contains(node.name()); ++i)  // graphs have names of their own, and this has those of all
    context.graph().rename(&node, fmt::format("{}_{}", context.name(), i));
  made_[node.name()] = held;
  if (std::string library = core_->registry.library_of(*creator); !library.empty())
    libraries_.insert(std::move(library));
  for (size_t i = 0; i < context.num_outputs(); ++i) context.set_output(i, results[i]);
  return {};
}

}  // namespace lathe::api
