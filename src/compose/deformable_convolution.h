// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// A convolution whose taps are samples of x, moved by offsets and multiplied by a mask.
struct DeformableConvolution {
  Ints stride, padding, dilation;  // of each spatial dimension; the padding is that at the begin
  int64_t groups = 1;
  int64_t offset_groups = 1;  // into which the channels are divided, each with offsets and a mask of its own
};

// What they are of: x[n, c, spatial...], weight[o, c / groups, taps...], whose dimensions are known,
// offset[n, offset groups * taps * spatial dimensions, positions...], which lists the first dimension first;
// bias[o]? and mask[n, offset groups * taps, positions...]?. Samples beyond x are 0. -> [n, o, positions...].
struct DeformableOperands {
  ir::Value *x = nullptr, *weight = nullptr, *offset = nullptr, *bias = nullptr, *mask = nullptr;
};
ir::Value* deformable_convolution(ir::GraphBuilder& c, const DeformableOperands& operands,
                                  const DeformableConvolution& how);

}  // namespace lathe
