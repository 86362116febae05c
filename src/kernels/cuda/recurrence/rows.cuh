// SPDX-License-Identifier: Apache-2.0
// How a recurrence is divided among blocks, warps and lanes, and the products of a block's rows with the state.
#pragma once

#include "lib/math.cuh"
#include "lib/tensor.cuh"

enum class Cell { rnn, gru, lstm };

struct Omitted {};
template <class Tensor>
inline constexpr bool is_given = !is_same<Tensor, Omitted>;

// How the work is divided, as the tactic has chosen.
//   Hidden      units of the layer; Units: of a block
//   Batch       sequences that a team runs at a time
//   Team        blocks; Together: the team is part of a cooperative launch, not a cluster
//   Held        rows of each warp, and of each phase, whose weights are in registers; the others are in shared memory
//               (InShared) or read from global memory at each step
//   TwoPhases   a GRU without linear_before_reset: gate h multiplies its weights with r * h, after gates z and r
//   Constant    the weights are constants of the engine: they may be read before the launches before this one are done
template <Cell CellKind, int Hidden, int Units, int Batch, int Team, bool Together, int Threads, int Held,
          bool InShared, bool TwoPhases, bool Constant>
struct Cut {
  static constexpr Cell kCell = CellKind;
  static constexpr int kHidden = Hidden, kUnits = Units, kBatch = Batch, kTeam = Team, kThreads = Threads;
  static constexpr int kHeld = Held;
  static constexpr bool kTogether = Together;
  static constexpr bool kInShared = InShared, kTwoPhases = TwoPhases, kConstant = Constant;

  static constexpr int kGates = kCell == Cell::lstm ? 4 : kCell == Cell::gru ? 3 : 1;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kPieces = (kHidden + 127) / 128;                          // of 4 elements, of a row in a lane
  static constexpr int kPadded = kPieces * 128;                                  // floats of a row of state
  static constexpr int kSums = kGates * kUnits;                                  // of a sequence
  static constexpr int kElements = (kUnits * kBatch + kThreads - 1) / kThreads;  // cells of a thread
  static constexpr int kBatchGroup = kBatch < 8 ? kBatch : 8;
};

// The sums over the lanes of N values each (a power of two, 32 at most): lane i gets that of value i / (32 / N).
template <int N>
LATHE_DEVICE float sum_over_lanes(float (&v)[N]) {
  int mask = 16;
  LATHE_UNROLL
  for (int half = N / 2; half > 0; half /= 2, mask /= 2) {
    const bool upper = (lane() & mask) != 0;
    LATHE_UNROLL
    for (int i = 0; i < half; ++i) {
      const float other = shuffle_xor(upper ? v[i] : v[i + half], mask);
      v[i] = (upper ? v[i + half] : v[i]) + other;
    }
  }
  for (; mask > 0; mask /= 2) v[0] += shuffle_xor(v[0], mask);
  return v[0];
}

// A block's rows of the weights of Gates gates from FirstGate on: row g * kUnits + u is gate g of its unit u.
template <class C, int FirstGate, int Gates, class R>
struct Rows {
  using T = typename R::Type;
  static constexpr int kRows = Gates * C::kUnits;
  // Row i of a warp is row i * kWarps + warp() of the block. A warp has kEach rows, which are padded to kPerWarp, whole
  // groups of kGroup; the first kHeld are in registers. A group's products have kGroup * kBatchGroup sums, at most 32.
  static constexpr int kEach = (kRows + C::kWarps - 1) / C::kWarps;
  static constexpr int kWanted = 32 / C::kBatchGroup < 8 ? 32 / C::kBatchGroup : 8;
  static constexpr int kGroup = kEach >= kWanted || kWanted == 1 ? kWanted : kEach > 2 ? 4 : kEach > 1 ? 2 : 1;
  static constexpr int kPerWarp = (kEach + kGroup - 1) / kGroup * kGroup;
  static constexpr int kHeld = C::kHeld < kPerWarp ? C::kHeld / kGroup * kGroup : kPerWarp;
  static constexpr int kElsewhere = kPerWarp - kHeld;
  static constexpr int kSharedBytes =
      C::kInShared ? kElsewhere * C::kWarps * C::kPadded * static_cast<int>(sizeof(T)) : 0;

  const R& r;
  int direction, first_unit;
  T* shared;  // kSharedBytes: the rows that are not held, if InShared
  Vec<T, 4> held[kHeld > 0 ? kHeld : 1][C::kPieces];

  LATHE_DEVICE_MEMBER Rows(const R& weights, int direction_, int first_unit_, void* memory)
      : r(weights), direction(direction_), first_unit(first_unit_), shared(static_cast<T*>(memory)) {
    LATHE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      LATHE_UNROLL
      for (int piece = 0; piece < C::kPieces; ++piece) held[i][piece] = read(i, piece);
    }
    if constexpr (C::kInShared)
      for (int i = kHeld; i < kPerWarp; ++i)
        for (int piece = 0; piece < C::kPieces; ++piece) {
          const Vec<T, 4> v = read(i, piece);
          move_vector<4>(in_shared(i, piece), v.at);
        }
  }

  LATHE_DEVICE_MEMBER T* in_shared(int i, int piece) const {
    return shared + ((i - kHeld) * C::kWarps + warp()) * C::kPadded + (piece * 32 + lane()) * 4;
  }
  // The lane's piece of row i of its warp, from global memory; zeros beyond the ends.
  LATHE_DEVICE_MEMBER Vec<T, 4> read(int i, int piece) const {
    const int row = i * C::kWarps + warp(), k = (piece * 32 + lane()) * 4;
    const int unit = first_unit + row % C::kUnits, gate = FirstGate + row / C::kUnits;
    Vec<T, 4> v{};
    if (row >= kRows || unit >= C::kHidden || k >= C::kHidden) return v;
    const T* from = r.data + direction * r.stride(0) + (gate * C::kHidden + unit) * r.stride(1) + k * r.stride(2);
    if constexpr (R::kUnit == 2 && R::kVector >= 4 && C::kHidden % 4 == 0) return load_vector<4>(from);
    LATHE_UNROLL
    for (int e = 0; e < 4; ++e)
      if (k + e < C::kHidden) v.at[e] = from[e * r.stride(2)];
    return v;
  }
  template <bool IsHeld>
  LATHE_DEVICE_MEMBER Vec<T, 4> weights(int i, int piece) const {
    if constexpr (IsHeld)
      return held[i][piece];
    else if constexpr (C::kInShared)
      return load_vector<4>(in_shared(i, piece));
    else
      return read(i, piece);
  }

  // sums[b * kSums + FirstGate * kUnits + row] = the row times state[b]. A barrier must follow.
  LATHE_DEVICE_MEMBER void multiply(const float* state, float* sums) const {
    LATHE_UNROLL
    for (int i = 0; i < kHeld; i += kGroup) multiply_group<true>(i, state, sums);
    LATHE_NO_UNROLL
    for (int i = kHeld; i < kPerWarp; i += kGroup) multiply_group<false>(i, state, sums);
  }
  template <bool IsHeld>
  LATHE_DEVICE_MEMBER void multiply_group(int first, const float* state, float* sums) const {
    constexpr int kBatch = C::kBatchGroup, kValues = kGroup * kBatch;
    for (int b = 0; b < C::kBatch; b += kBatch) {
      float v[kValues] = {};
      if constexpr (IsHeld) {
        LATHE_UNROLL
        for (int piece = 0; piece < C::kPieces; ++piece) multiply_piece<true>(first, b, piece, state, v);
      } else {  // not unrolled: that would take registers from the held rows
        LATHE_NO_UNROLL
        for (int piece = 0; piece < C::kPieces; ++piece) multiply_piece<false>(first, b, piece, state, v);
      }
      const float sum = sum_over_lanes(v);
      constexpr int kLanesEach = 32 / kValues;
      const int value = lane() / kLanesEach, row = (first + value / kBatch) * C::kWarps + warp();
      if (lane() % kLanesEach == 0 && row < kRows)
        sums[(b + value % kBatch) * C::kSums + FirstGate * C::kUnits + row] = sum;
    }
  }
  template <bool IsHeld, int Values>
  LATHE_DEVICE_MEMBER void multiply_piece(int first, int b, int piece, const float* state, float (&v)[Values]) const {
    constexpr int kBatch = C::kBatchGroup;
    Vec<float, 4> h[kBatch];
    LATHE_UNROLL
    for (int j = 0; j < kBatch; ++j) h[j] = load_vector<4>(state + (b + j) * C::kPadded + (piece * 32 + lane()) * 4);
    LATHE_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      const Vec<T, 4> w = weights<IsHeld>(first + i, piece);
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float weight = to_float(w.at[e]);
        LATHE_UNROLL
        for (int j = 0; j < kBatch; ++j) v[i * kBatch + j] = fmaf(weight, h[j].at[e], v[i * kBatch + j]);
      }
    }
  }
};

template <class C, class R>
inline constexpr int kRowsBytes =
    Rows<C, 0, C::kTwoPhases ? 2 : C::kGates, R>::kSharedBytes + Rows<C, 2, C::kTwoPhases ? 1 : 0, R>::kSharedBytes;
// The dynamic shared memory of the kernel: state before and after a step (and r * h), sums, weights.
template <class C, class R>
inline constexpr int kSharedBytes = 4 * C::kBatch*((C::kTwoPhases ? 3 : 2) * C::kPadded + C::kSums) + kRowsBytes<C, R>;
