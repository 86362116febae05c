// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_tensors.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu::attention {

Result<> check_tensors(const AttentionParams& params, std::span<const TensorArg> inputs,
                       std::span<const TensorArg> outputs) {
  const auto refuse = [](const char* misfit) {
    return fail(ErrorCode::shape_mismatch, "attention: {} do not fit", misfit);
  };
  if (inputs.size() < own_inputs(params) || outputs.size() != 1) return refuse("the numbers of tensors");
  const TensorArg &q = inputs[kQ], &k = inputs[kK], &v = inputs[kV], &out = outputs[0];
  bool fits = k.dims[0] == q.dims[0] && v.dims[0] == q.dims[0] && k.dims[3] == q.dims[3] && v.dims[1] == k.dims[1] &&
              v.dims[2] == k.dims[2] && out.dims[0] == q.dims[0] && out.dims[1] == q.dims[1] &&
              out.dims[2] == q.dims[2] && out.dims[3] == v.dims[3] &&
              (k.dims[1] == 0 ? q.dims[1] == 0 : q.dims[1] % k.dims[1] == 0) &&
              (out.strides[3] == 1 || out.dims[3] == 1) && k.dims[2] <= INT32_MAX && k.dims[3] <= INT32_MAX;
  for (const TensorArg* tensor : {&q, &k, &v, &out}) fits = fits && tensor->dtype == DType::f32 && tensor->rank == 4;
  const auto holds = [&](const TensorArg& tensor, int rank, int64_t rows) {
    return tensor.dtype == DType::f32 && tensor.rank == rank && tensor.dims[0] == rows;
  };
  const char* misfit = fits ? nullptr : "Q, K, V and the output";
  if (params.masked) {
    const TensorArg& mask = inputs[kMask];
    TensorArg scores = q;
    scores.dims[3] = k.dims[2];
    if ((mask.dtype != DType::f32 && mask.dtype != DType::boolean) || mask.rank > 4 || !broadcasts_to(mask, scores))
      misfit = "the mask's dimensions";
  }
  if (params.has_sinks && !holds(inputs[sinks_input(params)], 1, q.dims[1])) misfit = "the sinks";
  if (params.has_distances) {
    const TensorArg& distances = inputs[distances_input(params)];
    const bool is_row = holds(distances, 2, 1) || holds(distances, 2, q.dims[1]);
    const bool hides = params.masked && inputs[kMask].dtype == DType::boolean && params.hidden != -HUGE_VALF;
    if (!is_row || hides || distances.dims[1] != std::max<int64_t>(q.dims[2] + k.dims[2] - 1, 0))
      misfit = "the distances";
  }
  if (misfit) return refuse(misfit);
  return params.is_valid() ? Result<>{} : refuse("its settings");
}

}  // namespace lathe::cpu::attention
