// SPDX-License-Identifier: Apache-2.0
#include "plugin/v2_dynamic_plugin.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {
namespace {

namespace nv = nvinfer1;

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

int32_t DynamicV2Plugin::getOutputDataTypes(nv::DataType* types, int32_t outputs, const nv::DataType* given,
                                            int32_t inputs) const noexcept {
  for (int32_t i = 0; i < outputs; ++i) types[i] = plugin_.getOutputDataType(i, given, inputs);
  return 0;
}

int32_t DynamicV2Plugin::getOutputShapes(const nv::DimsExprs* given, int32_t inputs, const nv::DimsExprs*, int32_t,
                                         nv::DimsExprs* results, int32_t outputs, nv::IExprBuilder& builder) noexcept {
  for (int32_t i = 0; i < outputs; ++i) results[i] = plugin_.getOutputDimensions(i, given, inputs, builder);
  return 0;
}

bool DynamicV2Plugin::supportsFormatCombination(int32_t position, const nv::DynamicPluginTensorDesc* all,
                                                int32_t inputs, int32_t outputs) noexcept {
  const auto descs = plain(all, inputs + outputs, [](const auto& each) { return each.desc.dims; });
  return plugin_.supportsFormatCombination(position, descs.data(), inputs, outputs);
}

int32_t DynamicV2Plugin::configurePlugin(const nv::DynamicPluginTensorDesc* in, int32_t inputs,
                                         const nv::DynamicPluginTensorDesc* out, int32_t outputs) noexcept {
  plugin_.configurePlugin(in, inputs, out, outputs);
  return 0;
}

size_t DynamicV2Plugin::getWorkspaceSize(const nv::DynamicPluginTensorDesc* in, int32_t inputs,
                                         const nv::DynamicPluginTensorDesc* out, int32_t outputs) const noexcept {
  const auto largest = [](const nv::DynamicPluginTensorDesc& each) { return each.max; };
  const auto from = plain(in, inputs, largest), to = plain(out, outputs, largest);
  return plugin_.getWorkspaceSize(from.data(), inputs, to.data(), outputs);
}

int32_t DynamicV2Plugin::onShapeChange(const nv::PluginTensorDesc* in, int32_t inputs, const nv::PluginTensorDesc* out,
                                       int32_t outputs) noexcept {
  plugin_.configurePlugin(fixed(in, inputs).data(), inputs, fixed(out, outputs).data(), outputs);
  return 0;
}

int32_t DynamicV2Plugin::enqueue(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc* out,
                                 const void* const* from, void* const* to, void* workspace,
                                 cudaStream_t stream) noexcept {
  return plugin_.enqueue(in, out, from, to, workspace, stream);
}

}  // namespace lathe::plugin

#pragma GCC diagnostic pop
