// SPDX-License-Identifier: Apache-2.0
// ONNX element types by number, including those that Lathe cannot evaluate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/dtype.h"

namespace lathe::onnx {

enum class ElementType : int32_t {
  undefined = 0,
#define LATHE_DTYPE(type, id, bits, cls, encoding, name, number, nv) name = number,
#include "base/dtypes.def"
#undef LATHE_DTYPE
#define LATHE_ONNX_TYPE(name, number, bits) name = number,
#include "onnx/element_types.def"
#undef LATHE_ONNX_TYPE
};

bool is_known(ElementType type);
int bits_of(ElementType type);          // of storage; 0 for strings and unknown types
std::string name_of(ElementType type);  // "float16"; "element type 99" when unknown
std::optional<DType> to_dtype(ElementType type);
ElementType from_dtype(DType type);

// Bytes that hold a tensor of these dims (sub-byte types are packed, the last byte padded); nullopt on a negative dim
// or overflow. Strings and unknown types take none.
std::optional<uint64_t> storage_bytes(ElementType type, std::span<const int64_t> dims);
std::optional<uint64_t> element_count(std::span<const int64_t> dims);

}  // namespace lathe::onnx
