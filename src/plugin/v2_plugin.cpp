// SPDX-License-Identifier: Apache-2.0
#include "plugin/v2_plugin.h"

#include <cstring>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {
namespace {

namespace nv = nvinfer1;

constexpr const char* kField = "serialized";  // bytes
constexpr size_t kMostBytes = size_t{1} << 30;

// What a V2 plugin is told of tensors, with the dims that `dims` picks.
template <class Dims>
std::vector<nv::PluginTensorDesc> plain(const nv::DynamicPluginTensorDesc* all, int32_t count, Dims&& dims) {
  std::vector<nv::PluginTensorDesc> descs;
  for (int32_t i = 0; i < count; ++i) {
    descs.push_back(all[i].desc);
    descs.back().dims = dims(all[i]);
  }
  return descs;
}

// Of known dims.
std::vector<nv::DynamicPluginTensorDesc> fixed(const nv::PluginTensorDesc* all, int32_t count) {
  std::vector<nv::DynamicPluginTensorDesc> descs;
  for (int32_t i = 0; i < count; ++i) descs.push_back({all[i], all[i].dims, all[i].dims, all[i].dims});
  return descs;
}

}  // namespace

Result<std::unique_ptr<V2Plugin>> V2Plugin::own(nv::IPluginV2* plugin, const std::string& layer) {
  const auto kind = (plugin->getTensorRTVersion() >> 24) & ~nv::kPLUGIN_VERSION_PYTHON_BIT;
  if (kind == static_cast<int32_t>(nv::PluginVersion::kV2_DYNAMICEXT))
    return std::unique_ptr<V2Plugin>(new V2Plugin(static_cast<nv::IPluginV2DynamicExt&>(*plugin)));
  const char* const name = plugin->getPluginType();
  Error error{
      ErrorCode::op_unsupported,
      fmt::format("plugin '{}' of layer '{}' is an {}, of networks with an implicit batch dimension, which do not "
                  "exist any more: derive it from IPluginV3, or from IPluginV2DynamicExt",
                  name ? name : "", layer,
                  kind == 0   ? "IPluginV2"
                  : kind == 1 ? "IPluginV2Ext"
                  : kind == 2 ? "IPluginV2IOExt"
                              : "unknown class of the V2 family"),
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
  if (attached_) plugin_.detachFromContext();
  plugin_.destroy();
}

nv::IPluginV3* V2Plugin::clone() noexcept {
  nv::IPluginV2DynamicExt* const twin = plugin_.clone();
  return twin ? new (std::nothrow) V2Plugin(*twin) : nullptr;
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

int32_t V2Plugin::getOutputDataTypes(nv::DataType* types, int32_t outputs, const nv::DataType* given,
                                     int32_t inputs) const noexcept {
  for (int32_t i = 0; i < outputs; ++i) types[i] = plugin_.getOutputDataType(i, given, inputs);
  return 0;
}

int32_t V2Plugin::getOutputShapes(const nv::DimsExprs* given, int32_t inputs, const nv::DimsExprs*, int32_t,
                                  nv::DimsExprs* results, int32_t outputs, nv::IExprBuilder& builder) noexcept {
  for (int32_t i = 0; i < outputs; ++i) results[i] = plugin_.getOutputDimensions(i, given, inputs, builder);
  return 0;
}

bool V2Plugin::supportsFormatCombination(int32_t position, const nv::DynamicPluginTensorDesc* all, int32_t inputs,
                                         int32_t outputs) noexcept {
  const auto descs = plain(all, inputs + outputs, [](const auto& each) { return each.desc.dims; });
  return plugin_.supportsFormatCombination(position, descs.data(), inputs, outputs);
}

int32_t V2Plugin::configurePlugin(const nv::DynamicPluginTensorDesc* in, int32_t inputs,
                                  const nv::DynamicPluginTensorDesc* out, int32_t outputs) noexcept {
  plugin_.configurePlugin(in, inputs, out, outputs);
  return 0;
}

size_t V2Plugin::getWorkspaceSize(const nv::DynamicPluginTensorDesc* in, int32_t inputs,
                                  const nv::DynamicPluginTensorDesc* out, int32_t outputs) const noexcept {
  const auto largest = [](const nv::DynamicPluginTensorDesc& each) { return each.max; };
  const auto from = plain(in, inputs, largest), to = plain(out, outputs, largest);
  return plugin_.getWorkspaceSize(from.data(), inputs, to.data(), outputs);
}

int32_t V2Plugin::onShapeChange(const nv::PluginTensorDesc* in, int32_t inputs, const nv::PluginTensorDesc* out,
                                int32_t outputs) noexcept {
  plugin_.configurePlugin(fixed(in, inputs).data(), inputs, fixed(out, outputs).data(), outputs);
  return 0;
}

int32_t V2Plugin::enqueue(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc* out, const void* const* from,
                          void* const* to, void* workspace, cudaStream_t stream) noexcept {
  return plugin_.enqueue(in, out, from, to, workspace, stream);
}

nv::IPluginV3* V2Plugin::attachToContext(nv::IPluginResourceContext* context) noexcept {
  std::unique_ptr<V2Plugin> twin(static_cast<V2Plugin*>(clone()));
  if (!twin) return nullptr;
  twin->plugin_.attachToContext(nullptr, nullptr, context->getGpuAllocator());
  twin->attached_ = true;
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
