// SPDX-License-Identifier: Apache-2.0
// Kernel `tensor_scatter`: a tensor with slices replaced by those of an update, as ONNX's TensorScatter.
//   program  none
//   params   TensorScatterParams
//   inputs   0: x of any type; 1: the update, of x's type and dims but along the axis; 2: where the slices of each
//            batch entry begin, integers; it may be left out, and they begin at 0 then. All of any strides. Slices that
//            reach beyond x are an error of the run unless they are circular.
//   outputs  0: of x's type and shape, any strides. It may be x's own memory: then only the slices are written.
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct TensorScatterParams {
  int axis = 1;  // counts from 0, which it is not: that is the batch
  bool circular = false;
  static constexpr auto members() { return std::tuple(&TensorScatterParams::axis, &TensorScatterParams::circular); }
};

}  // namespace lathe::cpu
