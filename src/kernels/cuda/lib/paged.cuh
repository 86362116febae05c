// SPDX-License-Identifier: Apache-2.0
// Keys or values [batch, heads, keys, size] that lie in blocks of one pool [blocks, heads, keys of a block, size]: a
// table [batch, n] has the numbers of each sequence's blocks, those below 0 counted from the end. Keys of a block that
// is not there are zeros.
#pragma once

#include "lib/tensor.cuh"

template <class Pool_, class Table>
struct Paged {
  using Pool = Pool_;
  using Type = typename Pool::Type;
  static constexpr int kRank = 4, kUnit = Pool::kUnit, kVector = Pool::kVector;
  Pool pool;
  Table table;

  LATHE_DEVICE_MEMBER long dim(int i) const {
    return i == 0 ? table.dim(0) : i == 2 ? table.dim(1) * pool.dim(2) : pool.dim(i);
  }
  // Where in the pool the element at c lies; false where it does not.
  LATHE_DEVICE_MEMBER bool find(const long (&c)[4], long (&at)[4]) const {
    const auto key = static_cast<unsigned>(c[2]), size = static_cast<unsigned>(pool.dim(2));
    const long place[2] = {c[0], static_cast<long>(key / size)};
    long block = static_cast<long>(table.data[offset_of(table, place)]);
    if (block < 0) block += pool.dim(0);
    at[0] = block, at[1] = c[1], at[2] = static_cast<long>(key % size), at[3] = c[3];
    return block >= 0 && block < pool.dim(0);
  }
};

template <int D, int W, class Pool, class Table>
LATHE_DEVICE void load(const Paged<Pool, Table>& tensor, const long (&c)[4], float (&v)[W], int count) {
  long at[4];
  if (tensor.find(c, at)) return load<D, W>(tensor.pool, at, v, count);
  LATHE_UNROLL
  for (int i = 0; i < W; ++i) v[i] = 0.0f;
}
