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

// Memory to prefetch while a box is packed whose elements lie in a cache, so that memory is not idle: where the box
// reads its byte i, byte i * scale from here on is prefetched.
struct ReadNext {
  const std::byte* from = nullptr;  // null = nothing; what lies behind an array's end may be named
  int64_t scale = 1;
};

// Of a packing that was checked (check_packing()), of elements of `size` bytes: 1, 2, 4 or 8. Allocates nothing.
void pack_box(const PackingBox& box, size_t size, const std::byte* from, std::byte* to, PackingPart part,
              Written written, ReadNext next = {});

// What elements of f32 are multiplied by on their way, in f64, and rounded once: element i by numbers[i / each].
struct ChannelFactors {
  const double* numbers;
  int64_t each;
};
// Whether lines that a box transposes are of one number each.
bool takes_factors(const PackingBox& box, int64_t each);
// Of a box that takes them. Allocates nothing.
void pack_box_scaled(const PackingBox& box, const float* from, float* to, const ChannelFactors& factors,
                     Written written);

}  // namespace lathe
