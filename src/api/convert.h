// SPDX-License-Identifier: Apache-2.0
// Between the application's types and ours: element types, dims, strings, flags.
#pragma once

#include <string>

#include "NvInfer.h"
#include "base/dtype.h"
#include "base/result.h"
#include "shape/expr.h"

namespace lathe::api {

namespace nv = nvinfer1;

// Strings are at most this long, terminator included; names of plugins 1024.
inline constexpr size_t kMaxString = 4096;

Result<DType> to_dtype(nv::DataType type);
nv::DataType to_nv(DType type);

// nbDims -1, every d 0.
nv::Dims invalid_dims();
// False for a rank out of range or a size below -1.
bool is_valid(const nv::Dims& dims);
Result<Dims> to_dims(const nv::Dims& dims);
nv::Dims to_nv(const Dims& dims);
nv::Dims to_nv(const Shape& shape);  // -1 where unknown; invalid_dims() above 8 dimensions

// A copy of an application's string; fails on null or excess length.
Result<std::string> to_string(const char* text, const char* what, size_t limit = kMaxString);

constexpr uint32_t bit_of(auto flag) { return 1u << static_cast<uint32_t>(flag); }

// The dimensions in a bit set, ascending; fails when one is not below `rank`.
Result<std::vector<int64_t>> axes_of(uint32_t mask, int rank);

}  // namespace lathe::api
