// SPDX-License-Identifier: Apache-2.0
// The axes of a box of a packing, in bytes, and how its lines are written.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "ops/pack_box.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lathe::packing {

inline constexpr int64_t kCacheLine = 64;

struct BoxAxis {
  int64_t extent = 1, from = 0, to = 0;  // bytes from one element to the next
};

// From outside to inside. Of fixed size, so that packing allocates nothing.
class Axes {
 public:
  void add(const BoxAxis& axis) { list_[size_++] = axis; }
  BoxAxis take(size_t index) {
    const BoxAxis axis = list_[index];
    std::move(list_.begin() + index + 1, list_.begin() + size_, list_.begin() + index);
    --size_;
    return axis;
  }
  std::span<BoxAxis> all() { return {list_.data(), size_}; }
  size_t find(int64_t BoxAxis::*member, int64_t value) {  // size() = there is none
    return static_cast<size_t>(std::ranges::find(all(), value, member) - all().begin());
  }
  size_t size() const { return size_; }

 private:
  std::array<BoxAxis, kMostBoxDims> list_;
  size_t size_ = 0;
};

// Neighbours of where elements come from, along one axis or two, and where they go.
struct Neighbours {
  BoxAxis inner, outer;
  int64_t count() const { return inner.extent * outer.extent; }

  static Neighbours take_from(Axes& axes, int64_t size) {
    Neighbours result;
    for (BoxAxis* const axis : {&result.inner, &result.outer})
      if (const size_t next = axes.find(&BoxAxis::from, result.count() * size); next < axes.size())
        *axis = axes.take(next);
      else
        break;
    return result;
  }
};

// Past the caches, which then need not read a line before it is written as a whole. What is written otherwise into a
// line that is written so in part takes many times as long.
inline constexpr int64_t kPiece = 16;
#ifdef __SSE2__
inline constexpr bool kWritesPast = true;
inline void write_piece_past(std::byte* to, const std::byte* from) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline void write_line_past(std::byte* to, const std::byte* from) {
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  auto* const result = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(result, a);
  _mm_stream_si128(result + 1, b);
  _mm_stream_si128(result + 2, c);
  _mm_stream_si128(result + 3, d);
}
#else
inline constexpr bool kWritesPast = false;
inline void write_piece_past(std::byte* to, const std::byte* from) { std::memcpy(to, from, kPiece); }
inline void write_line_past(std::byte* to, const std::byte* from) { std::memcpy(to, from, kCacheLine); }
#endif
inline bool is_multiple(const std::byte* to, int64_t bytes, int64_t unit) {
  return (reinterpret_cast<uintptr_t>(to) | static_cast<uint64_t>(bytes)) % static_cast<uint64_t>(unit) == 0;
}

}  // namespace lathe::packing
