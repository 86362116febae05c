// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/tensor_map.h"

#include <algorithm>
#include <span>

namespace lathe::cuda {
namespace {

constexpr int64_t kRowBytes = 128;
constexpr size_t kWindowRank = 4;

// Elements are only moved, so that their size says all.
int type_of(const TensorMap& map) {
  if (map.rounds) return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  switch (size_of(map.dtype)) {
    case 1:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case 2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case 4:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
  }
}

// What the driver takes of images of two dimensions.
bool are_windows(std::span<const int64_t> w) {
  constexpr size_t kNumbers = 6, kCorners = 4;
  constexpr int64_t kMostStep = 8;
  if (w.size() != kNumbers) return false;
  for (size_t i = 0; i < kNumbers; ++i)
    if (i < kCorners ? w[i] != static_cast<int8_t>(w[i]) : w[i] < 1 || w[i] > kMostStep) return false;
  return true;
}

}  // namespace

std::optional<std::string> fault_of(const TensorMap& map, size_t inputs) {
  constexpr uint32_t kLargestBox = 256;
  const size_t rank = map.dims.size();
  if (map.input >= inputs) return fmt::format("is of input {}, and the step has {}", map.input, inputs);
  const bool is_tiled = map.windows.empty();
  if (rank == 0 || rank > kMaxMapRank || map.strides.size() + 1 != rank || map.box.size() != (is_tiled ? rank : 2) ||
      (!is_tiled && (rank != kWindowRank || !are_windows(map.windows))))
    return fmt::format("has {} dimensions, {} strides, a box of {} and {} numbers of windows", rank, map.strides.size(),
                       map.box.size(), map.windows.size());
  if (std::any_of(map.box.begin(), map.box.end(), [](uint32_t n) { return n == 0 || n > kLargestBox; }))
    return "has a box whose extents are not 1 to 256";
  if (map.box[0] * static_cast<int64_t>(size_of(map.dtype)) != kRowBytes) return "has rows that are not 128 bytes";
  if (map.rounds && map.dtype != DType::f32) return "rounds what is not f32";
  return std::nullopt;
}

Result<> encode(const Driver& driver, const TensorMap& map, const MapExtents& extents, void* data, CUtensorMap& out) {
  constexpr int kNotInterleaved = 0, kPermuted128 = 3, kPromoted256 = 3, kZeros = 0;
  std::array<uint32_t, kMaxMapRank> steps = {1, 1, 1, 1, 1};
  const size_t rank = map.dims.size();
  out = {};
  if (std::find(extents.dims.begin(), extents.dims.begin() + rank, 0u) != extents.dims.begin() + rank) return {};
  CUresult result;
  if (map.windows.empty()) {
    result = driver.cuTensorMapEncodeTiled(&out, type_of(map), static_cast<uint32_t>(rank), data, extents.dims.data(),
                                           extents.strides.data(), map.box.data(), steps.data(), kNotInterleaved,
                                           kPermuted128, kPromoted256, kZeros);
  } else {
    int w[6];
    std::copy(map.windows.begin(), map.windows.end(), w);
    steps[1] = static_cast<uint32_t>(w[4]), steps[2] = static_cast<uint32_t>(w[5]);
    result = driver.cuTensorMapEncodeIm2col(&out, type_of(map), kWindowRank, data, extents.dims.data(),
                                            extents.strides.data(), w, w + 2, map.box[0], map.box[1], steps.data(),
                                            kNotInterleaved, kPermuted128, kPromoted256, kZeros);
  }
  if (result == CUDA_SUCCESS) return {};
  return fail(driver_error(result, "describing a tensor to the copy engine"));
}

}  // namespace lathe::cuda
