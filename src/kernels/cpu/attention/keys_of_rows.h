// SPDX-License-Identifier: Apache-2.0
// Which keys rows of queries see.
#pragma once

#include "kernels/cpu/attention/attention_sizes.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu::attention {

// Of the row's first element, in Q or the output.
inline int64_t offset_in(const TensorArg& tensor, const Place& place) {
  return place.batch * tensor.strides[0] + place.head * tensor.strides[1] + place.query * tensor.strides[2];
}

// The same in a tensor that broadcasts to Q, the output or the scores.
inline int64_t broadcast_offset_in(const TensorArg& tensor, const Place& place) {
  return place.batch * broadcast_stride_at(tensor, 0, 4) + place.head * broadcast_stride_at(tensor, 1, 4) +
         place.query * broadcast_stride_at(tensor, 2, 4);
}

// The weights of a row that sees no key: all are 1, in so many steps. Gives what the values' sums are to be multiplied
// by.
float weigh_alike(const Sizes& sizes, float* weights, int64_t steps);

// Keys beside others that a mask hides between them. What a mask of all heads says of a query is found once.
class KeysOfRows {
 public:
  // `mask`: null = there is none. `of_queries`: room for as many as there are queries, if there is a mask.
  KeysOfRows(const AttentionParams& params, const Sizes& sizes, const TensorArg* mask, RowKeys* of_queries)
      : params_(params), sizes_(sizes), mask_(mask), of_queries_(of_queries) {}

  // Writes which keys the row there sees.
  void find_at(Place& place);

 private:
  void find(const Place& place, RowKeys& keys) const;

  const AttentionParams& params_;
  const Sizes& sizes_;
  const TensorArg* const mask_;
  RowKeys* const of_queries_;
  int64_t batch_ = -1;  // whose they are
};

}  // namespace lathe::cpu::attention
