// SPDX-License-Identifier: Apache-2.0
// What blocks of a program read and write: views of tensors to and from dense floats. For *_simd.cpp files, like
// simd.h.
#pragma once

#include "kernels/cpu/program_block.h"
#include "kernels/cpu/simd_levels.h"
#include "kernels/cpu/transpose.h"

namespace lathe::cpu::LATHE_ISA {

// Copies a rows x columns piece to or from a dense block; the dense side may be written up to a vector beyond the end.
inline void copy_row(float* target, const float* source, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) store(target + i, load(source + i));
  if (i < n) store_tail(target + i, n - i, load_tail(source + i, n - i));
}

// The address of an element of a view.
LATHE_INLINE void* element_of(void* data, DType type, int64_t offset) {
  return type == DType::f32 ? static_cast<void*>(static_cast<float*>(data) + offset)
                            : static_cast<void*>(static_cast<char*>(data) + offset);
}
LATHE_INLINE const void* element_of(const void* data, DType type, int64_t offset) {
  return element_of(const_cast<void*>(data), type, offset);
}

template <class T>
void gather_levels(float* target, const BlockInput& input, int rows, int columns) {
  const T* source = static_cast<const T*>(input.data);
  for (int r = 0; r < rows; ++r, target += columns, source += input.row_stride)
    if (input.column_stride == 1)
      for (int c = 0; c < columns; c += kLanes)
        store(target + c, load_levels(source + c, columns - c < kLanes ? columns - c : kLanes));
    else
      for (int c = 0; c < columns; ++c) target[c] = static_cast<float>(source[c * input.column_stride]);
}

#if defined(LATHE_ISA_LEVEL_avx512)
// Rows become neighbours in memory, as channels of pixels that have room for four.
inline void interleave_levels(uint8_t* target, const float* source, int rows, int columns) {
  for (int c = 0; c < columns; c += kLanes) {
    const int n = columns - c < kLanes ? columns - c : kLanes;
    IntVec pixels{};
    for (int r = 0; r < rows; ++r) pixels |= (round_to_int(load_tail(source + r * columns + c, n)) & 255) << 8 * r;
    const uint64_t room = 0x1111111111111111u * ((1u << rows) - 1);
    _mm512_mask_storeu_epi8(target + 4 * c, n == kLanes ? room : room & ((uint64_t{1} << 4 * n) - 1),
                            reinterpret_cast<__m512i>(pixels));
  }
}
#endif

// The integers that the floats are, of either sign: those of 8 bits have the same low bits.
inline void scatter_levels(const BlockOutput& output, const float* source, int rows, int columns) {
  auto* target = static_cast<uint8_t*>(output.data);
#if defined(LATHE_ISA_LEVEL_avx512)
  if (output.row_stride == 1 && output.column_stride == 4 && rows <= 4)
    return interleave_levels(target, source, rows, columns);
#endif
  for (int r = 0; r < rows; ++r, source += columns, target += output.row_stride)
    for (int c = 0; c < columns; c += kLanes) {
      const int n = columns - c < kLanes ? columns - c : kLanes;
      const IntVec levels = round_to_int(load_tail(source + c, n));
      if (output.column_stride == 1) {
        store_bytes(target + c, levels, n);
        continue;
      }
      uint8_t bytes[kLanes];
      store_bytes(bytes, levels, kLanes);
      for (int i = 0; i < n; ++i) target[(c + i) * output.column_stride] = bytes[i];
    }
}

inline void gather(float* target, const BlockInput& input, int rows, int columns) {
  if (input.type == DType::i8) return gather_levels<int8_t>(target, input, rows, columns);
  if (input.type == DType::u8) return gather_levels<uint8_t>(target, input, rows, columns);
  const float* source = static_cast<const float*>(input.data);
  if (input.column_stride == 1) {
    for (int r = 0; r < rows; ++r) copy_row(target + r * columns, source + r * input.row_stride, columns);
  } else if (input.column_stride == 0) {
    for (int r = 0; r < rows; ++r) {
      const float value = source[r * input.row_stride];
      for (int c = 0; c < columns; ++c) target[r * columns + c] = value;
    }
  } else if (input.row_stride == 1) {
    transpose_floats(target, columns, source, input.column_stride, rows, columns);
  } else {
    for (int c = 0; c < columns; ++c)
      for (int r = 0; r < rows; ++r) target[r * columns + c] = source[r * input.row_stride + c * input.column_stride];
  }
}

inline void scatter(const BlockOutput& output, const float* source, int rows, int columns) {
  if (output.type != DType::f32) return scatter_levels(output, source, rows, columns);
  float* target = static_cast<float*>(output.data);
  if (output.column_stride == 1) {
    for (int r = 0; r < rows; ++r) copy_row(target + r * output.row_stride, source + r * columns, columns);
  } else if (output.row_stride == 1) {
    transpose_floats(target, output.column_stride, source, columns, columns, rows);
  } else {
    for (int c = 0; c < columns; ++c)
      for (int r = 0; r < rows; ++r) target[r * output.row_stride + c * output.column_stride] = source[r * columns + c];
  }
}

inline void gather_one(float* value, const BlockInput& input) {
  if (input.type == DType::f32)
    *value = *static_cast<const float*>(input.data);
  else
    *value = static_cast<float>(input.type == DType::i8 ? *static_cast<const int8_t*>(input.data)
                                                        : *static_cast<const uint8_t*>(input.data));
}

}  // namespace lathe::cpu::LATHE_ISA
