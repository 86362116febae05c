// SPDX-License-Identifier: Apache-2.0
#include "plugin/v2_static_plugin.h"

#include <algorithm>
#include <memory>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {
namespace {

namespace nv = nvinfer1;
using nv::PluginVersion;

constexpr int32_t kBatch = 1;

// Tensors as the older classes are told of them.
struct Tensors {
  Tensors(const nv::DynamicPluginTensorDesc* all, int32_t count)
      : are_broadcast(new bool[static_cast<size_t>(count)]()) {
    for (int32_t i = 0; i < count; ++i) {
      descs.push_back(all[i].desc);
      descs.back().dims = all[i].opt;
      dims.push_back(all[i].opt);
      types.push_back(all[i].desc.type);
    }
  }
  int32_t count() const { return static_cast<int32_t>(descs.size()); }

  std::vector<nv::PluginTensorDesc> descs;
  std::vector<nv::Dims> dims;
  std::vector<nv::DataType> types;
  std::unique_ptr<bool[]> are_broadcast;  // none is
};

bool is_float(nv::DataType type) { return type == nv::DataType::kFLOAT || type == nv::DataType::kHALF; }

}  // namespace

const char* StaticV2Plugin::fixed_sizes_class() const {
  return kind_ == PluginVersion::kV2       ? "IPluginV2"
         : kind_ == PluginVersion::kV2_EXT ? "IPluginV2Ext"
                                           : "IPluginV2IOExt";
}

// One type is a plain IPluginV2's, of all its tensors.
int32_t StaticV2Plugin::getOutputDataTypes(nv::DataType* types, int32_t outputs, const nv::DataType* given,
                                           int32_t inputs) const noexcept {
  for (int32_t i = 0; i < outputs; ++i) {
    if (kind_ != PluginVersion::kV2)
      types[i] = ext().getOutputDataType(i, given, inputs);
    else
      types[i] = inputs > 0 ? given[0] : nv::DataType::kFLOAT;
  }
  return 0;
}

int32_t StaticV2Plugin::getOutputShapes(const nv::DimsExprs* given, int32_t inputs, const nv::DimsExprs*, int32_t,
                                        nv::DimsExprs* results, int32_t outputs, nv::IExprBuilder& builder) noexcept {
  std::vector<nv::Dims> dims(static_cast<size_t>(inputs));
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i].nbDims = given[i].nbDims;
    for (int32_t d = 0; d < dims[i].nbDims; ++d) dims[i].d[d] = given[i].d[d]->getConstantValue();
  }
  for (int32_t i = 0; i < outputs; ++i) {
    const nv::Dims result = plugin_.getOutputDimensions(i, dims.data(), inputs);
    results[i].nbDims = result.nbDims;
    for (int32_t d = 0; d < std::min(result.nbDims, nv::Dims::MAX_DIMS + 0); ++d)
      results[i].d[d] = builder.constant(result.d[d]);
  }
  return 0;
}

// The classes before IPluginV2IOExt say of one format which types of floats they take in it, and their other tensors
// are row-major.
bool StaticV2Plugin::supportsFormatCombination(int32_t position, const nv::DynamicPluginTensorDesc* all, int32_t inputs,
                                               int32_t outputs) noexcept {
  if (kind_ == PluginVersion::kV2_IOEXT) {
    const Tensors tensors(all, inputs + outputs);
    return io_ext().supportsFormatCombination(position, tensors.descs.data(), inputs, outputs);
  }
  const nv::PluginTensorDesc& own = all[position].desc;
  if (position > 0 && !is_float(own.type)) return own.format == nv::TensorFormat::kLINEAR;
  if (position > 0 && is_float(all[0].desc.type) && own.format != all[0].desc.format) return false;
  return plugin_.supportsFormat(own.type, own.format);
}

int32_t StaticV2Plugin::configurePlugin(const nv::DynamicPluginTensorDesc* in, int32_t inputs,
                                        const nv::DynamicPluginTensorDesc* out, int32_t outputs) noexcept {
  const Tensors from(in, inputs), to(out, outputs);
  const nv::PluginTensorDesc& first = inputs > 0 ? from.descs[0] : to.descs[0];
  if (kind_ == PluginVersion::kV2_IOEXT)
    io_ext().configurePlugin(from.descs.data(), inputs, to.descs.data(), outputs);
  else if (kind_ == PluginVersion::kV2_EXT)
    ext().configurePlugin(from.dims.data(), inputs, to.dims.data(), outputs, from.types.data(), to.types.data(),
                          from.are_broadcast.get(), to.are_broadcast.get(), first.format, kBatch);
  else
    plugin_.configureWithFormat(from.dims.data(), inputs, to.dims.data(), outputs, first.type, first.format, kBatch);
  return 0;
}

size_t StaticV2Plugin::getWorkspaceSize(const nv::DynamicPluginTensorDesc*, int32_t, const nv::DynamicPluginTensorDesc*,
                                        int32_t) const noexcept {
  return plugin_.getWorkspaceSize(kBatch);
}

int32_t StaticV2Plugin::onShapeChange(const nv::PluginTensorDesc*, int32_t, const nv::PluginTensorDesc*,
                                      int32_t) noexcept {
  return 0;
}

int32_t StaticV2Plugin::enqueue(const nv::PluginTensorDesc*, const nv::PluginTensorDesc*, const void* const* from,
                                void* const* to, void* workspace, cudaStream_t stream) noexcept {
  return plugin_.enqueue(kBatch, from, to, workspace, stream);
}

}  // namespace lathe::plugin

#pragma GCC diagnostic pop
