// SPDX-License-Identifier: Apache-2.0
// How the kernels that reduce walk their operands, and what they accumulate.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "device/tensor_arg.h"
#include "kernels/cpu/accumulate.h"
#include "kernels/cpu/reduce/reduce.h"

namespace lathe::cpu::reduce {

// What is accumulated of the elements; the rest of the reduction is done to the total.
Accumulation accumulation_of(Reduction op);

// `axes` is a bit set of the input's dimensions: those that are reduced.

// Refuses an output whose dimensions are not those of the input without the axes, or with 1 in their places.
Result<> check_dims(const TensorArg& input, const TensorArg& output, uint32_t axes);

// The output with the input's rank: reduced dimensions are 1.
TensorArg keep_dims(const TensorArg& output, const TensorArg& input, uint32_t axes);

// The loops of a reduction: those over results, and those over the elements of one result.
struct Loops {
  int kept_rank = 0, reduced_rank = 0;
  int64_t kept[kMaxRank], kept_in[kMaxRank], kept_out[kMaxRank];
  int64_t reduced[kMaxRank], reduced_in[kMaxRank];
  bool columns;  // the innermost loop is one over results, and contiguous in the input: results can be vectorized

  Loops(const TensorArg& input, const TensorArg& kept_output, uint32_t axes);
  int64_t results() const { return product(kept, kept_rank); }
  int64_t elements() const { return product(reduced, reduced_rank); }
  static int64_t product(const int64_t* dims, int rank) {
    int64_t p = 1;
    for (int d = 0; d < rank; ++d) p *= dims[d];
    return p;
  }
};

// Calls f(offset) for each index of the loops.
template <class F>
void for_each_offset(const int64_t* dims, const int64_t* strides, int rank, F&& f) {
  const int64_t count = Loops::product(dims, rank);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0, rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      offset += rest % dims[d] * strides[d];
      rest /= dims[d];
    }
    f(offset);
  }
}

}  // namespace lathe::cpu::reduce
