// SPDX-License-Identifier: Apache-2.0
// TensorRT's standard plugins (onnx/plugins.def) as objects: programs ask the registry for their creators, and add what
// these make to networks. There each becomes ops of the graph, as its node in a model does: no plan holds one, and by
// themselves they neither run nor tell of sizes and formats.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>

#include "NvInferRuntime.h"
#include "api/network/layer.h"
#include "onnx/plugins.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {

// Which plugin, and its fields, as a node of a model would have them.
class StandardPluginNode {
 public:
  // Refuses fields that the plugin does not have, and those of other types.
  static Result<std::shared_ptr<const StandardPluginNode>> make(const onnx::StandardPlugin& plugin, int version,
                                                                const nv::PluginFieldCollection* fields);
  StandardPluginNode(const StandardPluginNode&) = delete;
  StandardPluginNode& operator=(const StandardPluginNode&) = delete;

  const onnx::StandardPlugin& plugin() const { return plugin_; }
  const char* version() const { return version_.c_str(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  // Adds its ops to the graph. Each warning is told once, `told` being those that were.
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering, const std::vector<ir::Value*>& inputs, Log& log,
                                        std::set<std::string>& told) const;

 private:
  StandardPluginNode(const onnx::StandardPlugin& plugin, int version);
  Result<> add(const nv::PluginField& field);
  Result<> count_outputs();

  const onnx::StandardPlugin& plugin_;
  std::string version_;
  std::deque<std::string> texts_;  // which stay where they are
  onnx::NodeProto node_;
};
using StandardNode = std::shared_ptr<const StandardPluginNode>;

class StandardPluginV2 final : public nv::IPluginV2 {
 public:
  explicit StandardPluginV2(StandardNode node) : node_(std::move(node)) {}
  const StandardNode& node() const { return node_; }

  const char* getPluginType() const noexcept override { return node_->plugin().name; }
  const char* getPluginVersion() const noexcept override { return node_->version(); }
  int32_t getNbOutputs() const noexcept override { return static_cast<int32_t>(node_->num_outputs()); }
  nv::Dims getOutputDimensions(int32_t, const nv::Dims*, int32_t) noexcept override { return {-1, {}}; }
  bool supportsFormat(nv::DataType, nv::PluginFormat) const noexcept override { return false; }
  void configureWithFormat(const nv::Dims*, int32_t, const nv::Dims*, int32_t, nv::DataType, nv::PluginFormat,
                           int32_t) noexcept override {}
  int32_t initialize() noexcept override { return 0; }
  void terminate() noexcept override {}
  size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
  int32_t enqueue(int32_t, const void* const*, void* const*, void*, cudaStream_t) noexcept override { return -1; }
  size_t getSerializationSize() const noexcept override { return 0; }
  void serialize(void*) const noexcept override {}
  void destroy() noexcept override { delete this; }
  nv::IPluginV2* clone() const noexcept override { return new (std::nothrow) StandardPluginV2(node_); }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return ""; }

 private:
  StandardNode node_;
};

class StandardPluginV3 final : public nv::IPluginV3, public nv::IPluginV3OneCore {
 public:
  explicit StandardPluginV3(StandardNode node) : node_(std::move(node)) {}
  const StandardNode& node() const { return node_; }

  nv::InterfaceInfo getInterfaceInfo() const noexcept override { return IPluginV3::getInterfaceInfo(); }
  nv::IPluginCapability* getCapabilityInterface(nv::PluginCapabilityType type) noexcept override {
    return type == nv::PluginCapabilityType::kCORE ? static_cast<IPluginV3OneCore*>(this) : nullptr;
  }
  nv::IPluginV3* clone() noexcept override { return new (std::nothrow) StandardPluginV3(node_); }
  const char* getPluginName() const noexcept override { return node_->plugin().name; }
  const char* getPluginVersion() const noexcept override { return node_->version(); }
  const char* getPluginNamespace() const noexcept override { return ""; }

 private:
  StandardNode node_;
};

// Whether the registry has it from here.
bool is_standard(const nv::IPluginCreatorInterface& creator);

// `Plugin` is StandardPluginV2 or V3: the layer's own, for the application to look at.
template <class Plugin, class Interface, class Implementation>
class StandardPluginLayer final : public LayerOf<Interface, Implementation> {
 public:
  StandardPluginLayer(NetworkDefinition& network, nv::LayerType type, const char* name, std::vector<TensorView*> inputs,
                      const StandardNode& node)
      : LayerOf<Interface, Implementation>(network, type, name, std::move(inputs)), plugin_(node) {}
  auto getPlugin() noexcept -> std::remove_reference_t<decltype(std::declval<Interface&>().getPlugin())>& override {
    return plugin_;
  }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override {
    std::vector<ir::Value*> inputs;
    for (size_t i = 0; i < static_cast<size_t>(this->Layer::getNbInputs()); ++i) inputs.push_back(this->in(i));
    return plugin_.node()->lower(lowering, inputs, this->network_.reporter().log(), told_);
  }
  size_t num_outputs() const override { return plugin_.node()->num_outputs(); }

  Plugin plugin_;
  std::set<std::string> told_;
};
using StandardV2Layer = StandardPluginLayer<StandardPluginV2, nv::IPluginV2Layer, nv::apiv::VPluginV2Layer>;
using StandardV3Layer = StandardPluginLayer<StandardPluginV3, nv::IPluginV3Layer, nv::apiv::VPluginV3Layer>;

}  // namespace lathe::api

#pragma GCC diagnostic pop
