// SPDX-License-Identifier: Apache-2.0
// Kernel "gemm": out[..., M, N] = program(A[..., M, K] x B[..., K, N], operands...), f32.
//
// Inputs: 0 = A, any strides. 1 = B: packed weights (see pack_weights), a rank-1 f32 tensor of packed_floats(); or,
// with `weights` 0, a plain f32 tensor [..., K, N] of any strides (a transposed B is one of swapped strides), packed
// while running. 2... = the program's operands, each of the output's rank with dimensions equal to the output's or 1.
// Output: [..., M, N] of at least the rank of A and a plain B, which is at least 2; any strides but the last, which is
// 1. The leading dimensions of A and of a plain B broadcast. Packed weights have `batches` matrices: 1, shared by all,
// or as many as the output has.
//
// Record.params: 0 K, 1 N (both 0 for a plain B, whose launch says them), 2 weights (1 = packed, 0 = plain), 3 batches,
// 4 panel width (16, 32, 48, 64), 5 tile rows (1..14), 6 row block (0 = all), 7 k block (0 = all), 8 split (0 = threads
// share rows, 1 = columns).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/gemm/driver.h"

namespace lathe::cpu::gemm {

inline constexpr int kParams = 9;

struct GemmShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

// Blockings worth trying, best guess first, at most 24. The weights must be packed for the chosen one's width.
std::vector<Blocking> candidates(const GemmShape& shape, int threads);

// Record.params of a launch.
std::vector<int64_t> params(int64_t k, int64_t n, bool packed, int64_t batches, const Blocking& blocking);

// Packed size in floats, and packing, of `batches` matrices B[k, n] lying batch_stride apart, element (k, n) at
// k * k_stride + n * n_stride. `packed` has packed_floats() elements, 64-byte aligned.
int64_t packed_floats(int64_t k, int64_t n, int64_t batches, int width);
void pack_weights(const float* source, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t batches,
                  int64_t batch_stride, int width, std::span<float> packed);

}  // namespace lathe::cpu::gemm
