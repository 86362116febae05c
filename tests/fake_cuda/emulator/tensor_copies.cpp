// SPDX-License-Identifier: Apache-2.0
#include "tensor_copies.h"

#include <cstring>

#include "../tensor_map.h"

namespace emulator {
namespace {

using fake_cuda::TensorMapContent;

constexpr size_t kRowBytes = 128;

TensorMapContent content_of(const void* map) {
  TensorMapContent content;
  std::memcpy(&content, map, sizeof content);
  return content;
}

// Chunks of 16 bytes are permuted by the number of their 128 bytes in shared memory, among eight.
unsigned char* permuted(unsigned char* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return reinterpret_cast<unsigned char*>(address ^ (address / kRowBytes % 8 * 16));
}

// To the nearest TF32, to even between two, as a H100 does.
uint32_t rounded(uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u;
}

void copy_element(unsigned char* to, const unsigned char* from, const TensorMapContent& map) {
  if (!map.rounds) return void(std::memcpy(to, from, map.element_bytes));
  uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  bits = rounded(bits);
  std::memcpy(to, &bits, sizeof bits);
}

// Where a row of the block begins, the first element of its innermost dimension; null outside of the tensor.
const unsigned char* row_at(const TensorMapContent& map, const int64_t* at) {
  const unsigned char* from = map.address;
  for (size_t i = 1; i < map.rank; ++i) {
    if (at[i] < 0 || at[i] >= static_cast<int64_t>(map.dims[i])) return nullptr;
    from += at[i] * static_cast<int64_t>(map.strides[i]);
  }
  return from;
}

const unsigned char* tiled_row(const TensorMapContent& map, const int* at, size_t row) {
  int64_t place[TensorMapContent::kMaxRank];
  for (size_t i = 1; i < map.rank; row /= map.box[i], ++i) place[i] = at[i] + static_cast<int64_t>(row % map.box[i]);
  return row_at(map, place);
}

// Steps along columns, rows and images, each begun anew where the windows of the one before end. The element of the
// window comes last in `at`.
const unsigned char* window_row(const TensorMapContent& map, const int* at, size_t row) {
  int64_t place[4] = {0, at[1], at[2], at[3]};
  for (; row > 0; --row)
    for (int i = 0; i < 3; ++i) {
      place[i + 1] += i < 2 ? map.steps[i] : 1;
      if (i == 2 || place[i + 1] < static_cast<int64_t>(map.dims[i + 1]) + map.beyond[i]) break;
      place[i + 1] = map.first[i];
    }
  place[1] += at[4], place[2] += at[5];
  return row_at(map, place);
}

}  // namespace

size_t bytes_of(const void* map, int coordinates) {
  const TensorMapContent content = content_of(map);
  const int wanted = content.rank + (content.steps[0] > 0 ? 2 : 0);
  if (content.mark != TensorMapContent::kMark || coordinates != wanted) return 0;
  size_t bytes = kRowBytes;
  for (size_t i = 1; i < content.rank; ++i) bytes *= content.box[i];
  return bytes;
}

void arrive(const TensorCopy& copy) {
  if (!copy.map) {
    std::memcpy(copy.to, copy.stored, copy.bytes);
    copy.barrier->bytes -= static_cast<int32_t>(copy.bytes);
    return copy.barrier->complete();
  }
  const TensorMapContent map = content_of(copy.map);
  const size_t rows = copy.bytes / kRowBytes;
  for (size_t row = 0; row < rows; ++row) {
    const unsigned char* from = map.steps[0] > 0 ? window_row(map, copy.at, row) : tiled_row(map, copy.at, row);
    for (size_t element = 0; element < map.box[0]; ++element) {
      const int64_t at = copy.at[0] + static_cast<int64_t>(element);
      unsigned char* to = permuted(copy.to + row * kRowBytes + element * map.element_bytes);
      if (!from || at < 0 || at >= static_cast<int64_t>(map.dims[0]))
        std::memset(to, 0, map.element_bytes);
      else
        copy_element(to, from + at * map.element_bytes, map);
    }
  }
  copy.barrier->bytes -= static_cast<int32_t>(copy.bytes);
  copy.barrier->complete();
}

}  // namespace emulator
