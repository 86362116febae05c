// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

struct DynamicQuantization {
  DType to;          // of the levels: i8, f8e4m3fn or f4e2m1
  DType scale_type;  // of the scales: a float, f8e4m3fn, or f8e8m0, to which they are rounded up
  Ints blocks;       // how many elements of each dimension share a scale, a known divisor of it; 0 = all
};

struct DynamicallyQuantized {
  ir::Value* levels;
  ir::Value* scales;  // a value for each block, of x's rank
};

// x in levels of each block's own scale, which is such that the block's largest magnitude becomes the largest level.
// The scales are of `second_scale`, one number, where there is one: a level stands for level * scale * second_scale.
DynamicallyQuantized dynamic_quantize(ir::GraphBuilder& c, ir::Value* x, ir::Value* second_scale,
                                      const DynamicQuantization& how);

// The numbers that the levels stand for, of this type.
ir::Value* dequantize_blocks(ir::GraphBuilder& c, const DynamicallyQuantized& x, ir::Value* second_scale,
                             const DynamicQuantization& how, DType type);

}  // namespace lathe
