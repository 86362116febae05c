// SPDX-License-Identifier: Apache-2.0
#include "api/network/standard_plugins.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "api/network/plugin_fields.h"
#include "api/own_settings.h"
#include "base/own_object.h"
#include "onnx/plugin_field.h"
#include "ops/rules.h"
#include "plugin/registry.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // creators of the V2 family

namespace lathe::api {
namespace {

using onnx::AttributeKind;

nv::PluginFieldType type_of(const onnx::PluginField& field) {
  if (field.type == 'c') return nv::PluginFieldType::kCHAR;
  return field.type == 'f' || field.type == 'F' ? nv::PluginFieldType::kFLOAT32 : nv::PluginFieldType::kINT32;
}

// The fields of a plugin, as its creator lists them.
class FieldNames {
 public:
  explicit FieldNames(const onnx::StandardPlugin& plugin) {
    for (const onnx::PluginField& field : onnx::to_plugin_fields(plugin.fields)) {
      const std::string& name = names_.emplace_back(field.name);
      fields_.emplace_back(name.c_str(), nullptr, type_of(field), field.is_single() ? 1 : 0);
    }
    collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
  }
  const nv::PluginFieldCollection* get() const { return &collection_; }

 private:
  std::deque<std::string> names_;
  std::vector<nv::PluginField> fields_;
  nv::PluginFieldCollection collection_{};
};

template <class Interface>
class StandardCreator : public Interface {
 public:
  StandardCreator(const onnx::StandardPlugin& plugin, int version)
      : plugin_(plugin), version_(version), version_text_(std::to_string(version)), fields_(plugin) {}
  const char* getPluginName() const noexcept override { return plugin_.name; }
  const char* getPluginVersion() const noexcept override { return version_text_.c_str(); }
  const char* getPluginNamespace() const noexcept override { return ""; }
  const nv::PluginFieldCollection* getFieldNames() noexcept override { return fields_.get(); }

 protected:
  template <class Plugin>
  Plugin* make(const nv::PluginFieldCollection* fields) {
    return guarded(silent(), "createPlugin", static_cast<Plugin*>(nullptr), [&]() -> Result<Plugin*> {
      LATHE_ASSIGN(StandardNode node, StandardPluginNode::make(plugin_, version_, fields));
      return new Plugin(std::move(node));
    });
  }

 private:
  const onnx::StandardPlugin& plugin_;
  int version_;
  std::string version_text_;
  FieldNames fields_;
};

class StandardCreatorV2 final : public StandardCreator<nv::IPluginCreator> {
 public:
  using StandardCreator::StandardCreator;
  nv::IPluginV2* createPlugin(const char*, const nv::PluginFieldCollection* fields) noexcept override {
    return make<StandardPluginV2>(fields);
  }
  nv::IPluginV2* deserializePlugin(const char*, const void*, size_t) noexcept override { return nullptr; }
  void setPluginNamespace(const char*) noexcept override {}
};

class StandardCreatorV3 final : public StandardCreator<nv::IPluginCreatorV3One> {
 public:
  using StandardCreator::StandardCreator;
  nv::IPluginV3* createPlugin(const char*, const nv::PluginFieldCollection* fields,
                              nv::TensorRTPhase) noexcept override {
    return make<StandardPluginV3>(fields);
  }
};

// The creators of all versions, in the registry of the process from the start, and for ever: static objects of programs
// may use them at their end.
bool register_all() {
  plugin::Registry& registry = plugin::global_registry();
  for (const onnx::StandardPlugin& plugin : onnx::standard_plugins())
    for (int version = 1; version <= plugin.newest(); ++version) {
      nv::IPluginCreatorInterface* creator = nullptr;
      if (version > plugin.v2)
        creator = new StandardCreatorV3(plugin, version);
      else
        creator = new StandardCreatorV2(plugin, version);
      registry.add_standard(*creator);
    }
  return true;
}

[[maybe_unused]] const bool g_registered = register_all();

}  // namespace

bool is_standard(const nv::IPluginCreatorInterface& creator) {
  return is_own<const StandardCreatorV2>(creator) || is_own<const StandardCreatorV3>(creator);
}

StandardPluginNode::StandardPluginNode(const onnx::StandardPlugin& plugin, int version)
    : plugin_(plugin), version_(std::to_string(version)) {
  node_.op_type = plugin_.name;
  onnx::Attribute& attribute = node_.attributes.emplace_back();
  attribute.name = "plugin_version";
  attribute.kind = AttributeKind::string;
  attribute.string = version_;
}

Result<StandardNode> StandardPluginNode::make(const onnx::StandardPlugin& plugin, int version,
                                              const nv::PluginFieldCollection* fields) {
  const std::shared_ptr<StandardPluginNode> node(new StandardPluginNode(plugin, version));
  static constexpr nv::PluginFieldCollection kNone{};
  if (!fields) fields = &kNone;
  if (fields->nbFields < 0 || (fields->nbFields > 0 && !fields->fields))
    return fail(ErrorCode::invalid_argument, "there are {} fields at {}", fields->nbFields,
                static_cast<const void*>(fields->fields));
  for (int32_t i = 0; i < fields->nbFields; ++i) LATHE_TRY(node->add(fields->fields[i]));
  LATHE_TRY(node->count_outputs());
  return StandardNode(node);
}

Result<> StandardPluginNode::count_outputs() {
  constexpr int64_t kMost = 64;
  const size_t outputs = plugin_.outputs_of(version_[0] - '0');
  int64_t count = outputs > 0 ? static_cast<int64_t>(outputs) : 6;
  for (const onnx::Attribute& attribute : node_.attributes)
    if (outputs == 0 && attribute.name == "numLayers") count = attribute.integer;
  if (count < 1 || count > kMost)
    return fail(ErrorCode::attribute_invalid, "field 'numLayers' of plugin '{}' is {}, expected 1 to {}", plugin_.name,
                count, kMost);
  node_.outputs.assign(static_cast<size_t>(count), "wanted");
  return {};
}

Result<> StandardPluginNode::add(const nv::PluginField& field) {
  const std::string_view name = field.name ? field.name : "";
  const std::vector<onnx::PluginField> known = onnx::to_plugin_fields(plugin_.fields);
  const auto found = std::ranges::find(known, name, &onnx::PluginField::name);
  if (found == known.end()) {
    std::vector<std::string_view> names;
    for (const onnx::PluginField& each : known) names.push_back(each.name);
    return fail(ErrorCode::attribute_invalid, "plugin '{}' has no field '{}'; it has {}", plugin_.name, name,
                fmt::join(names, " "));
  }
  const auto refuse = [&] {
    return fail(ErrorCode::attribute_invalid, "field '{}' of plugin '{}' has type {} and length {}", name, plugin_.name,
                static_cast<int>(field.type), field.length);
  };
  // Programs leave the length of a single number at 0, as PluginField has it.
  const bool has_room = found->is_single() ? field.length == 0 || field.length == 1 : field.length >= 0;
  const int64_t length = found->is_single() ? 1 : field.length;
  if (!has_room || (length > 0 && !field.data)) return refuse();
  onnx::Attribute& attribute = node_.attributes.emplace_back();
  attribute.name = found->name;
  if (found->type == 'c') {
    if (field.type != nv::PluginFieldType::kCHAR) return refuse();
    const std::string_view text(static_cast<const char*>(field.data), static_cast<size_t>(field.length));
    attribute.kind = AttributeKind::string;
    attribute.string = texts_.emplace_back(text.substr(0, text.find('\0')));
    return {};
  }
  const std::optional<DType> dtype = element_type(field.type);
  const bool is_real = found->type == 'f' || found->type == 'F';
  if (!dtype || is_storage_only(*dtype) || is_floating(*dtype) != is_real) return refuse();
  LATHE_ASSIGN(const Tensor empty, Tensor::allocate(*dtype, {0}));
  const Tensor numbers = length > 0 ? Tensor::view(*dtype, {length}, field.data, nullptr) : empty;
  if (is_real) {
    for (const double value : to_doubles(numbers)) attribute.reals.push_back(static_cast<float>(value));
  } else {
    attribute.integers = to_ints(numbers);
  }
  if (!found->is_single()) {
    attribute.kind = is_real ? AttributeKind::reals : AttributeKind::integers;
  } else if (is_real) {
    attribute.kind = AttributeKind::real;
    attribute.real = attribute.reals[0];
  } else {
    attribute.kind = AttributeKind::integer;
    attribute.integer = attribute.integers[0];
  }
  return {};
}

Result<std::vector<ir::Value*>> StandardPluginNode::lower(LayerLowering& lowering,
                                                          const std::vector<ir::Value*>& inputs, Log& log,
                                                          std::set<std::string>& told) const {
  std::vector<onnx::Slot> slots;
  for (ir::Value* input : inputs) slots.push_back(onnx::to_slot(input));
  onnx::Branches branches;
  constexpr bool kNarrows = false;
  onnx::Int64Weights int64(kNarrows);
  onnx::NodeContext context(node_, lowering.name(), 1, lowering.graph(), std::move(slots), nullptr, {}, branches,
                            int64);
  onnx::import_standard_plugin(plugin_.name, context);
  lowering.adopt(context);
  for (const std::string& warning : context.warnings())
    if (told.insert(warning).second)
      log.print(Severity::warning, "layer '{}', plugin '{}': {}", lowering.name(), plugin_.name, warning);
  if (context.error()) return fail(with_context(*context.error(), fmt::format("plugin '{}'", plugin_.name)));
  std::vector<ir::Value*> outputs;
  for (const onnx::Slot& output : context.outputs()) outputs.push_back(output.value);
  return outputs;
}

}  // namespace lathe::api
