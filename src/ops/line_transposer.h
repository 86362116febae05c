// SPDX-License-Identifier: Apache-2.0
// Lines that become columns, in a box of a packing.
#pragma once

#include <bit>

#include "ops/float_lines.h"
#include "ops/packing_axes.h"
#include "ops/transpose_tile.h"

namespace lathe::packing {

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
  ScaledTransposer transposer;  // of whole cache lines

  Scaled behind(int64_t lines) const { return {factors + lines, transposer}; }
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
  // `all`: the first element that is read.
  LineTransposer(const BoxAxis& writes, const Neighbours& neighbours, const std::byte* all, const std::byte* to,
                 Written written, ReadNext next)
      : writes_(writes), neighbours_(neighbours), all_(all), next_(next), written_(written) {
    const int64_t units = (writes.extent * kSize) | neighbours.inner.to | neighbours.outer.to;
    if (!kWritesPast || !is_multiple(to, units, kCacheLine)) written_ = Written::to_caches;
  }

  void run(const std::byte* from, std::byte* to, const Change& of_all) const {
    for (int64_t line = 0; line < writes_.extent; line += kLines) {
      const int64_t lines = std::min(kLines, writes_.extent - line);
      const std::byte* const source = from + line * writes_.from;
      std::byte* const result = to + line * kSize;
      const Change change = of_all.behind(line);
      if (goes_by_tiles(lines, change))
        run_tiles(source, result, lines, change);
      else if (lines < kLines)
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
    constexpr int64_t kFar = 256 << 10, kNear = 512, kSoon = 2048;
    int64_t step = writes_.from;
    if (next_.from) {
      source = next_.from + (source - all_) * next_.scale;
      step *= next_.scale;
    } else {
      const int64_t next = step * kLines;
      source += next <= kFar ? std::max(next, kSoon) : kNear;
    }
    for (int64_t line = 0; line < kLines; ++line) __builtin_prefetch(source + line * step, 0, 2);
  }

  // Of what stays in caches, where places are evenly spaced, unless there are larger registers for it.
  bool goes_by_tiles(int64_t lines, [[maybe_unused]] const Change& change) const {
    if constexpr (std::is_same_v<Change, Scaled>)
      if (change.transposer.transpose && lines == kLines && neighbours_.count() >= kLines) return false;
    return written_ == Written::to_caches && neighbours_.outer.extent == 1 && neighbours_.count() >= kSide &&
           lines % kSide == 0;
  }

  // The last tile takes places of the one before once more where there are not enough.
  void run_tiles(const std::byte* source, std::byte* to, int64_t lines, const Change& change) const {
    const int64_t last = neighbours_.count() - kSide, step = neighbours_.inner.to;
    for (int64_t place = 0; place < neighbours_.count(); place += kSide) {
      const int64_t first = std::min(place, last);
      if (place % kLines == 0) prefetch(source + place * kSize);
      for (int64_t line = 0; line < lines; line += kSide)
        transpose_tile<T>(source + line * writes_.from + first * kSize, writes_.from, to + first * step + line * kSize,
                          step, change.behind(line).tile());
    }
  }

  template <Written kWritten>
  void run_lines(const std::byte* source, std::byte* to, const Change& change) const {
    const int64_t count = neighbours_.count();
    LineFactors factors;
    if constexpr (std::is_same_v<Change, Scaled>)
      if (change.transposer.prepare && count >= kLines) change.transposer.prepare(change.factors, factors);
    Places places(neighbours_, 0);
    int64_t place = 0;
    for (; place + kLines <= count; place += kLines) {
      prefetch(source + place * kSize);
      run_columns<kWritten>(source + place * kSize, to, places, change, factors);
    }
    run_some(source, to, kLines, place, change);
  }

  template <Written kWritten>
  void run_columns(const std::byte* source, std::byte* to, Places& places, const Change& change,
                   const LineFactors& factors) const {
    if constexpr (std::is_same_v<Change, Scaled>)
      if (change.transposer.transpose) {
        std::array<std::byte*, kLines> results;
        for (std::byte*& result : results) result = to + places.next();
        return change.transposer.transpose(source, writes_.from, factors, results.data(),
                                           kWritten == Written::past_caches);
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

  const BoxAxis writes_;
  const Neighbours neighbours_;
  const std::byte* const all_;
  const ReadNext next_;
  Written written_;
};

}  // namespace lathe::packing
