// SPDX-License-Identifier: Apache-2.0
// Symbolic integers inside shape rules: bounds that the symbol ranges prove, and contents of shape tensors.
#pragma once

#include "ops/op.h"

namespace lathe {

// min and max, decided where the ranges of the context's symbols allow it.
Expr smaller(const InferContext& context, const Expr& a, const Expr& b);
Expr larger(const InferContext& context, const Expr& a, const Expr& b);
inline bool proven_at_least(const InferContext& context, const Expr& e, int64_t bound) {
  return context.range(e).min >= bound;
}

// An error when input `i` is no 1-D tensor of integers.
Result<> require_list(const InferContext& context, size_t i, std::string_view what);

// How many entries the 1-D input `i` (a shape, axes, pads...) holds; an error when it is not 1-D or its length is
// only known while running.
Result<int64_t> list_length(const InferContext& context, size_t i, std::string_view what);

// For ops that copy elements: when something is known of the first `num_data` inputs' contents, and everything else is
// constant, states the contents of every output, by moving element numbers through the op's own evaluation. Call last.
void move_elements(InferContext& context, size_t num_data = 1);

}  // namespace lathe
