// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/tensor_map.h"

#include <algorithm>

namespace lathe::cuda {
namespace {

constexpr int64_t kRowBytes = 128;

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

}  // namespace

std::optional<std::string> fault_of(const TensorMap& map, size_t inputs) {
  constexpr uint32_t kLargestBox = 256;
  const size_t rank = map.dims.size();
  if (map.input >= inputs) return fmt::format("is of input {}, and the step has {}", map.input, inputs);
  if (rank == 0 || rank > kMaxMapRank || map.strides.size() + 1 != rank || map.box.size() != rank)
    return fmt::format("has {} dimensions, {} strides and a box of {}", rank, map.strides.size(), map.box.size());
  if (std::any_of(map.box.begin(), map.box.end(), [](uint32_t n) { return n == 0 || n > kLargestBox; }))
    return "has a box whose extents are not 1 to 256";
  if (map.box[0] * static_cast<int64_t>(size_of(map.dtype)) != kRowBytes) return "has rows that are not 128 bytes";
  if (map.rounds && map.dtype != DType::f32) return "rounds what is not f32";
  return std::nullopt;
}

Result<> encode(const Driver& driver, const TensorMap& map, const MapExtents& extents, void* data, CUtensorMap& out) {
  constexpr int kNotInterleaved = 0, kPermuted128 = 3, kPromoted256 = 3, kZeros = 0;
  constexpr std::array<uint32_t, kMaxMapRank> kSteps = {1, 1, 1, 1, 1};
  const size_t rank = map.dims.size();
  out = {};
  if (std::find(extents.dims.begin(), extents.dims.begin() + rank, 0u) != extents.dims.begin() + rank) return {};
  const CUresult result = driver.cuTensorMapEncodeTiled(
      &out, type_of(map), static_cast<uint32_t>(rank), data, extents.dims.data(), extents.strides.data(),
      map.box.data(), kSteps.data(), kNotInterleaved, kPermuted128, kPromoted256, kZeros);
  if (result == CUDA_SUCCESS) return {};
  return fail(driver_error(result, "describing a tensor to the copy engine"));
}

}  // namespace lathe::cuda
