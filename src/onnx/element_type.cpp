// SPDX-License-Identifier: Apache-2.0
#include "onnx/element_type.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace lathe::onnx {
namespace {

struct Row {
  ElementType type;
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

const Row kRows[] = {
#define LATHE_DTYPE(type, id, bits, cls, encoding, name, number, nv) {ElementType::name, #name, bits, DType::type},
#include "base/dtypes.def"
#undef LATHE_DTYPE
#define LATHE_ONNX_TYPE(name, number, bits) {ElementType::name, #name, bits, std::nullopt},
#include "onnx/element_types.def"
#undef LATHE_ONNX_TYPE
};

const Row* find(ElementType type) {
  const Row* row = std::ranges::find(kRows, type, &Row::type);
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

bool is_known(ElementType type) { return find(type) != nullptr; }

int bits_of(ElementType type) {
  const Row* row = find(type);
  return row ? row->bits : 0;
}

std::string name_of(ElementType type) {
  const Row* row = find(type);
  return row ? std::string(row->name) : fmt::format("element type {}", static_cast<int32_t>(type));
}

std::optional<DType> to_dtype(ElementType type) {
  const Row* row = find(type);
  return row ? row->dtype : std::nullopt;
}

ElementType from_dtype(DType type) {
  for (const Row& row : kRows)
    if (row.dtype == type) return row.type;
  return ElementType::undefined;
}

std::optional<uint64_t> element_count(std::span<const int64_t> dims) {
  uint64_t count = 1;
  bool zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0)
      zero = true;
    else if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return std::nullopt;
  }
  return zero ? 0 : count;
}

std::optional<uint64_t> storage_bytes(ElementType type, std::span<const int64_t> dims) {
  const std::optional<uint64_t> count = element_count(dims);
  if (!count) return std::nullopt;
  const auto bits = static_cast<uint64_t>(bits_of(type));
  if (bits < 8) return *count / 8 * bits + (*count % 8 * bits + 7) / 8;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(*count, bits / 8, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace lathe::onnx
