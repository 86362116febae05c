// SPDX-License-Identifier: Apache-2.0
// What the stand-in driver writes into a tensor map, and the emulator's copy engine reads from it. Rows of the block
// lie in 128 bytes each, permuted; what is outside of the tensor is zero. PTX ISA, "im2col mode".
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_cuda {

struct TensorMapContent {
  static constexpr uint32_t kMark = 0x70616d74;
  static constexpr size_t kMaxRank = 5;
  uint32_t mark;
  uint8_t rank, element_bytes;
  uint8_t rounds;  // f32 to TF32
  uint16_t box[kMaxRank];
  uint8_t steps[2];            // of windows' columns and rows; 0 = a tiled map, without windows
  int8_t first[2], beyond[2];  // the first column and row, and what the last ones have beyond the image's
  const unsigned char* address;
  uint64_t dims[kMaxRank];
  uint64_t strides[kMaxRank];  // in bytes; the first is that of elements
};
static_assert(sizeof(TensorMapContent) <= 128);

// The driver's rules for tiled maps of rows of 128 bytes. False where it refuses. `strides` leave out the first.
inline bool make_tensor_map(uint32_t element_bytes, uint32_t rank, const void* address, const uint64_t* dims,
                            const uint64_t* strides, const uint32_t* box, TensorMapContent& out) {
  if (rank < 1 || rank > TensorMapContent::kMaxRank || !address || reinterpret_cast<uintptr_t>(address) % 16 != 0)
    return false;
  if (box[0] * element_bytes != 128) return false;
  out = {};
  out.mark = TensorMapContent::kMark;
  out.rank = static_cast<uint8_t>(rank);
  out.element_bytes = static_cast<uint8_t>(element_bytes);
  out.address = static_cast<const unsigned char*>(address);
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 1 || dims[i] > uint64_t{1} << 32 || box[i] < 1 || box[i] > 256) return false;
    if (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= uint64_t{1} << 40)) return false;
    out.dims[i] = dims[i];
    out.strides[i] = i == 0 ? element_bytes : strides[i - 1];
    out.box[i] = static_cast<uint16_t>(box[i]);
  }
  return true;
}

// Those of maps of images of two dimensions that are read where windows begin. `steps` are of all dimensions.
inline bool make_window_map(uint32_t element_bytes, uint32_t rank, const void* address, const uint64_t* dims,
                            const uint64_t* strides, const int* first, const int* beyond, uint32_t channels,
                            uint32_t pixels, const uint32_t* steps, TensorMapContent& out) {
  const uint32_t box[4] = {channels, pixels, 1, 1};
  if (rank != 4 || !make_tensor_map(element_bytes, rank, address, dims, strides, box, out)) return false;
  if (steps[0] != 1 || steps[3] != 1) return false;
  for (int i = 0; i < 2; ++i) {
    if (first[i] < -128 || first[i] > 127 || beyond[i] < -128 || beyond[i] > 127) return false;
    if (steps[i + 1] < 1 || steps[i + 1] > 8) return false;
    if (static_cast<int64_t>(dims[i + 1]) + beyond[i] <= first[i]) return false;
    out.first[i] = static_cast<int8_t>(first[i]), out.beyond[i] = static_cast<int8_t>(beyond[i]);
    out.steps[i] = static_cast<uint8_t>(steps[i + 1]);
  }
  return true;
}

}  // namespace fake_cuda
