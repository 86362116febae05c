// SPDX-License-Identifier: Apache-2.0
// Kernel `copy`: moves elements between strided tensors of one element size; changes no bit of them.
//   program  none
//   params   empty, or {mode, ...}; dimensions count from 0:
//     {0}                      input 0 broadcast to output 0 (layout change, transpose, slice, expand: by strides)
//     {1, bits, begin...}      pad: output 0 is the element `bits` where input 0, placed at begin (one per dimension;
//                              negative crops), does not cover it
//     {2, axis}                concat: the inputs, one after the other along the axis, to output 0
//     {3, axis}                split: input 0, cut along the axis, to the outputs
//     {4, bits}                fill: output 0 is the element `bits` everywhere; an input is not read
//     {5, block, order}        blocks of pixels of an image [n, c, h, w] and channels: to pixels from channels
//                              [n, block, block, c] (order 0), from channels [n, c, block, block] (1); from pixels to
//                              channels [n, block, block, c] (2)
//     {6, bits, k}             eye: output 0 is the element `bits` on the diagonal k and 0 elsewhere; input 0 is not
//     read
// Inputs and outputs must not overlap, except as the same memory with the same strides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/kernel.h"

namespace lathe::cpu {

enum class CopyMode : int64_t { copy = 0, pad = 1, concat = 2, split = 3, fill = 4, blocks = 5, eye = 6 };

// Copies `source`, broadcast to the shape of `target`, splitting the work over the pool. Both have the same element
// size.
void copy_tensor(const TensorArg& target, const TensorArg& source, ThreadPool& pool);
// Sets each element of `target` to the low bytes of `bits`.
void fill_tensor(const TensorArg& target, uint64_t bits, ThreadPool& pool);

}  // namespace lathe::cpu
