// SPDX-License-Identifier: Apache-2.0
// What levels that stand for 0, of either factor, add to sums of products of levels:
//
//   sum((x - p) * (w - q)) = sum(x * w) - q * sum(x) - p * sum(w - q)
#pragma once

#include "passes/quantization.h"
#include "passes/rewrite.h"

namespace lathe {

// The factors as kernels of integers take them.
struct IntegerFactors {
  std::unique_ptr<Attributes> attributes;
  ir::Value *x, *w;
  // Levels of w that stand for 0: one, or one for each output channel; empty = 0 does. Constant weights of u8 have
  // become i8, 128 less, and their zero points have, too.
  std::vector<int64_t> zeros;
  Tensor weights = {};        // the constant w of i8, before channels are made fours
  ir::Value* ones = nullptr;  // in place of the weights, with which products are sums of x; null = nobody needs them
};
Result<IntegerFactors> integer_factors(Rewrite& r, const QuantizedProduct& product);

// The sums without what zero points add to them, times the scale.
Result<ir::Value*> dequantized_sums(Rewrite& r, const QuantizedProduct& product, const IntegerFactors& factors,
                                    Result<Tensor> scale);

}  // namespace lathe
