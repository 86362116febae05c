// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised before they are multiplied: each block does so for itself, in shared memory, instead of a
// launch that would bring a few of them through memory.
#pragma once

#include "gemv/rows.cuh"
#include "normalization/statistics.cuh"

namespace gemv {

// Rows of a Statistic (normalization/statistics.cuh), times a scale and plus a bias of T where there are any, rounded
// to T as kernels that write them do. Scale and bias are constants: they are on their way while the launch before runs.
// A block has all of K. In shared memory come the statistic's states for each row and warp, scale, bias, rows.
template <class T, class Statistic, bool kScale, bool kBias, int kM, int kThreads>
struct NormalizedRows : SharedRows<T, kM, kThreads> {
  struct Source {
    Rows<T> rows;
    Statistic statistic;
    const T *scale, *bias;
  };
  using State = typename Statistic::State;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kStateBytes = (kM * kWarps * static_cast<int>(sizeof(State)) + 15) / 16 * 16;

  LATHE_DEVICE_MEMBER void prepare(const Source& source, const gemm::Block& block) {
    const int length = block.blocks * 64;
    scale_ = reinterpret_cast<T*>(dynamic_shared() + kStateBytes);
    bias_ = scale_ + (kScale ? length : 0);
    let_next_begin();
    for (int at = thread_x() * 8; at < length; at += kThreads * 8) {
      const int left = gemm::clamp(source.rows.k - at, 8);
      if (kScale) copy_async16_cached(scale_ + at, left > 0 ? source.scale + at : source.scale, left * 2);
      if (kBias) copy_async16_cached(bias_ + at, left > 0 ? source.bias + at : source.bias, left * 2);
    }
  }

  LATHE_DEVICE_MEMBER void start(const Source& source, const gemm::Block& block) {
    const Statistic& statistic = source.statistic;
    const int k = source.rows.k;
    this->copy(source.rows, block, bias_ + (kBias ? block.blocks * 64 : 0));
    auto* states = reinterpret_cast<State*>(dynamic_shared());
    for (int row = 0; row < this->count; ++row) {
      State state = statistic.start();
      for (int at = thread_x() * 8; at < k; at += kThreads * 8)
        add(statistic, state, this->own + row * this->pitch + at, k - at);
      reduce_lanes<32>(statistic, state);
      if (lane() == 0) states[row * kWarps + warp()] = state;
    }
    barrier();
    for (int row = 0; row < this->count; ++row) {
      State state = states[row * kWarps];
      LATHE_UNROLL
      for (int other = 1; other < kWarps; ++other) statistic.merge(state, states[row * kWarps + other]);
      const auto factors = statistic.finish(state, static_cast<float>(k));
      for (int at = thread_x() * 8; at < k; at += kThreads * 8)
        normalize(statistic, factors, this->own + row * this->pitch + at, at, k - at);
    }
    barrier();
  }

 private:
  // Up to 8 neighbours, of which `count` are of the row.
  LATHE_DEVICE_MEMBER static void add(const Statistic& statistic, State& state, const T* from, int count) {
    float v[1][8];
    read(v[0], from);
    if (count >= 8) {
      statistic.add(state, v);
      return;
    }
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) {
      const float each[1][1] = {{v[0][i]}};
      if (i < count) statistic.add(state, each);
    }
  }

  LATHE_DEVICE_MEMBER void normalize(const Statistic& statistic, const typename Statistic::Factors& factors, T* row,
                                     int at, int count) const {
    float v[8], by[8];
    read(v, row);
    statistic.apply(v, factors);
    if constexpr (kScale) {
      read(by, scale_ + at);
      LATHE_UNROLL
      for (int i = 0; i < 8; ++i) v[i] *= by[i];
    }
    if constexpr (kBias) {
      read(by, bias_ + at);
      LATHE_UNROLL
      for (int i = 0; i < 8; ++i) v[i] += by[i];
    }
    Vec<T, 8> result = {};  // zeros behind the row, by which the weights' own zeros are multiplied
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i)
      if (i < count) result.at[i] = from_float<T>(v[i]);
    *reinterpret_cast<Vec<T, 8>*>(row) = result;
  }

  LATHE_DEVICE_MEMBER static void read(float (&to)[8], const T* from) {
    const auto vector = *reinterpret_cast<const Vec<T, 8>*>(from);
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) to[i] = to_float(vector.at[i]);
  }

  T *scale_, *bias_;
};

}  // namespace gemv
