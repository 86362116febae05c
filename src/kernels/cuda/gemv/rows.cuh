// SPDX-License-Identifier: Apache-2.0
// Rows of A as tensor cores take them for their right operand: of a panel, 64 neighbours along K, a lane has 16
// neighbours of row lane / 4, from lane % 4 * 16 on (any order of K that both operands agree on gives the same sums).
#pragma once

#include "gemm/gemm.cuh"

namespace gemv {

// W elements, of which `count` are there; zeros for the others.
template <int W, class T>
LATHE_DEVICE Vec<T, W> load_some(const T* from, long count) {
  if (count >= W) return load_vector<W>(from);
  Vec<T, W> result = {};
  LATHE_UNROLL
  for (int i = 0; i < W; ++i)
    if (i < count) result.at[i] = from[i];
  return result;
}

// 16 neighbours of a row from element `at` on, W of which are read at once, or one by one with a stride between them;
// zeros outside.
template <int W, class T>
LATHE_DEVICE void load_run(T (&to)[16], const T* row, long stride, int at, int k) {
  LATHE_UNROLL
  for (int i = 0; i<16; i += W> 0 ? W : 1) {
    if constexpr (W > 0) {
      const Vec<T, W> part = load_some<W>(row + at + i, k - at - i);
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) to[i + j] = part.at[j];
    } else {
      to[i] = at + i < k ? row[(at + i) * stride] : T{};
    }
  }
}

template <class T>
LATHE_DEVICE unsigned pair_of(T low, T high) {
  return static_cast<unsigned>(low.bits) | static_cast<unsigned>(high.bits) << 16;
}

// 16 elements that lie at a multiple of 16 bytes, in pairs.
template <class T>
LATHE_DEVICE void load_pairs(unsigned (&to)[8], const T* from) {
  LATHE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const auto words = *reinterpret_cast<const Vec<uint32, 4>*>(from + half * 8);
    LATHE_UNROLL
    for (int i = 0; i < 4; ++i) to[half * 4 + i] = words.at[i];
  }
}

// A row begins at x + row * pitch, its elements `stride` apart.
template <class T>
struct Rows {
  using Type = T;
  const T* x;
  long pitch, stride, m;
  int k;
  LATHE_DEVICE_MEMBER const T* at(long row) const { return x + row * pitch; }
};

// Read from where they lie, W elements at once (load_run()). `Rows` is as above, or has other places of rows.
template <class Rows, int W>
struct GlobalRows {
  using Source = Rows;
  using T = typename Rows::Type;
  Rows rows;
  long first;

  LATHE_DEVICE_MEMBER void prepare(const Rows&, const gemm::Block&) {}
  LATHE_DEVICE_MEMBER void start(const Rows& of, const gemm::Block& block) { rows = of, first = block.row; }

  // A lane's elements of a row of the tile from element `at` of K on, in pairs; zeros outside. What a row that is not
  // there leaves as it is, is to be 0 from the beginning.
  LATHE_DEVICE_MEMBER void load(unsigned (&to)[8], int row, int at) const {
    if (first + row >= rows.m) return;
    const T* from = rows.at(first + row);
    if (W == 8 && at + 16 <= rows.k) {
      load_pairs(to, from + at);
      return;
    }
    T run[16];
    load_run<W>(run, from, rows.stride, at, rows.k);
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) to[i] = pair_of(run[2 * i], run[2 * i + 1]);
  }
};

// Brought to shared memory all together, so that a block waits for them once: with each panel's own reads it would wait
// for one after the other, while its weights are there. Vectors of rows and of `pitch` lie at multiples of 16 bytes.
template <class Rows, int kM, int kThreads>
struct SharedRows {
  using Source = Rows;
  using T = typename Rows::Type;
  static constexpr int kPad = 8;  // elements between rows, so that lanes of several rows read different banks
  T* own;
  int pitch, first, count;

  LATHE_DEVICE_MEMBER void prepare(const Rows&, const gemm::Block&) {}
  LATHE_DEVICE_MEMBER void start(const Rows& rows, const gemm::Block& block) {
    own = reinterpret_cast<T*>(dynamic_shared());
    const int length = block.blocks * 64;
    first = static_cast<int>(block.k), pitch = length + kPad;
    count = rows.m - block.row < kM ? static_cast<int>(rows.m - block.row) : kM;
    for (int row = 0; row < count; ++row) {
      const T* from = rows.at(block.row + row);
      for (int at = thread_x() * 8; at < length; at += kThreads * 8) {
        const int left = gemm::clamp(rows.k - first - at, 8);
        copy_async16_cached(own + row * pitch + at, left > 0 ? from + first + at : from, left * 2);
      }
    }
    copy_async_commit();
    copy_async_wait<0>();
    barrier();
  }

  LATHE_DEVICE_MEMBER void load(unsigned (&to)[8], int row, int at) const {
    if (row < count) load_pairs(to, own + row * pitch + (at - first));
  }
};

}  // namespace gemv
