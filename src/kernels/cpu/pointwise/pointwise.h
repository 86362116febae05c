// SPDX-License-Identifier: Apache-2.0
// Kernel `pointwise`: any fusion program over strided f32 tensors.
//   program  required
//   params   none
//   inputs   the program's inputs, in order: f32, u8 or i8, broadcast to the outputs' shape (dimensions equal or 1,
//            aligned at the last), any strides
//   outputs  the program's outputs, in order: f32, or u8 or i8 where the program ends with integers in their range; all
//            of one shape, any strides but 0
// An output may be the same memory as an input of the same shape and strides.
#pragma once

#include "kernels/cpu/program_block.h"

namespace lathe::cpu {

// Rough time of one element on one thread, in nanoseconds; decides how far work is split.
double estimated_ns_per_element(const BlockProgram& program);

}  // namespace lathe::cpu
