// SPDX-License-Identifier: Apache-2.0
// Results whose rows begin anywhere, as the scores of 50,257 words do: no vector is aligned there, and single elements
// that each thread writes of its own vector are partial writes of many sectors. A warp writes them along rows instead.
#pragma once

#include "gemm/epilogue.cuh"

namespace gemm {

template <class Sink>
inline constexpr bool kByRows = false;

// The first of the columns of a thread among those of four neighbouring threads, which have W each of a row.
template <int W>
LATHE_DEVICE int column_of_four() {
  const int place = lane() & 3;
  return W >= 8 ? place * W : W == 4 ? (place & 1) * 8 + (place & 2) * 2 : place * 2;
}

// Writes what another sink makes of the sums, kWidth elements at once. `stage` has room for a vector of each thread.
template <int kWidth, class Type, class Sink>
struct RowSink {
  Sink sink;
  char* stage;

  static constexpr bool kSeveral = Sink::kSeveral;
  static constexpr int kAtOnce = Sink::kAtOnce;
  static_assert(kSeveral, "vectors that are finished together");

  // v[2 * i] of row `row`, v[2 * i + 1] of the one eight below, `step` columns after each other. Those outside of the
  // product have a place in it, m and n.
  template <int W, int N>
  LATHE_DEVICE_MEMBER void put_rows_of_warp(float (&v)[N][W], const long (&m)[N], const long (&n)[N],
                                            const int (&count)[N], long row, long rows, long column, long columns,
                                            int step) const {
    constexpr int kColumns = 4 * W, kElements = 8 * kColumns;
    const bool stored[N] = {};  // none: what the program makes of them is in v
    sink.put_several(v, m, n, count, stored);
    auto* const staged = reinterpret_cast<Type*>(stage) + warp() * kElements;
    const int own_row = lane() / 4, own_column = column_of_four<W>();
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) {
      const auto part = from_floats<Type, W>(v[k]);
      warp_barrier();  // what was there has been read
      *reinterpret_cast<Vec<Type, W>*>(staged + own_row * kColumns + own_column) = part;
      warp_barrier();
      LATHE_UNROLL
      for (int first = 0; first < kElements; first += 32 * kWidth) {
        const int at = first + lane() * kWidth;
        const long to_row = row - own_row + k % 2 * 8 + at / kColumns;
        const long to_column = column - own_column + k / 2 * step + at % kColumns;
        if (to_row < rows && to_column < columns)
          store_vector(sink.at(to_row, to_column), *reinterpret_cast<const Vec<Type, kWidth>*>(staged + at));
      }
    }
  }
};
template <int kWidth, class Type, class Sink>
inline constexpr bool kByRows<RowSink<kWidth, Type, Sink>> = true;

template <int kWidth, class Type, class Sink>
LATHE_DEVICE RowSink<kWidth, Type, Sink> row_sink(const Sink& sink, char* stage) {
  return {sink, stage};
}

}  // namespace gemm
