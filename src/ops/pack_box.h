// SPDX-License-Identifier: Apache-2.0
// Copies the elements of one box of a packing, at about the pace of a plain copy where neighbours stay neighbours on
// either side, or become them.
#pragma once

#include "ops/packing.h"

namespace lathe {

inline constexpr size_t kMostBoxDims = 8;

// One of several parts of the work, which may be done at the same time.
struct PackingPart {
  int64_t index = 0, count = 1;
};

// Whether what is written is to be read soon, or is more than caches hold, so that it goes past them.
enum class Written : uint8_t { to_caches, past_caches };

// Of a packing that was checked (check_packing()), of elements of `size` bytes: 1, 2, 4 or 8. Allocates nothing.
void pack_box(const PackingBox& box, size_t size, const std::byte* from, std::byte* to, PackingPart part,
              Written written);

}  // namespace lathe
