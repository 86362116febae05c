// SPDX-License-Identifier: Apache-2.0
// Attention in f32 without tensor cores, for any element type and strides. Each warp has Queries queries; a block's
// warps share tiles of 32 keys and values, of which each lane has one key.
#pragma once

#include "attention/logits.cuh"
#include "lib/computed.cuh"
#include "lib/paged.cuh"
#include "lib/reduce.cuh"

struct LargestOf {
  using State = float;
  LATHE_DEVICE_MEMBER void merge(float& into, const float& from) const { into = fmaxf(into, from); }
};
struct SumOf {
  using State = float;
  LATHE_DEVICE_MEMBER void merge(float& into, const float& from) const { into += from; }
};

// `Rows` rows of `Columns` columns from row `first` at c of the tensor's dimension 2, as float; zeros beyond its end.
template <int Threads, int Rows, int Columns, int Pitch, class Tensor>
LATHE_DEVICE void copy_rows(float* shared, const Tensor& tensor, const long (&c)[4], long first) {
  constexpr int kChunks = (Columns + 3) / 4;
  for (int i = thread_x(); i < Rows * kChunks; i += Threads) {
    const int row = i / kChunks, column = i % kChunks * 4;
    const long at[4] = {c[0], c[1], first + row, column};
    const int left = Columns - column < 4 ? Columns - column : 4;
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (at[2] < tensor.dim(2)) load<3>(tensor, at, v, left);
    LATHE_UNROLL
    for (int j = 0; j < 4; ++j)
      if (j < left) shared[row * Pitch + column + j] = v[j];
  }
}

template <int D, int DV, int Queries>
struct WarpAttention {
  static constexpr int kKeyPitch = D + 1, kGroups = (DV + 31) / 32;
  float out[Queries][kGroups];  // columns lane, lane + 32, ...
  RunningSoftmax rows[Queries];

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int r = 0; r < Queries; ++r) {
      rows[r] = {-infinity(), 0.0f};
      LATHE_UNROLL
      for (int i = 0; i < kGroups; ++i) out[r][i] = 0.0f;
    }
  }

  // The weights of the lane's key, for all queries.
  template <class Logits>
  LATHE_DEVICE_MEMBER void weigh(const Logits& logits, const float* queries, const float* keys, long (&c)[4],
                                 long query, long first, float (&weights)[Queries]) {
    LATHE_UNROLL
    for (int r = 0; r < Queries; ++r) weights[r] = 0.0f;
    for (int d = 0; d < D; ++d) {
      const float key = keys[lane() * kKeyPitch + d];
      LATHE_UNROLL
      for (int r = 0; r < Queries; ++r) weights[r] += queries[r * D + d] * key;
    }
    c[3] = first + lane();
    LATHE_UNROLL
    for (int r = 0; r < Queries; ++r) {
      float logit[1] = {weights[r]};
      c[2] = query + r;
      logits.transform(logit, c);
      float largest = logit[0];
      reduce_lanes<32>(LargestOf{}, largest);
      const float factor = rows[r].raise(logits.reference(largest));
      weights[r] = logits.rounded(exp2_fast(logit[0] - rows[r].base()));
      rows[r].sum += weights[r];
      LATHE_UNROLL
      for (int i = 0; i < kGroups; ++i) out[r][i] *= factor;
    }
  }

  LATHE_DEVICE_MEMBER void add_values(const float* values, const float (&weights)[Queries]) {
    for (int key = 0; key < 32; ++key) {
      float v[kGroups];
      LATHE_UNROLL
      for (int i = 0; i < kGroups; ++i) v[i] = i * 32 + lane() < DV ? values[key * DV + i * 32 + lane()] : 0.0f;
      LATHE_UNROLL
      for (int r = 0; r < Queries; ++r) {
        const float weight = shuffle_idx(weights[r], key);
        LATHE_UNROLL
        for (int i = 0; i < kGroups; ++i) out[r][i] += weight * v[i];
      }
    }
  }

  template <class Out, class V, class Logits, class Fusion>
  LATHE_DEVICE_MEMBER void write(const Out& y, const V& values, const long (&kv)[4], const Logits& logits,
                                 const Fusion& fusion, long (&c)[4], long query) {
    LATHE_UNROLL
    for (int r = 0; r < Queries; ++r) {
      float sum = rows[r].sum;
      reduce_lanes<32>(SumOf{}, sum);
      const ToMeans mean = logits.to_means({rows[r].largest, sum}, c[1]);
      c[2] = query + r;
      if (c[2] >= y.dim(2)) continue;
      LATHE_UNROLL
      for (int i = 0; i < kGroups; ++i) {
        c[3] = i * 32 + lane();
        if (c[3] >= DV) continue;
        float v[1] = {mean(out[r][i])};
        if constexpr (Logits::kMeanForNone)
          if (mean.is_of_all) mean_of_values(v, values, kv, c[3]);
        fusion.template apply<3, 1>(v, c, 1);
        store<3, 1>(y, c, v, 1);
      }
    }
  }
};

// Grid (batch * heads * tiles of Warps * Queries queries).
template <int D, int DV, int Warps, int Queries, class Q, class K, class V, class Out, class Logits, class Fusion>
LATHE_DEVICE void attend_simt(const Q& q, const K& k, const V& v, const Out& y, const Logits& logits,
                              const Fusion& fusion) {
  using Work = WarpAttention<D, DV, Queries>;
  constexpr int kThreads = 32 * Warps, kRows = Warps * Queries;
  const long heads = q.dim(1);
  const HeadOfBlock at(heads, (q.dim(2) + kRows - 1) / kRows);
  const long first_query = static_cast<long>(at.block) * kRows;
  long c[4] = {at.batch, at.head, 0, 0};
  const long own[4] = {c[0], c[1], 0, 0}, kv[4] = {c[0], c[1] / (heads / k.dim(1)), 0, 0};
  const long end = logits.seen.end_of(first_query + kRows - 1), query = first_query + warp() * Queries;
  float* queries = reinterpret_cast<float*>(dynamic_shared());
  float* keys = queries + kRows * D;
  float* values = keys + 32 * Work::kKeyPitch;
  dependency_wait();
  copy_rows<kThreads, kRows, D, D>(queries, q, own, first_query);
  Work work;
  work.clear();
  for (long first = logits.seen.first_of(first_query) / 32 * 32; first < end; first += 32) {
    copy_rows<kThreads, 32, D, Work::kKeyPitch>(keys, k, kv, first);
    copy_rows<kThreads, 32, DV, DV>(values, v, kv, first);
    barrier();
    float weights[Queries];
    work.weigh(logits, queries + warp() * Queries * D, keys, c, query, first, weights);
    work.add_values(values, weights);
    barrier();
  }
  work.write(y, v, kv, logits, fusion, c, query);
}
