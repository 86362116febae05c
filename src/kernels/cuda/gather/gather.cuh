// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their numbers, and what follows: a thread takes W neighbours of one row.
#pragma once

#include "lib/indices.cuh"
#include "lib/vectors.cuh"

// All tensors have the dimensions of the result: the table has stride 0 along those of the indices, these along the
// others. Rows are `pitch` elements apart, and `extent` of them are all. What an index outside names is 0. Without a
// fusion, elements of any type are moved as they are.
template <int W, class Index, class Table, class Indices, class Out, class... Fusion>
LATHE_DEVICE void gather_rows(Table table, const Indices& indices, const Out& out, long pitch, long extent,
                              const Fusion&... fusion) {
  constexpr int D = Out::kRank - 1;
  dependency_wait();
  const Index vector =
      static_cast<Index>(block_x()) * static_cast<Index>(block_threads()) + static_cast<Index>(thread_x());
  if (vector >= count_vectors<W, Index>(out)) return;
  long c[Out::kRank];
  const int count = vector_coordinates<W, Index>(out, vector, c);
  const long row = wrapped_index(indices.data[offset_of(indices, c)], extent);
  if (row > 0) table.data += row * pitch;
  if constexpr (sizeof...(Fusion) > 0) {
    float v[W] = {};
    if (row >= 0) load<D>(table, c, v, count);
    (fusion.template apply<D>(v, c, count), ...);
    store<D>(out, c, v, count);
  } else {
    const auto* const from = table.data + offset_of(table, c);
    auto* const to = out.data + offset_of(out, c);
    if (row >= 0 && count == W) return store_vector(to, load_vector<W>(from));
    LATHE_UNROLL
    for (int i = 0; i < W; ++i)
      if (i < count) to[i] = row >= 0 ? from[i] : typename Out::Type{};
  }
}
