// SPDX-License-Identifier: Apache-2.0
// Kernel "attention": program(softmax(cap(Q K^T * scale) + distances + mask) V, operands...) of each head, f32, as
// ops.def says. With `bf16`, Q, K, V and the weights of V are rounded to bf16 as they are multiplied, where the CPU has
// instructions for that, unless there are few queries; else, where it has matrix registers, many f32 are multiplied
// there as sums of bf16 (gemm/split_floats.h). With `float8`, weights are rounded to f8e4m3fn (ops/float8_weights.h).
//
// Inputs: 0 = Q[b, hq, s, d], 1 = K[b, h, t, d], 2 = V[b, h, t, dv], f32 of any strides; with `masked`, the mask, f32
// or booleans of any strides, that broadcasts to [b, hq, s, t]; with `has_sinks`, the sinks, f32 [hq] of any stride;
// with `has_distances`, the distances, f32 [1 or hq, s + t - 1] of any strides; then the program's operands, each of
// the output's rank with dimensions equal to the output's or 1. Output: f32 [b, hq, s, dv], the last stride 1.
// Record.params: AttentionParams.
//
// A block of queries is multiplied by all keys that it sees, its scores become weights while the cache has them, and
// those are multiplied by the values. Queries of all heads that share keys and values are the rows of one matrix.
#pragma once

#include <cstdint>

#include "base/seen_keys.h"
#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::attention {

struct AttentionParams {
  float scale = 1, softcap = 0, hidden = 0;
  bool causal = false, zeros_for_nan = false, masked = false, bf16 = false, has_sinks = false;
  int64_t window = 0;
  bool mean_for_none = false, float8 = false, has_distances = false;
  static constexpr size_t kAddedMembers = 5;  // since 0.2.0
  SeenKeys seen() const { return {causal, window}; }
  // Of a record, which comes from a file.
  bool is_valid() const {
    return window >= 0 && window <= SeenKeys::kMostWindow && !(mean_for_none && has_sinks) && !(bf16 && float8);
  }
  static constexpr auto members() {
    using P = AttentionParams;
    return std::tuple(&P::scale, &P::softcap, &P::hidden, &P::causal, &P::zeros_for_nan, &P::masked, &P::bf16,
                      &P::has_sinks, &P::window, &P::mean_for_none, &P::float8, &P::has_distances);
  }
};

// The products of a query with the keys that it sees. There is room for whole vectors.
struct ScoreRow {
  float* scores;
  int64_t keys;
  float scale, softcap, hidden;
  // Of each key at most one of them: a number to add, or whether it is shown.
  const float* added = nullptr;
  const uint8_t* shown = nullptr;
  const float* sink = nullptr;  // one more score, whose weight is in the sum only
  bool is_second = false;       // of a pair of weights, whose first one is none
  bool float8 = false;
};

}  // namespace lathe::cpu::attention

namespace lathe::cpu {
// Makes weights of scores, which are still to be divided by their sum: the result.
LATHE_ISA_DECLARE(float weigh_scores(const attention::ScoreRow& row))
// The same, of weights in pairs of bf16 (gemm/pairs.h), which lie where the scores did, from the place before them on
// if the row `is_second`: those of the row's keys, and zeros up to `most` and a whole vector's worth.
LATHE_ISA_DECLARE(float weigh_scores_in_pairs(const attention::ScoreRow& row, int64_t most))
// data[r][c] *= factors[r]
LATHE_ISA_DECLARE(void scale_rows(float* data, int64_t stride, int rows, int columns, const float* factors))
}  // namespace lathe::cpu
