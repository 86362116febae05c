// SPDX-License-Identifier: Apache-2.0
// Kernel `copy`: moves elements between strided tensors of one element size; changes no bit of them.
//   program  none
//   params   CopyParams
//   inputs   one; fill and eye do not read it, and fill may be without; reshape may have a second one, which is not
//   read outputs  one
// Inputs and outputs must not overlap, except as the same memory with the same strides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/kernel.h"
#include "device/params.h"

namespace lathe::cpu {

enum class CopyMode : int64_t {
  copy,  // the input, broadcast to the output: layout change, transpose, slice, expand, by strides
  fill,  // one element everywhere
  eye,   // one element on a diagonal and 0 elsewhere
  // An image [n, c, h, w] whose blocks of pixels are channels:
  to_pixels_dcr,  // from channels [n, block, block, c]
  to_pixels_crd,  // from channels [n, c, block, block]
  to_channels,    // the other way round, to channels [n, block, block, c]
  reshape,        // the input's elements in row-major order
};

struct CopyParams {
  CopyMode mode = CopyMode::copy;
  uint64_t bits = 0;  // of the element of fill and eye
  int64_t k = 0;      // of eye: how far the diagonal lies above the main one
  int64_t block = 1;  // pixels of a block along each side
  static constexpr auto members() {
    return std::tuple(&CopyParams::mode, &CopyParams::bits, &CopyParams::k, &CopyParams::block);
  }
};

// Copies `source`, broadcast to the shape of `target`, splitting the work over the pool. Both have the same element
// size.
void copy_tensor(const TensorArg& target, const TensorArg& source, ThreadPool& pool);
// Copies as many elements in row-major order. Both have the same element size.
void copy_in_order(const TensorArg& target, const TensorArg& source, ThreadPool& pool);
// Sets each element of `target` to the low bytes of `bits`.
void fill_tensor(const TensorArg& target, uint64_t bits, ThreadPool& pool);

}  // namespace lathe::cpu
