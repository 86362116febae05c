// SPDX-License-Identifier: Apache-2.0
// Nodes of ONNX models that are plugins: their creators are found in the builder's registry or those above it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "api/network/builder_core.h"
#include "api/network/held_plugin.h"
#include "api/network/plugin_fields.h"
#include "onnx/import.h"
#include "onnx/node_context.h"

namespace lathe::api {

class PluginImport final : public onnx::CustomOperators {
 public:
  // `log` hears of attributes that are no fields, and of fields that are no attributes: once each.
  // `overrides`: creators go before importers of the same name also where the node names no namespace of plugins.
  PluginImport(std::shared_ptr<BuilderCore> core, std::shared_ptr<Reporter> reporter, bool overrides = false)
      : core_(std::move(core)), reporter_(std::move(reporter)), overrides_(overrides) {}

  void begin() override { made_.clear(), libraries_.clear(); }
  bool knows(const onnx::NodeProto& node) override;
  bool replaces(const onnx::NodeProto& node) override;
  bool knows(std::string_view op_type);  // in any version and namespace
  void import(onnx::NodeContext& context) override;
  // The plugin libraries whose creators the import has called.
  const std::set<std::string>& libraries() const { return libraries_; }
  // The plugin of the node of that name; null where it is none.
  std::shared_ptr<HeldPlugin> find(const std::string& node) const;

 private:
  Result<PluginFields> fields_of(onnx::NodeContext& context, const nv::PluginFieldCollection* listed,
                                 const plugin::Who& who);
  Result<std::shared_ptr<HeldPlugin>> create(onnx::NodeContext& context, nv::IPluginCreatorInterface& creator,
                                             const plugin::Who& who, size_t data_inputs);
  Result<> import_into(onnx::NodeContext& context);
  void warn(const std::string& text);

  std::shared_ptr<BuilderCore> core_;
  std::shared_ptr<Reporter> reporter_;
  bool overrides_;
  std::map<std::string, std::shared_ptr<HeldPlugin>> made_;  // by the node's name
  std::set<std::string> libraries_;
  std::set<std::string> warned_;
};

}  // namespace lathe::api
