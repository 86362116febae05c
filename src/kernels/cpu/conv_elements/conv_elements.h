// SPDX-License-Identifier: Apache-2.0
// Kernel `conv_elements`: convolution and transposed convolution of any numbers, over 1 to 6 spatial dimensions, with
// weights that are packed at each run and padding that may follow from extents that vary: what the kernels `conv`,
// `depthwise` and `deconv` do not take. Integers wrap.
//   program  of f32 only: an epilogue; input 0 is the sum, the others are the kernel's inputs 2, 3, ...
//   params   ConvElementsParams
//   inputs   0: x [N, C, spatial...]; 1: weights [O, C / groups, kernel...], transposed [C, O / groups, kernel...], of
//            x's type or, of 8-bit integers, of either sign; then the program's operands, f32, which broadcast to the
//            output; or, without a program, a bias of the output's type that broadcasts to the output and depends on
//            the channel alone, or nothing
//   outputs  0: [N, O, spatial...] of x's type; of 8-bit integers i32
// All of any strides; fast where channels are contiguous.
#pragma once

#include <cstdint>
#include <vector>

#include "device/params.h"
#include "device/tensor_arg.h"
#include "kernels/cpu/contraction/contraction.h"
#include "kernels/padding_rule.h"

namespace lathe::cpu {

struct ConvElementsParams {
  struct Axis {
    int64_t stride = 1, dilation = 1;
    PaddingRule rule = PaddingRule::given;
    int64_t padding = 0;  // at the beginning, may be negative; else the output padding of a transposed convolution
    static constexpr auto members() { return std::tuple(&Axis::stride, &Axis::dilation, &Axis::rule, &Axis::padding); }
  };

  bool transposed = false;
  int64_t groups = 1;
  std::vector<Axis> axes;  // spatial ones
  static constexpr auto members() {
    return std::tuple(&ConvElementsParams::transposed, &ConvElementsParams::groups, &ConvElementsParams::axes);
  }

  // Outputs along an axis whose positions have the same remainder see the same taps, at pixels of x that advance
  // evenly: they are a phase.
  int64_t phases(size_t axis) const { return transposed ? axes[axis].stride : 1; }
};

// sums[i] += x[i] * weights[i], all of the lane's type
LATHE_ISA_DECLARE(void multiply_channels(DType lane, const void* x, const void* weights, void* sums, int64_t count))

}  // namespace lathe::cpu
