// SPDX-License-Identifier: Apache-2.0
// Kernel "tensor_scatter".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/tensor_scatter/tensor_scatter.h"

namespace lathe::cpu {

Matched match_tensor_scatter(const Problem& problem) {
  if (!problem.is(OpKind::tensor_scatter)) return refuse("not an update of slices");
  const auto& attrs = problem.attrs<TensorScatterAttrs>();
  return match_root(problem, TensorScatterParams{axis_from_start(attrs.axis, problem.inputs[0]), attrs.circular},
                    problem.has_input(2) ? std::vector<size_t>{0, 1, 2} : std::vector<size_t>{0, 1});
}

}  // namespace lathe::cpu
