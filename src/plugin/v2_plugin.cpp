// SPDX-License-Identifier: Apache-2.0
#include "plugin/v2_plugin.h"

#include <cstring>

#include "plugin/v2_dynamic_plugin.h"
#include "plugin/v2_static_plugin.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {
namespace {

namespace nv = nvinfer1;

constexpr const char* kField = "serialized";  // bytes
constexpr size_t kMostBytes = size_t{1} << 30;

}  // namespace

Result<std::unique_ptr<V2Plugin>> V2Plugin::own(nv::IPluginV2* plugin, const std::string& layer) {
  const auto kind = (plugin->getTensorRTVersion() >> 24) & ~nv::kPLUGIN_VERSION_PYTHON_BIT;
  switch (static_cast<nv::PluginVersion>(kind)) {
    case nv::PluginVersion::kV2:
      return std::make_unique<StaticV2Plugin>(*plugin);
    case nv::PluginVersion::kV2_EXT:
      return std::make_unique<StaticV2Plugin>(static_cast<nv::IPluginV2Ext&>(*plugin));
    case nv::PluginVersion::kV2_IOEXT:
      return std::make_unique<StaticV2Plugin>(static_cast<nv::IPluginV2IOExt&>(*plugin));
    case nv::PluginVersion::kV2_DYNAMICEXT:
      return std::make_unique<DynamicV2Plugin>(static_cast<nv::IPluginV2DynamicExt&>(*plugin));
    default:
      break;
  }
  const char* const name = plugin->getPluginType();
  Error error{
      ErrorCode::op_unsupported,
      fmt::format("plugin '{}' of layer '{}' is of class {} of the V2 family, which does not exist: derive it from "
                  "IPluginV3",
                  name ? name : "", layer, kind),
      {}};
  plugin->destroy();
  return fail(std::move(error));
}

Result<std::unique_ptr<V2Plugin>> V2Plugin::deserialize(nv::IPluginCreator& creator, const Who& who,
                                                        const nv::PluginFieldCollection& fields) {
  if (fields.nbFields != 1 || !fields.fields[0].name || std::strcmp(fields.fields[0].name, kField) != 0)
    return fail(ErrorCode::plan_target, "{}: the plan holds a plugin of V3, and the creator of that name is of V2",
                who.text());
  nv::IPluginV2* const made =
      creator.deserializePlugin(who.layer.c_str(), fields.fields[0].data, static_cast<size_t>(fields.fields[0].length));
  if (!made)
    return refuse(ErrorCode::plan_target, who, "deserializePlugin", "gives null for the {} bytes that the plan holds",
                  fields.fields[0].length);
  return own(made, who.layer);
}

V2Plugin::~V2Plugin() {
  if (initialized_) plugin_.terminate();
  if (attached_) ext_->detachFromContext();
  plugin_.destroy();
}

nv::IPluginV3* V2Plugin::clone() noexcept {
  nv::IPluginV2* const twin = plugin_.clone();
  if (!twin) return nullptr;
  Result<std::unique_ptr<V2Plugin>> owned = own(twin, {});
  return owned ? owned->release() : nullptr;
}

nv::IPluginCapability* V2Plugin::getCapabilityInterface(nv::PluginCapabilityType type) noexcept {
  switch (type) {
    case nv::PluginCapabilityType::kCORE:
      return static_cast<IPluginV3OneCore*>(this);
    case nv::PluginCapabilityType::kBUILD:
      return static_cast<IPluginV3OneBuild*>(this);
    case nv::PluginCapabilityType::kRUNTIME:
      return static_cast<IPluginV3OneRuntime*>(this);
  }
  return nullptr;
}

const char* V2Plugin::getPluginNamespace() const noexcept {
  const char* const space = plugin_.getPluginNamespace();
  return space ? space : "";
}

nv::IPluginV3* V2Plugin::attachToContext(nv::IPluginResourceContext* context) noexcept {
  std::unique_ptr<V2Plugin> twin(static_cast<V2Plugin*>(clone()));
  if (!twin) return nullptr;
  if (twin->ext_) {
    twin->ext_->attachToContext(nullptr, nullptr, context->getGpuAllocator());
    twin->attached_ = true;
  }
  twin->initialized_ = twin->plugin_.initialize() == 0;
  return twin->initialized_ ? twin.release() : nullptr;
}

const nv::PluginFieldCollection* V2Plugin::getFieldsToSerialize() noexcept {
  const size_t size = plugin_.getSerializationSize();
  if (size > kMostBytes) return nullptr;
  bytes_.assign(size + 1, {});  // never without memory
  plugin_.serialize(bytes_.data());
  field_ = nv::PluginField(kField, bytes_.data(), nv::PluginFieldType::kUNKNOWN, static_cast<int32_t>(size));
  fields_ = {1, &field_};
  return &fields_;
}

}  // namespace lathe::plugin

#pragma GCC diagnostic pop
