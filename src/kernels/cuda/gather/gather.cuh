// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their numbers, and what follows: a thread takes W neighbours of one row.
#pragma once

#include "lib/indices.cuh"
#include "lib/vectors.cuh"

// Elements as they are, of any type.
template <int W, class T>
LATHE_DEVICE void move_elements(const T* from, T* to, int count) {
  if (count == W) return store_vector(to, load_vector<W>(from));
  LATHE_UNROLL
  for (int i = 0; i < W; ++i)
    if (i < count) to[i] = from[i];
}

// All tensors have the dimensions of the result: the table has stride 0 along those of the indices, these along the
// others. Rows are `pitch` elements apart, and `extent` of them are all. What an index outside names is 0.
template <int W, class Index, class Table, class Indices, class Out, class Fusion>
LATHE_DEVICE void gather_rows(Table table, const Indices& indices, const Out& out, long pitch, long extent,
                              const Fusion& fusion) {
  constexpr int D = Out::kRank - 1;
  dependency_wait();
  const Index vector =
      static_cast<Index>(block_x()) * static_cast<Index>(block_threads()) + static_cast<Index>(thread_x());
  if (vector >= count_vectors<W, Index>(out)) return;
  long c[Out::kRank];
  const int count = vector_coordinates<W, Index>(out, vector, c);
  const long row = wrapped_index(indices.data[offset_of(indices, c)], extent);
  if (row > 0) table.data += row * pitch;
  float v[W] = {};
  if (row >= 0) load<D>(table, c, v, count);
  fusion.template apply<D>(v, c, count);
  store<D>(out, c, v, count);
}

// The same where nothing follows.
template <int W, class Index, class Table, class Indices, class Out>
LATHE_DEVICE void gather_rows(const Table& table, const Indices& indices, const Out& out, long pitch, long extent) {
  constexpr int D = Out::kRank - 1;
  dependency_wait();
  const Index vector =
      static_cast<Index>(block_x()) * static_cast<Index>(block_threads()) + static_cast<Index>(thread_x());
  if (vector >= count_vectors<W, Index>(out)) return;
  long c[Out::kRank];
  const int count = vector_coordinates<W, Index>(out, vector, c);
  const long row = wrapped_index(indices.data[offset_of(indices, c)], extent);
  auto* const to = out.data + offset_of(out, c);
  if (row >= 0) return move_elements<W>(table.data + row * pitch + offset_of(table, c), to, count);
  LATHE_UNROLL
  for (int i = 0; i < W; ++i)
    if (i < count) to[i] = typename Out::Type{};
}
