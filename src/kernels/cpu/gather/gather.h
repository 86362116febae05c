// SPDX-License-Identifier: Apache-2.0
// Kernel `gather`: elements of a tensor that indices name, as ONNX's Gather, GatherElements and GatherND.
//   program  none
//   params   GatherParams
//            mode gather: output[outer..., i..., inner...] = data[outer..., indices[i...], inner...]; the outer
//            dimensions are those before the axis
//            mode elements: output[i...] = data[i...] with the axis's index replaced by indices[i...]
//            mode tuples: output[b..., i..., run...] = data[b..., indices[b..., i..., :]..., run...]; a tuple is the
//            last dimension of the indices, and `axis` is the number of batch dimensions b
//   inputs   0: data of any type; 1: indices of any integer type; both of any strides. Negative indices count from the
//            end; others that lie outside are an error of the run.
//   outputs  0: of data's type, any strides
#pragma once

#include "device/cpu/kernel.h"
#include "device/params.h"

namespace lathe::cpu {

enum class GatherMode : int64_t { gather = 0, elements = 1, tuples = 2 };

struct GatherParams {
  GatherMode mode = GatherMode::gather;
  int axis = 0;  // counts from 0
  static constexpr auto members() { return std::tuple(&GatherParams::mode, &GatherParams::axis); }
};

// output[outer..., i, inner...] = data[outer..., indices[i], inner...] of indices that all lie inside.
void gather_along_axis(const TensorArg& data, const TensorArg& indices, const TensorArg& output, int axis,
                       ThreadPool& pool);

}  // namespace lathe::cpu
