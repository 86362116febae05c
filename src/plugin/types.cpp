// SPDX-License-Identifier: Apache-2.0
#include "plugin/types.h"

#include <algorithm>

#include "lathe.h"

namespace lathe::plugin {
namespace {

struct Pair {
  nv::DataType theirs;
  DType ours;
};
constexpr Pair kTypes[] = {
#define LATHE_DTYPE(name, number, bits, cls, encoding, onnx, onnx_number, theirs) {theirs, DType::name},
#include "base/dtypes.def"
#undef LATHE_DTYPE
};

}  // namespace

Result<DType> to_dtype(nv::DataType type) {
  for (const Pair& pair : kTypes)
    if (pair.theirs == type) return pair.ours;
  return fail(ErrorCode::dtype_unsupported, "element type {} is not supported", static_cast<int>(type));
}

nv::DataType to_nv(DType type) {
  return std::ranges::find(kTypes, type, &Pair::ours)->theirs;  // each type has a row
}

nv::PluginTensorDesc describe(DType type, std::span<const int64_t> dims, int32_t format) {
  nv::PluginTensorDesc desc{};
  desc.type = to_nv(type);
  desc.format = static_cast<nv::TensorFormat>(format);
  desc.scale = 1;
  desc.dims.nbDims = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), desc.dims.d);
  return desc;
}

}  // namespace lathe::plugin
