// SPDX-License-Identifier: Apache-2.0
// The rows of matrix products of floats: where those of A, of the output and of the program's operands lie.
#pragma once

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/row_map.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu::gemm {

inline constexpr int kStreams = 2 + kMaxEpilogueOperands;  // A, out, operands

// Rows of A that are contiguous along k, and the output and operand rows that belong to them.
class MatrixRows final : public RowSource {
 public:
  MatrixRows(const float* a, float* out, const BoundEpilogue& epilogue, const Tap* taps)
      : a_(a), out_(out), epilogue_(epilogue), taps_(taps) {}

  RowMap<kStreams> map;
  const int32_t* order = nullptr;  // numbers of the rows that are multiplied; null = all, as they follow each other

  // All rows of stacks of matrices that share B.
  void map_rows(const TensorArg& a, const TensorArg& out, std::span<const TensorArg> operands) {
    map.streams = 2 + epilogue_.count;
    for (int d = 0; d < out.rank - 1; ++d) {
      map.add_dim(out.dims[d]);
      map.set_stride(0, d, d < out.rank - 2 ? broadcast_stride_at(a, d, out.rank) : a.strides[a.rank - 2]);
      map.set_stride(1, d, out.strides[d]);
      for (int i = 0; i < epilogue_.count; ++i) map.set_stride(2 + i, d, broadcast_stride(operands[i], d));
    }
    map.collapse();
  }

  TileTaps fill(int64_t first, int count, TileScratch& scratch) const override {
    const auto store = [&](int stream, int row, int64_t offset) {
      if (stream == 0)
        scratch.a_rows[row] = a_ + offset;
      else if (stream == 1)
        scratch.where.out[row] = out_ + offset;
      else if (epilogue_.operands[stream - 2].varies_by_row)
        scratch.where.operand[stream - 2][row] = epilogue_.operands[stream - 2].data + offset;
    };
    if (!order) map.fill(first, count, store);
    for (int i = 0; order && i < count; ++i)
      map.fill(order[first + i], 1, [&](int stream, int, int64_t offset) { store(stream, i, offset); });
    return {scratch.a_rows, taps_};
  }

 private:
  const float* a_;
  float* out_;
  const BoundEpilogue& epilogue_;
  const Tap* taps_;
};

inline void make_dense(TensorArg& tensor) {
  int64_t stride = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    tensor.strides[d] = stride;
    stride *= tensor.dims[d];
  }
}

// A with its k contiguous, dense.
inline TensorArg repack(const TensorArg& a, float* to, ThreadPool& pool) {
  TensorArg dense = a;
  dense.data = to;
  make_dense(dense);
  copy_tensor(dense, a, pool);
  return dense;
}

// A, whose K is contiguous, dense and in pairs (gemm/pairs.h).
TensorArg in_pairs(const TensorArg& a, float* to, ThreadPool& pool);

inline bool repacks(const TensorArg& a) { return a.strides[a.rank - 1] != 1 && a.dims[a.rank - 1] != 1; }

}  // namespace lathe::cpu::gemm
