// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack_tactic.h"

#include <cstring>

namespace lathe {

void copy_elements(const std::byte* from, std::byte* to, size_t size, std::span<const PackedAxis> axes) {
  const PackedAxis& axis = axes.front();
  const int64_t from_step = axis.from * static_cast<int64_t>(size), to_step = axis.to * static_cast<int64_t>(size);
  for (int64_t i = 0; i < axis.extent; ++i, from += from_step, to += to_step) {
    if (axes.size() > 1)
      copy_elements(from, to, size, axes.subspan(1));
    else
      std::memcpy(to, from, size);
  }
}

Result<Packed> pack(const Known& weights, const Dims& dims, const std::vector<PackedAxis>& axes) {
  Packing packing{dims, {PackingBox()}};
  for (const PackedAxis& axis : axes) {
    packing.boxes[0].extents.push_back(axis.extent);
    packing.boxes[0].from_strides.push_back(axis.from);
    packing.boxes[0].to_strides.push_back(axis.to);
  }
  return Packed::later({std::move(packing), weights});
}

Packed reshaped(Packed packed, const Dims& dims) {
  packed.reshape(dims);
  return packed;
}

}  // namespace lathe
