// SPDX-License-Identifier: Apache-2.0
// Kernel `scatter`: a tensor with updates at the places that indices name, as ONNX's ScatterElements and ScatterND.
//   program  none
//   params   ScatterParams; mode elements: update [i...] goes to output[i... with the axis's index replaced by
//            indices[i...]]; mode tuples, the last dimension of the indices: update [i..., run...] goes to
//            output[indices[i..., :]..., run...]
//   inputs   0: data of any type; 1: indices of any integer type; 2: updates of data's type; all of any strides.
//            Negative indices count from the end; others that lie outside are an error of the run.
//   outputs  0: of data's type and shape, any strides
// Updates of one place are combined in order; integers wrap, 16-bit floats are combined in f32 and rounded once.
#pragma once

#include "device/params.h"

namespace lathe::cpu {

enum class ScatterMode : int64_t { elements = 0, tuples = 1 };

struct ScatterParams {
  // In the order of the ops' enumeration. none: the last one stays.
  enum class Reduction : int64_t { none, add, mul, max, min };

  ScatterMode mode = ScatterMode::elements;
  int axis = 0;  // counts from 0; of elements
  Reduction reduction = Reduction::none;
  static constexpr auto members() {
    return std::tuple(&ScatterParams::mode, &ScatterParams::axis, &ScatterParams::reduction);
  }
};

}  // namespace lathe::cpu
