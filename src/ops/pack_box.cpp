// SPDX-License-Identifier: Apache-2.0
#include "ops/pack_box.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/for_size.h"
#include "ops/transpose_tile.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lathe {
namespace {

constexpr int64_t kCacheLine = 64;

struct Axis {
  int64_t extent = 1, from = 0, to = 0;  // bytes from one element to the next
};

// Past the caches, so that lines which are written as a whole need not be read before.
void write_run(std::byte* to, const std::byte* from, int64_t bytes, Written written) {
#ifdef __SSE2__
  // What is shorter leaves lines that are written in parts.
  if (written == Written::past_caches && bytes >= kCacheLine && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    auto* vectors = reinterpret_cast<__m128i*>(to);
    const auto* source = reinterpret_cast<const __m128i*>(from);
    const int64_t count = bytes / 16;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const __m128i a = _mm_loadu_si128(source + i), b = _mm_loadu_si128(source + i + 1),
                    c = _mm_loadu_si128(source + i + 2), d = _mm_loadu_si128(source + i + 3);
      _mm_stream_si128(vectors + i, a);
      _mm_stream_si128(vectors + i + 1, b);
      _mm_stream_si128(vectors + i + 2, c);
      _mm_stream_si128(vectors + i + 3, d);
    }
    for (; i < count; ++i) _mm_stream_si128(vectors + i, _mm_loadu_si128(source + i));
    if (bytes % 16 == 0) return;
    to += count * 16, from += count * 16, bytes %= 16;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

// Takes the axis out of the list.
Axis take(std::vector<Axis>& axes, size_t index) {
  const Axis axis = axes[index];
  axes.erase(axes.begin() + static_cast<ptrdiff_t>(index));
  return axis;
}

// Calls `f` with the addresses of each element of the axes.
template <class F>
void for_each_element(std::span<const Axis> axes, const std::byte* from, std::byte* to, const F& f) {
  if (axes.empty()) return f(from, to);
  for (int64_t i = 0; i < axes[0].extent; ++i)
    for_each_element(axes.subspan(1), from + i * axes[0].from, to + i * axes[0].to, f);
}

// Runs of bytes that stay together. The two innermost loops go along the axis whose runs are nearest to each other
// where they come from and, a few at a time, along the one whose runs are so where they go.
void copy_runs(std::vector<Axis> axes, int64_t run, const std::byte* from, std::byte* to, Written written) {
  constexpr int64_t kAtATime = 16;
  Axis writes, reads;
  if (!axes.empty()) writes = take(axes, axes.size() - 1);
  if (const auto nearest = std::ranges::min_element(axes, {}, [](const Axis& axis) { return std::abs(axis.from); });
      nearest != axes.end() && std::abs(nearest->from) < std::abs(writes.from))
    reads = take(axes, static_cast<size_t>(nearest - axes.begin()));
  for_each_element(axes, from, to, [&](const std::byte* source, std::byte* result) {
    for (int64_t w = 0; w < writes.extent; w += kAtATime)
      for (int64_t r = 0; r < reads.extent; ++r)
        for (int64_t i = w; i < std::min(w + kAtATime, writes.extent); ++i)
          write_run(result + r * reads.to + i * writes.to, source + r * reads.from + i * writes.from, run, written);
  });
}

// Neighbours of where elements come from, with the places where they go; of the axes, those along which they are.
std::vector<int64_t> take_neighbours(std::vector<Axis>& axes, int64_t size) {
  constexpr int64_t kMost = 1 << 16;
  std::vector<int64_t> places = {0};
  for (;;) {
    const auto count = static_cast<int64_t>(places.size());
    const auto next = std::ranges::find(axes, count * size, &Axis::from);
    if (next == axes.end() || next->extent > kMost / count) return places;
    const Axis axis = take(axes, static_cast<size_t>(next - axes.begin()));
    for (int64_t i = 1; i < axis.extent; ++i)
      for (int64_t j = 0; j < count; ++j) places.push_back(i * axis.to + places[static_cast<size_t>(j)]);
  }
}

// Lines that become columns: `writes.extent` lines of neighbours, of which each column is written as a run. Tiles of
// them use each cache line on either side as a whole.
template <class T>
class LineTransposer {
 public:
  LineTransposer(const Axis& writes, std::span<const int64_t> places, Written written)
      : writes_(writes), places_(places), written_(written) {}

  void run(const std::byte* from, std::byte* to) {
    for (int64_t line = 0; line < writes_.extent; line += kLines)
      for (int64_t place = 0; place < count(); place += kPlaces)
        run(from + line * writes_.from + place * kSize, to + line * kSize, std::min(kLines, writes_.extent - line),
            place, std::min(kPlaces, count() - place));
  }

 private:
  static constexpr int64_t kSize = sizeof(T), kSide = kTileSide<T>;
  static constexpr int64_t kPlaces = kCacheLine / kSize, kLines = kCacheLine / kSize;

  int64_t count() const { return static_cast<int64_t>(places_.size()); }

  void run(const std::byte* from, std::byte* to, int64_t lines, int64_t first, int64_t places) {
    const int64_t whole_lines = lines / kSide * kSide, whole_places = places / kSide * kSide;
    const auto move = [&](int64_t line, int64_t place) {
      std::memcpy(&columns_[static_cast<size_t>(place * kLines + line)], from + line * writes_.from + place * kSize,
                  kSize);
    };
    // The lines behind these come next; of long ones the processor would forget them until then.
    constexpr int64_t kFar = 256 << 10, kNear = 512;
    const int64_t ahead = writes_.from * kLines <= kFar ? writes_.from * kLines : kNear;
    for (int64_t line = 0; line < lines; ++line) __builtin_prefetch(from + line * writes_.from + ahead, 0, 2);
    for (int64_t line = 0; line < whole_lines; line += kSide) {
      for (int64_t place = 0; place < whole_places; place += kSide)
        transpose_tile<T>(from + line * writes_.from + place * kSize, writes_.from,
                          reinterpret_cast<std::byte*>(&columns_[static_cast<size_t>(place * kLines + line)]),
                          kLines * kSize);
      for (int64_t i = line; i < line + kSide; ++i)
        for (int64_t place = whole_places; place < places; ++place) move(i, place);
    }
    for (int64_t line = whole_lines; line < lines; ++line)
      for (int64_t place = 0; place < places; ++place) move(line, place);
    for (int64_t place = 0; place < places; ++place)
      write_run(to + places_[static_cast<size_t>(first + place)],
                reinterpret_cast<const std::byte*>(&columns_[static_cast<size_t>(place * kLines)]), lines * kSize,
                written_);
  }

  const Axis writes_;
  std::span<const int64_t> places_;
  Written written_;
  alignas(kCacheLine) std::array<T, kPlaces * kLines> columns_;
};

// From outside to inside in the order of the result, without those of one element. Axes are joined where one goes on
// as the other does.
std::vector<Axis> axes_of(const PackingBox& box, int64_t size) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < box.extents.size(); ++d)
    if (box.extents[d] > 1) axes.push_back({box.extents[d], box.from_strides[d] * size, box.to_strides[d] * size});
  std::ranges::stable_sort(axes, std::greater(), [](const Axis& axis) { return std::abs(axis.to); });
  for (size_t i = axes.size(); i-- > 1;) {
    const Axis inner = axes[i];
    Axis& outer = axes[i - 1];
    if (outer.from != inner.extent * inner.from || outer.to != inner.extent * inner.to) continue;
    outer = {outer.extent * inner.extent, inner.from, inner.to};
    take(axes, i);
  }
  return axes;
}

template <class T>
void copy_axes(std::vector<Axis> axes, const std::byte* from, std::byte* to, Written written) {
  constexpr int64_t kSize = sizeof(T);
  const auto found = std::ranges::find(axes, kSize, &Axis::to);
  if (found == axes.end() || found->from == kSize) {
    const int64_t run =
        found == axes.end() ? kSize : take(axes, static_cast<size_t>(found - axes.begin())).extent * kSize;
    return copy_runs(std::move(axes), run, from, to, written);
  }
  const Axis writes = take(axes, static_cast<size_t>(found - axes.begin()));
  const std::vector<int64_t> places = take_neighbours(axes, kSize);
  LineTransposer<T> transposer(writes, places, written);
  for_each_element(axes, from, to, [&](const std::byte* source, std::byte* result) { transposer.run(source, result); });
}

}  // namespace

void pack_box(const PackingBox& box, size_t size, const std::byte* from, std::byte* to, PackingPart part,
              Written written) {
  const auto bytes = static_cast<int64_t>(size);
  std::vector<Axis> axes = axes_of(box, bytes);
  if (axes.empty()) axes.emplace_back();
  Axis& outer = axes[0];
  const int64_t begin = outer.extent * part.index / part.count, end = outer.extent * (part.index + 1) / part.count;
  if (begin == end) return;
  from += box.from * bytes + begin * outer.from;
  to += box.to * bytes + begin * outer.to;
  outer.extent = end - begin;
  for_size(size, [&](auto element) { copy_axes<decltype(element)>(std::move(axes), from, to, written); });
#ifdef __SSE2__
  if (written == Written::past_caches) _mm_sfence();
#endif
}

}  // namespace lathe
