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

// Past the caches, which then need not read a line before it is written as a whole. What is written otherwise into a
// line that is written so in part takes many times as long.
constexpr int64_t kPiece = 16;
#ifdef __SSE2__
constexpr bool kWritesPast = true;
void write_piece_past(std::byte* to, const std::byte* from) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
void write_line_past(std::byte* to, const std::byte* from) {
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
constexpr bool kWritesPast = false;
void write_piece_past(std::byte* to, const std::byte* from) { std::memcpy(to, from, kPiece); }
void write_line_past(std::byte* to, const std::byte* from) { std::memcpy(to, from, kCacheLine); }
#endif
bool is_multiple(const std::byte* to, int64_t bytes, int64_t unit) {
  return (reinterpret_cast<uintptr_t>(to) | static_cast<uint64_t>(bytes)) % static_cast<uint64_t>(unit) == 0;
}

void write_run(std::byte* to, const std::byte* from, int64_t bytes, Written written) {
  constexpr int64_t kLong = 4096;
  if (kWritesPast && written == Written::past_caches && is_multiple(to, bytes >= kLong ? 0 : bytes, kPiece)) {
    for (; bytes >= kCacheLine; bytes -= kCacheLine, to += kCacheLine, from += kCacheLine) write_line_past(to, from);
    for (; bytes >= kPiece; bytes -= kPiece, to += kPiece, from += kPiece) write_piece_past(to, from);
  }
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
    const size_t count = places.size();
    const auto next = std::ranges::find(axes, static_cast<int64_t>(count) * size, &Axis::from);
    if (next == axes.end() || next->extent > kMost / static_cast<int64_t>(count)) return places;
    const Axis axis = take(axes, static_cast<size_t>(next - axes.begin()));
    places.resize(count * static_cast<size_t>(axis.extent));
    for (size_t i = count; i < places.size(); ++i) places[i] = places[i - count] + axis.to;
  }
}

// Lines that become columns: `writes.extent` lines of neighbours, of which each column is written as a run. A cache
// line of either side is used as a whole before it is gone.
template <class T>
class LineTransposer {
 public:
  LineTransposer(const Axis& writes, std::span<const int64_t> places, const std::byte* to, Written written)
      : writes_(writes), places_(places), written_(written) {
    for (const int64_t place : places_)
      if (!kWritesPast || !is_multiple(to + place, writes_.extent * kSize, kCacheLine)) written_ = Written::to_caches;
  }

  void run(const std::byte* from, std::byte* to) const {
    for (int64_t line = 0; line < writes_.extent; line += kLines) {
      const int64_t lines = std::min(kLines, writes_.extent - line);
      const std::byte* const source = from + line * writes_.from;
      std::byte* const result = to + line * kSize;
      if (lines < kLines)
        run_some(source, result, lines);
      else if (written_ == Written::past_caches)
        run_lines(source, result, [](std::byte* column, const std::byte* made) { write_line_past(column, made); });
      else
        run_lines(source, result,
                  [](std::byte* column, const std::byte* made) { std::memcpy(column, made, kCacheLine); });
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T), kSide = kTileSide<T>, kLines = kCacheLine / kSize;

  // The lines behind these, which come next; of long ones the processor would forget them until then.
  // To be inlined: of a function that does nothing else, compilers leave out the calls.
  [[gnu::always_inline]] void prefetch(const std::byte* source) const {
    constexpr int64_t kFar = 256 << 10, kNear = 512;
    const int64_t next = writes_.from * kLines, ahead = next <= kFar ? next : kNear;
    for (int64_t line = 0; line < kLines; ++line) __builtin_prefetch(source + line * writes_.from + ahead, 0, 2);
  }

  template <class Write>
  void run_lines(const std::byte* source, std::byte* to, const Write& write) const {
    const auto count = static_cast<int64_t>(places_.size());
    int64_t place = 0;
    for (; place + kLines <= count; place += kLines) {
      prefetch(source + place * kSize);
      run_columns<kLines>(source, to, place, write);
    }
    for (; place + kSide <= count; place += kSide) run_columns<kSide>(source, to, place, write);
    run_elements(source, to, kLines, place);
  }

  template <int64_t kPlaces, class Write>
  void run_columns(const std::byte* source, std::byte* to, int64_t first, const Write& write) const {
    alignas(kCacheLine) std::array<std::byte, kPlaces * kCacheLine> columns;
    for (int64_t line = 0; line < kLines; line += kSide)
      for (int64_t place = 0; place < kPlaces; place += kSide)
        transpose_tile<T>(source + line * writes_.from + (first + place) * kSize, writes_.from,
                          columns.data() + place * kCacheLine + line * kSize, kCacheLine);
    for (int64_t i = 0; i < kPlaces; ++i)
      write(to + places_[static_cast<size_t>(first + i)], columns.data() + i * kCacheLine);
  }

  // Fewer than are a cache line of the result.
  void run_some(const std::byte* source, std::byte* to, int64_t lines) const {
    alignas(kCacheLine) std::array<std::byte, kSide * kCacheLine> columns;
    const auto count = static_cast<int64_t>(places_.size());
    const int64_t whole = lines / kSide * kSide;
    int64_t place = 0;
    for (; whole > 0 && place + kSide <= count; place += kSide) {
      if (place % kLines == 0) prefetch(source + place * kSize);
      for (int64_t line = 0; line < whole; line += kSide)
        transpose_tile<T>(source + line * writes_.from + place * kSize, writes_.from, columns.data() + line * kSize,
                          kCacheLine);
      for (int64_t i = 0; i < kSide; ++i)
        std::memcpy(to + places_[static_cast<size_t>(place + i)], columns.data() + i * kCacheLine,
                    static_cast<size_t>(whole * kSize));
    }
    run_elements(source, to, whole, place);
    run_elements(source + whole * writes_.from, to + whole * kSize, lines - whole, 0);
  }

  // From a place on.
  void run_elements(const std::byte* source, std::byte* to, int64_t lines, int64_t first) const {
    for (auto place = static_cast<size_t>(first); place < places_.size(); ++place)
      for (int64_t line = 0; line < lines; ++line)
        std::memcpy(to + places_[place] + line * kSize,
                    source + line * writes_.from + static_cast<int64_t>(place) * kSize, kSize);
  }

  const Axis writes_;
  std::span<const int64_t> places_;
  Written written_;
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
  const LineTransposer<T> transposer(writes, places, to, written);
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
