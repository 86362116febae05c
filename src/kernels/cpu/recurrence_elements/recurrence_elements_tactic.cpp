// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks that kernel "recurrence" does not take: kernel "recurrence_elements".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/recurrence/layer_params_tactic.h"

namespace lathe::cpu {

Matched match_recurrence_elements(const Problem& problem) {
  if (!problem.is(OpKind::recurrence)) return refuse("not a recurrence");
  if (auto reason = unsupported_feature(problem, {.further_results = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_epilogue(problem)) return refuse(*std::move(reason));
  const DType type = problem.inputs[0].dtype;
  if (type != DType::f32 && type != DType::f64)
    return refuse(fmt::format("its input is {}, this kernel takes f32 and f64", name_of(type)));
  const Result<recurrence::LayerParams> params = recurrence::layer_params(problem.attrs<RecurrenceAttrs>());
  if (!params) return refuse(params.error().message);
  return match_one(emission_of(problem, *params, all_inputs(problem)), predicted_us(problem, {.clocks = 1.5}));
}

}  // namespace lathe::cpu
