// SPDX-License-Identifier: Apache-2.0
#include "ops/pack_box.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/for_size.h"
#include "ops/float_lines.h"
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

// From outside to inside. Of fixed size, so that packing allocates nothing.
class Axes {
 public:
  void add(const Axis& axis) { list_[size_++] = axis; }
  Axis take(size_t index) {
    const Axis axis = list_[index];
    std::move(list_.begin() + index + 1, list_.begin() + size_, list_.begin() + index);
    --size_;
    return axis;
  }
  std::span<Axis> all() { return {list_.data(), size_}; }
  size_t find(int64_t Axis::*member, int64_t value) {  // size() = there is none
    return static_cast<size_t>(std::ranges::find(all(), value, member) - all().begin());
  }
  size_t size() const { return size_; }

 private:
  std::array<Axis, kMostBoxDims> list_;
  size_t size_ = 0;
};

// Past the caches, which then need not read a line before it is written as a whole. What is written otherwise into a
// line that is written so in part takes many times as long.
constexpr int64_t kPiece = 16;
#ifdef __SSE2__
constexpr bool kWritesPast = true;
void write_piece_past(std::byte* to, const std::byte* from) {
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

// Calls `f` with the addresses of each element of the axes.
template <class F>
void for_each_element(std::span<const Axis> axes, const std::byte* from, std::byte* to, const F& f) {
  if (axes.empty()) return f(from, to);
  for (int64_t i = 0; i < axes[0].extent; ++i)
    for_each_element(axes.subspan(1), from + i * axes[0].from, to + i * axes[0].to, f);
}

// Runs of bytes that stay together. The two innermost loops go along the axis whose runs are nearest to each other
// where they come from and, a few at a time, along the one whose runs are so where they go.
void copy_runs(Axes axes, int64_t run, const std::byte* from, std::byte* to, Written written) {
  constexpr int64_t kAtATime = 16;
  Axis writes, reads;
  if (axes.size() > 0) writes = axes.take(axes.size() - 1);
  const auto nearest = std::ranges::min_element(axes.all(), {}, [](const Axis& axis) { return std::abs(axis.from); });
  if (nearest != axes.all().end() && std::abs(nearest->from) < std::abs(writes.from))
    reads = axes.take(static_cast<size_t>(nearest - axes.all().begin()));
  for_each_element(axes.all(), from, to, [&](const std::byte* source, std::byte* result) {
    for (int64_t w = 0; w < writes.extent; w += kAtATime)
      for (int64_t r = 0; r < reads.extent; ++r)
        for (int64_t i = w; i < std::min(w + kAtATime, writes.extent); ++i)
          write_run(result + r * reads.to + i * writes.to, source + r * reads.from + i * writes.from, run, written);
  });
}

// Neighbours of where elements come from, along one axis or two, and where they go.
struct Neighbours {
  Axis inner, outer;
  int64_t count() const { return inner.extent * outer.extent; }

  static Neighbours take_from(Axes& axes, int64_t size) {
    Neighbours result;
    for (Axis* const axis : {&result.inner, &result.outer})
      if (const size_t next = axes.find(&Axis::from, result.count() * size); next < axes.size())
        *axis = axes.take(next);
      else
        break;
    return result;
  }
};

// Elements as they are.
template <class T>
struct Unchanged {
  using Vec = typename TileLine<T>::Vec;
  Unchanged behind(int64_t) const { return *this; }
  Unchanged tile() const { return *this; }
  Vec of_line(int, const Vec& vec) const { return vec; }
  T of_element(int64_t, T element) const { return element; }
};

// Each line by a number of its own, as ChannelFactors has it.
struct Scaled {
  const double* factors;
  TransposeScaled transpose;  // of whole cache lines; nullptr = none

  Scaled behind(int64_t lines) const { return {factors + lines, transpose}; }
  uint32_t of_element(int64_t line, uint32_t element) const {
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<float>(element) * factors[line]));
  }
  // Of a tile's lines, in registers.
  struct Tile {
    using Vec = TileLine<uint32_t>::Vec;
#ifdef __SSE2__
    __m128d factors[kTileSide<uint32_t>];
    [[gnu::always_inline]] Vec of_line(int line, const Vec& vec) const {
      const auto x = std::bit_cast<__m128>(vec);
      const __m128 low = _mm_cvtpd_ps(_mm_mul_pd(_mm_cvtps_pd(x), factors[line]));
      const __m128 high = _mm_cvtpd_ps(_mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(x, x)), factors[line]));
      return std::bit_cast<Vec>(_mm_movelh_ps(low, high));
    }
#else
    Scaled lines;
    Vec of_line(int line, Vec vec) const {
      for (int i = 0; i < kTileSide<uint32_t>; ++i) vec[i] = lines.of_element(line, vec[i]);
      return vec;
    }
#endif
  };
  Tile tile() const {
#ifdef __SSE2__
    return {{_mm_set1_pd(factors[0]), _mm_set1_pd(factors[1]), _mm_set1_pd(factors[2]), _mm_set1_pd(factors[3])}};
#else
    return {*this};
#endif
  }
};

// The places of neighbours from one on. It is to be inlined: this code is compiled to be small, and calls for each line
// took a tenth of the time.
class Places {
 public:
  Places(const Neighbours& neighbours, int64_t first)
      : neighbours_(neighbours), index_(first % neighbours.inner.extent) {
    line_ = first / neighbours.inner.extent * neighbours.outer.to;
  }
  [[gnu::always_inline]] int64_t next() {
    const int64_t place = line_ + index_ * neighbours_.inner.to;
    if (++index_ == neighbours_.inner.extent) index_ = 0, line_ += neighbours_.outer.to;
    return place;
  }

 private:
  const Neighbours& neighbours_;
  int64_t index_, line_;
};

// Lines that become columns: `writes.extent` lines of neighbours, of which each column is written as a run. A cache
// line of either side is used as a whole before it is gone. `Change` is what elements become on the way.
template <class T, class Change>
class LineTransposer {
 public:
  LineTransposer(const Axis& writes, const Neighbours& neighbours, const std::byte* to, Written written)
      : writes_(writes), neighbours_(neighbours), written_(written) {
    const int64_t units = (writes.extent * kSize) | neighbours.inner.to | neighbours.outer.to;
    if (!kWritesPast || !is_multiple(to, units, kCacheLine)) written_ = Written::to_caches;
  }

  void run(const std::byte* from, std::byte* to, const Change& of_all) const {
    for (int64_t line = 0; line < writes_.extent; line += kLines) {
      const int64_t lines = std::min(kLines, writes_.extent - line);
      const std::byte* const source = from + line * writes_.from;
      std::byte* const result = to + line * kSize;
      const Change change = of_all.behind(line);
      if (lines < kLines)
        run_some(source, result, lines, 0, change);
      else if (written_ == Written::past_caches)
        run_lines<Written::past_caches>(source, result, change);
      else
        run_lines<Written::to_caches>(source, result, change);
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

  template <Written kWritten>
  void run_lines(const std::byte* source, std::byte* to, const Change& change) const {
    const int64_t count = neighbours_.count();
    Places places(neighbours_, 0);
    int64_t place = 0;
    for (; place + kLines <= count; place += kLines) {
      prefetch(source + place * kSize);
      run_columns<kWritten>(source + place * kSize, to, places, change);
    }
    run_some(source, to, kLines, place, change);
  }

  template <Written kWritten>
  void run_columns(const std::byte* source, std::byte* to, Places& places, const Change& change) const {
    if constexpr (std::is_same_v<Change, Scaled>)
      if (change.transpose) {
        std::array<std::byte*, kLines> results;
        for (std::byte*& result : results) result = to + places.next();
        return change.transpose(source, writes_.from, change.factors, results.data(), kWritten == Written::past_caches);
      }
    alignas(kCacheLine) std::array<std::byte, kLines * kCacheLine> columns;
    for (int64_t line = 0; line < kLines; line += kSide) {
      const auto tile = change.behind(line).tile();
      for (int64_t place = 0; place < kLines; place += kSide)
        transpose_tile<T>(source + line * writes_.from + place * kSize, writes_.from,
                          columns.data() + place * kCacheLine + line * kSize, kCacheLine, tile);
    }
    for (int64_t i = 0; i < kLines; ++i) {
      const std::byte* const column = columns.data() + i * kCacheLine;
      if constexpr (kWritten == Written::past_caches)
        write_line_past(to + places.next(), column);
      else
        std::memcpy(to + places.next(), column, kCacheLine);
    }
  }

  // Fewer lines than are a cache line of the result, or fewer places than are one, from a place on.
  void run_some(const std::byte* source, std::byte* to, int64_t lines, int64_t first, const Change& change) const {
    alignas(kCacheLine) std::array<std::byte, kSide * kCacheLine> columns;
    const int64_t count = neighbours_.count(), whole = lines / kSide * kSide;
    Places places(neighbours_, first);
    int64_t place = first;
    for (; whole > 0 && place + kSide <= count; place += kSide) {
      if (place % kLines == 0) prefetch(source + place * kSize);
      for (int64_t line = 0; line < whole; line += kSide)
        transpose_tile<T>(source + line * writes_.from + place * kSize, writes_.from, columns.data() + line * kSize,
                          kCacheLine, change.behind(line).tile());
      for (int64_t i = 0; i < kSide; ++i)
        std::memcpy(to + places.next(), columns.data() + i * kCacheLine, static_cast<size_t>(whole * kSize));
    }
    run_elements(source, to, whole, place, change);
    run_elements(source + whole * writes_.from, to + whole * kSize, lines - whole, first, change.behind(whole));
  }

  // From a place on.
  void run_elements(const std::byte* source, std::byte* to, int64_t lines, int64_t first, const Change& change) const {
    Places places(neighbours_, first);
    for (int64_t place = first; place < neighbours_.count(); ++place) {
      std::byte* const column = to + places.next();
      for (int64_t line = 0; line < lines; ++line) {
        T element;
        std::memcpy(&element, source + line * writes_.from + place * kSize, kSize);
        element = change.of_element(line, element);
        std::memcpy(column + line * kSize, &element, kSize);
      }
    }
  }

  const Axis writes_;
  const Neighbours neighbours_;
  Written written_;
};

// In the order of the result, without those of one element. Axes are joined where one goes on as the other does.
Axes axes_of(const PackingBox& box, int64_t size) {
  Axes axes;
  for (size_t d = 0; d < box.extents.size(); ++d)
    if (box.extents[d] > 1) axes.add({box.extents[d], box.from_strides[d] * size, box.to_strides[d] * size});
  std::ranges::stable_sort(axes.all(), std::greater(), [](const Axis& axis) { return std::abs(axis.to); });
  for (size_t i = axes.size(); i-- > 1;) {
    const Axis inner = axes.all()[i];
    Axis& outer = axes.all()[i - 1];
    if (outer.from != inner.extent * inner.from || outer.to != inner.extent * inner.to) continue;
    outer = {outer.extent * inner.extent, inner.from, inner.to};
    axes.take(i);
  }
  if (axes.size() == 0) axes.add({});
  return axes;
}

// The axis along which neighbours are written that were none; none = the runs of that many bytes stay together.
struct Lines {
  std::optional<Axis> writes;
  int64_t run = 0;

  static Lines take_from(Axes& axes, int64_t size) {
    const size_t found = axes.find(&Axis::to, size);
    if (found == axes.size()) return {std::nullopt, size};
    const Axis axis = axes.take(found);
    if (axis.from == size) return {std::nullopt, axis.extent * size};
    return {axis, 0};
  }
};

// Calls change_at() with where the first of some lines is.
template <class T, class ChangeAt>
void transpose_lines(Axes axes, const Axis& writes, const std::byte* from, std::byte* to, Written written,
                     const ChangeAt& change_at) {
  const Neighbours neighbours = Neighbours::take_from(axes, sizeof(T));
  for (const Axis& axis : axes.all())
    if (axis.to % kCacheLine != 0) written = Written::to_caches;
  const LineTransposer<T, decltype(change_at(from))> transposer(writes, neighbours, to, written);
  for_each_element(axes.all(), from, to, [&](const std::byte* source, std::byte* result) {
    transposer.run(source, result, change_at(source));
  });
}

template <class T>
void copy_axes(Axes axes, const std::byte* from, std::byte* to, Written written) {
  const Lines lines = Lines::take_from(axes, sizeof(T));
  if (!lines.writes) return copy_runs(axes, lines.run, from, to, written);
  transpose_lines<T>(axes, *lines.writes, from, to, written, [](const std::byte*) { return Unchanged<T>(); });
}

void finish(Written written) {
#ifdef __SSE2__
  if (written == Written::past_caches) _mm_sfence();
#endif
}

}  // namespace

void pack_box(const PackingBox& box, size_t size, const std::byte* from, std::byte* to, PackingPart part,
              Written written) {
  const auto bytes = static_cast<int64_t>(size);
  Axes axes = axes_of(box, bytes);
  Axis& outer = axes.all()[0];
  const int64_t begin = outer.extent * part.index / part.count, end = outer.extent * (part.index + 1) / part.count;
  if (begin == end) return;
  from += box.from * bytes + begin * outer.from;
  to += box.to * bytes + begin * outer.to;
  outer.extent = end - begin;
  for_size(size, [&](auto element) { copy_axes<decltype(element)>(axes, from, to, written); });
  finish(written);
}

bool takes_factors(const PackingBox& box, int64_t each) {
  Axes axes = axes_of(box, sizeof(float));
  const int64_t bytes = each * static_cast<int64_t>(sizeof(float));
  int64_t within = box.from % each * static_cast<int64_t>(sizeof(float));
  for (const Axis& axis : axes.all()) {
    if (axis.from < 0) return false;
    if (axis.from % bytes != 0) within += (axis.extent - 1) * axis.from;
  }
  const Lines lines = Lines::take_from(axes, sizeof(float));
  return within < bytes && lines.writes && lines.writes->from == bytes;
}

void pack_box_scaled(const PackingBox& box, const float* from, float* to, const ChannelFactors& factors,
                     Written written) {
  const auto* const source = reinterpret_cast<const std::byte*>(from);
  Axes axes = axes_of(box, sizeof(float));
  const Lines lines = Lines::take_from(axes, sizeof(float));
  const int64_t bytes = factors.each * static_cast<int64_t>(sizeof(float));
  transpose_lines<uint32_t>(
      axes, *lines.writes, source + box.from * static_cast<int64_t>(sizeof(float)),
      reinterpret_cast<std::byte*>(to + box.to), written, [&](const std::byte* first) {
        return Scaled{factors.numbers + (first - source) / bytes, transpose_scaled(cpu::isa_level())};
      });
  finish(written);
}

}  // namespace lathe
