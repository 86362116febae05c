// SPDX-License-Identifier: Apache-2.0
// Kernel "gemm": out[..., M, N] = program(A[..., M, K] x B[..., K, N], operands...), f32. With `bf16`, A and B are
// rounded to bf16 as they are packed, and their products are summed in f32.
//
// Inputs: 0 = A, any strides. 1 = B: packed weights (see pack_weights), a rank-1 f32 tensor of packed_floats(), or of
// bf16 and twice as many elements (see gemm/pairs.h); or, without `packed`, a plain f32 tensor [..., K, N] of any
// strides (a transposed B is one of swapped strides), packed while running. 2... = the program's operands, each of the
// output's rank with dimensions equal to the output's or 1.
// Output: [..., M, N] of at least the rank of A and a plain B, which is at least 2; any strides but the last, which is
// 1. The leading dimensions of A and of a plain B broadcast. Packed weights have `batches` matrices: 1, shared by all,
// or as many as the output has.
// Record.params: GemmParams.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/params.h"
#include "kernels/cpu/gemm/driver.h"

namespace lathe::cpu::gemm {

struct GemmParams {
  int64_t k = 0, n = 0;  // 0 for a plain B, whose launch says them
  bool packed = false;   // B
  int64_t batches = 1;
  Blocking blocking = {};  // with bf16, its k block is in pairs
  bool bf16 = false;
  static constexpr size_t kAddedMembers = 1;  // since 0.1.0
  static constexpr auto members() {
    return std::tuple(&GemmParams::k, &GemmParams::n, &GemmParams::packed, &GemmParams::batches, &GemmParams::blocking,
                      &GemmParams::bf16);
  }
};

struct GemmShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

// Blockings worth trying, at most 24. The weights must be packed for the chosen one's width.
std::vector<Blocking> candidates(const GemmShape& shape, int threads);
// Those of bf16 whose A is in blocks, and whose K is in pairs: panels are as wide as a matrix register.
std::vector<Blocking> matrix_candidates(const GemmShape& shape, int threads);

std::string to_text(const Blocking& blocking);

// Packed size in floats, and packing, of `batches` matrices B[k, n] lying batch_stride apart, element (k, n) at
// k * k_stride + n * n_stride. `packed` has packed_floats() elements, 64-byte aligned.
int64_t packed_floats(int64_t k, int64_t n, int64_t batches, int width);
void pack_weights(const float* source, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t batches,
                  int64_t batch_stride, int width, std::span<float> packed);

}  // namespace lathe::cpu::gemm
