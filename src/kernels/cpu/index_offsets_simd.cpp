// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/index_offsets.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

template <class T>
bool add(const T* from, int64_t step, const IndexRow& row, int64_t* offsets) {
  const int64_t extent = row.extent;
  const auto stride = static_cast<uint64_t>(row.stride);
  int64_t outside = 0;  // its sign bit is set once an index lies outside: no branch, so that the loop vectorizes
  for (int64_t i = 0; i < row.count; ++i) {
    auto index = static_cast<int64_t>(from[i * step]);
    index += index < 0 ? extent : 0;
    outside |= index | (extent - 1 - index);
    offsets[i] = static_cast<int64_t>(static_cast<uint64_t>(offsets[i]) + static_cast<uint64_t>(index) * stride);
  }
  return outside >= 0;
}

template <class T>
bool add_any(const IndexRow& row, int64_t* offsets) {
  const auto* from = static_cast<const T*>(row.first);
  return row.step == 1 ? add(from, 1, row, offsets) : add(from, row.step, row, offsets);
}

template <class I>
bool all_inside(const I* indices, int64_t step, const IndexRow& row) {
  int64_t outside = 0;
  for (int64_t i = 0; i < row.count; ++i) {
    auto index = static_cast<int64_t>(indices[i * step]);
    index += index < 0 ? row.extent : 0;
    outside |= index | (row.extent - 1 - index);
  }
  return outside >= 0;
}

struct Source {
  const void* data;
  int64_t along, stride, extent;
};

template <class I, class T>
void take_row(const I* indices, int64_t step, int64_t count, const Source& source, T* to, int64_t to_step) {
  const T* from = static_cast<const T*>(source.data);
  const int64_t along = source.along, stride = source.stride, extent = source.extent;
  for (int64_t i = 0; i < count; ++i) {
    auto index = static_cast<int64_t>(indices[i * step]);
    index += index < 0 ? extent : 0;
    to[i * to_step] = from[i * along + index * stride];
  }
}

constexpr int64_t kPiece = 256;  // indices that stay in the nearest cache between their check and their use

// Several loads at a time do not wait for each other's stores.
template <class I, class T>
void take_dense(const I* indices, int64_t count, const T* from, int64_t extent, T* to) {
  const auto load = [&](int64_t i) {
    const auto index = static_cast<int64_t>(indices[i]);
    return from[index + ((index >> 63) & extent)];
  };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const T a = load(i), b = load(i + 1), c = load(i + 2), d = load(i + 3);
    to[i] = a;
    to[i + 1] = b;
    to[i + 2] = c;
    to[i + 3] = d;
  }
  for (; i < count; ++i) to[i] = load(i);
}

template <class I, class T>
bool take(const IndexRow& row, const Source& source, void* to, int64_t to_step) {
  const auto* indices = static_cast<const I*>(row.first);
  auto* target = static_cast<T*>(to);
  if (row.step != 1 || to_step != 1) {
    if (!all_inside(indices, row.step, row)) return false;
    take_row(indices, row.step, row.count, source, target, to_step);
    return true;
  }
  if (source.along != 0 || source.stride != 1) {
    if (!all_inside(indices, 1, row)) return false;
    take_row(indices, 1, row.count, source, target, 1);
    return true;
  }
  IndexRow piece = row;
  for (int64_t begin = 0; begin < row.count; begin += kPiece) {
    piece.count = row.count - begin < kPiece ? row.count - begin : kPiece;
    if (!all_inside(indices + begin, 1, piece)) return false;
    take_dense(indices + begin, piece.count, static_cast<const T*>(source.data), source.extent, target + begin);
  }
  return true;
}

template <class I>
bool take_any(const IndexRow& row, size_t size, const Source& source, void* to, int64_t to_step) {
  switch (size) {
    case 1:
      return take<I, uint8_t>(row, source, to, to_step);
    case 2:
      return take<I, uint16_t>(row, source, to, to_step);
    case 4:
      return take<I, uint32_t>(row, source, to, to_step);
    default:
      return take<I, uint64_t>(row, source, to, to_step);
  }
}

// Calls f with an index of the type.
template <class F>
bool with_index(DType type, F&& f) {
  switch (type) {
    case DType::i64:
    case DType::u64:
      return f(int64_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::u32:
      return f(uint32_t{});
    case DType::i16:
      return f(int16_t{});
    case DType::u16:
      return f(uint16_t{});
    case DType::i8:
      return f(int8_t{});
    default:
      return f(uint8_t{});
  }
}

}  // namespace

bool add_offsets(const IndexRow& row, int64_t* offsets) {
  return with_index(row.type, [&](auto zero) { return add_any<decltype(zero)>(row, offsets); });
}

bool take_elements(const IndexRow& row, size_t size, const void* from, int64_t along, void* to, int64_t to_step) {
  const Source source{from, along, row.stride, row.extent};
  return with_index(row.type, [&](auto zero) { return take_any<decltype(zero)>(row, size, source, to, to_step); });
}

}  // namespace lathe::cpu::LATHE_ISA
