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

}  // namespace

size_t bytes_of(const void* map) {
  const TensorMapContent content = content_of(map);
  if (content.mark != TensorMapContent::kMark) return 0;
  size_t bytes = kRowBytes;
  for (size_t i = 1; i < content.rank; ++i) bytes *= content.box[i];
  return bytes;
}

void arrive(const TensorCopy& copy) {
  if (!copy.map) {
    std::memcpy(copy.to, copy.stored, copy.size);
    copy.barrier->bytes -= static_cast<int32_t>(copy.size);
    return copy.barrier->complete();
  }
  const TensorMapContent map = content_of(copy.map);
  const size_t rows = bytes_of(copy.map) / kRowBytes;
  for (size_t row = 0; row < rows; ++row) {
    const unsigned char* from = map.address;
    bool outside = false;
    size_t rest = row;
    for (size_t i = 1; i < map.rank; rest /= map.box[i], ++i) {
      const int64_t at = copy.at[i] + static_cast<int64_t>(rest % map.box[i]);
      outside = outside || at < 0 || at >= static_cast<int64_t>(map.dims[i]);
      from += at * static_cast<int64_t>(map.strides[i]);
    }
    for (size_t element = 0; element < map.box[0]; ++element) {
      const int64_t at = copy.at[0] + static_cast<int64_t>(element);
      unsigned char* to = permuted(copy.to + row * kRowBytes + element * map.element_bytes);
      if (outside || at < 0 || at >= static_cast<int64_t>(map.dims[0]))
        std::memset(to, 0, map.element_bytes);
      else
        copy_element(to, from + at * map.element_bytes, map);
    }
  }
  copy.barrier->bytes -= static_cast<int32_t>(rows * kRowBytes);
  copy.barrier->complete();
}

}  // namespace emulator
