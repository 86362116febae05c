// SPDX-License-Identifier: Apache-2.0
// Between the types of the public interface and ours.
#pragma once

#include <span>

#include "NvInferRuntime.h"
#include "base/dtype.h"
#include "base/result.h"

namespace lathe::plugin {

namespace nv = nvinfer1;

// Which kind of interface creators of plugins of V3 are.
inline constexpr const char* kCreatorKind = "PLUGIN CREATOR_V3ONE";

Result<DType> to_dtype(nv::DataType type);
nv::DataType to_nv(DType type);

// A tensor as plugins are told of it; -1 dims are not known. `format` as MemoryLayout::number.
nv::PluginTensorDesc describe(DType type, std::span<const int64_t> dims, int32_t format = 0);

}  // namespace lathe::plugin
