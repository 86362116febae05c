// SPDX-License-Identifier: Apache-2.0
// A launch's tensor maps, made anew for each run: addresses and sizes may change between them.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "device/cuda/driver.h"
#include "device/kernel.h"
#include "device/launch.h"

namespace lathe::cuda {

// Whether the map can be made at all, whatever the sizes. In words what is wrong.
std::optional<std::string> fault_of(const TensorMap& map, size_t inputs);

// A map's sizes, for the symbols of a run.
struct MapExtents {
  std::array<uint64_t, kMaxMapRank> dims, strides;  // strides from the second dimension on, in bytes
};

// `number` gives an expression's value; false where there is none, or it is negative.
template <class Number>
bool find_extents(const TensorMap& map, Number&& number, MapExtents& out) {
  constexpr uint64_t kLeastStride = 16;  // bytes, that strides are multiples of
  for (size_t i = 0; i < map.dims.size(); ++i) {
    const std::optional<int64_t> dim = number(map.dims[i]);
    const std::optional<int64_t> stride = i == 0 ? std::optional<int64_t>(1) : number(map.strides[i - 1]);
    if (!dim || !stride || *dim < 0 || *stride < 0) return false;
    out.dims[i] = static_cast<uint64_t>(*dim);
    if (i > 0) out.strides[i - 1] = *dim == 1 ? kLeastStride : static_cast<uint64_t>(*stride) * size_of(map.dtype);
  }
  return true;
}

// A map of no elements is left empty: nothing is copied by it.
Result<> encode(const Driver& driver, const TensorMap& map, const MapExtents& extents, void* data, CUtensorMap& out);

}  // namespace lathe::cuda
