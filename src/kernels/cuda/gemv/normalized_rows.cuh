// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised before they are multiplied: each block does so for itself, in shared memory, instead of a
// launch that would bring a few of them through memory.
#pragma once

#include "gemv/rows.cuh"
#include "normalization/statistics.cuh"

namespace gemv {

// Rows of kK elements by a Statistic (normalization/statistics.cuh), times a scale and plus a bias of T where there are
// any, rounded to T as kernels that write them do. Scale and bias are constants: they are on their way while the launch
// before runs. A block has all of K. In shared memory come the statistic's states for each row and warp, scale, bias,
// rows.
template <class T, class Statistic, bool kScale, bool kBias, int kK, int kM, int kThreads>
struct NormalizedRows {
  struct Source {
    Rows<T> rows;
    Statistic statistic;
    const T *scale, *bias;
  };
  using State = typename Statistic::State;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kLength = (kK + 63) / 64 * 64, kPitch = kLength + 8;  // as SharedRows::kPad
  static constexpr int kStateBytes = (kM * kWarps * static_cast<int>(sizeof(State)) + 15) / 16 * 16;
  int count;

  LATHE_DEVICE_MEMBER static T* scale() { return reinterpret_cast<T*>(dynamic_shared() + kStateBytes); }
  LATHE_DEVICE_MEMBER static T* bias() { return scale() + (kScale ? kLength : 0); }
  LATHE_DEVICE_MEMBER static T* row_at(int row) { return bias() + (kBias ? kLength : 0) + row * kPitch; }

  LATHE_DEVICE_MEMBER void prepare(const Source& source, const gemm::Block&) {
    let_next_begin();
    if (kScale) copy(scale(), source.scale);
    if (kBias) copy(bias(), source.bias);
  }

  LATHE_DEVICE_MEMBER void start(const Source& source, const gemm::Block& block) {
    const Statistic& statistic = source.statistic;
    const Rows<T>& rows = source.rows;
    auto* states = reinterpret_cast<State*>(dynamic_shared());
    count = rows.m - block.row < kM ? static_cast<int>(rows.m - block.row) : kM;
    for (int row = 0; row < count; ++row) copy(row_at(row), rows.at(block.row + row));
    copy_async_commit();
    copy_async_wait<0>();  // for what the thread itself has copied, which is all that it reads before the last barrier
    for (int row = 0; row < count; ++row) {
      State state = statistic.start();
      each_vector<kK>([&](int at) { add(statistic, state, row_at(row) + at, kK - at); });
      reduce_lanes<32>(statistic, state);
      if (lane() == 0) states[row * kWarps + warp()] = state;
    }
    barrier();
    for (int row = 0; row < count; ++row) {
      State state = states[row * kWarps];
      LATHE_UNROLL
      for (int other = 1; other < kWarps; ++other) statistic.merge(state, states[row * kWarps + other]);
      const auto factors = statistic.finish(state, static_cast<float>(kK));
      each_vector<kK>([&](int at) { normalize(statistic, factors, row_at(row) + at, at); });
    }
    barrier();
  }

  LATHE_DEVICE_MEMBER void load(unsigned (&to)[8], int row, int at) const {
    if (row < count) load_pairs(to, row_at(row) + at);
  }

 private:
  // The first of each 8 elements, up to kEnd, that are the thread's: in every loop the same.
  template <int kEnd, class Use>
  LATHE_DEVICE_MEMBER static void each_vector(const Use& use) {
    constexpr int kStep = 8 * kThreads;
    LATHE_UNROLL
    for (int i = 0; i < (kEnd + kStep - 1) / kStep; ++i) {
      const int at = i * kStep + thread_x() * 8;
      if (kEnd % kStep == 0 || at < kEnd) use(at);
    }
  }

  // Zeros behind the last element.
  LATHE_DEVICE_MEMBER static void copy(T* to, const T* from) {
    each_vector<kLength>([&](int at) {
      const int valid = kK == kLength ? 8 : gemm::clamp(kK - at, 8);
      copy_async16_cached(to + at, valid > 0 ? from + at : from, valid * 2);
    });
  }

  // 8 neighbours, of which `inside` at most are of the row.
  LATHE_DEVICE_MEMBER static void add(const Statistic& statistic, State& state, const T* from, int inside) {
    float v[1][8];
    read(v[0], from);
    if (kK % 8 == 0 || inside >= 8) {
      statistic.add(state, v);
      return;
    }
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) {
      const float each[1][1] = {{v[0][i]}};
      if (i < inside) statistic.add(state, each);
    }
  }

  LATHE_DEVICE_MEMBER static void normalize(const Statistic& statistic, const typename Statistic::Factors& factors,
                                            T* row, int at) {
    float v[8], by[8];
    read(v, row);
    statistic.apply(v, factors);
    if constexpr (kScale) {
      read(by, scale() + at);
      LATHE_UNROLL
      for (int i = 0; i < 8; ++i) v[i] *= by[i];
    }
    if constexpr (kBias) {
      read(by, bias() + at);
      LATHE_UNROLL
      for (int i = 0; i < 8; ++i) v[i] += by[i];
    }
    Vec<T, 8> result = {};  // zeros behind the row, by which the weights' own zeros are multiplied
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i)
      if (kK % 8 == 0 || at + i < kK) result.at[i] = from_float<T>(v[i]);
    *reinterpret_cast<Vec<T, 8>*>(row) = result;
  }

  LATHE_DEVICE_MEMBER static void read(float (&to)[8], const T* from) {
    const auto vector = *reinterpret_cast<const Vec<T, 8>*>(from);
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) to[i] = to_float(vector.at[i]);
  }
};

}  // namespace gemv
