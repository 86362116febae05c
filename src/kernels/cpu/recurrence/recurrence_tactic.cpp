// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks: kernel "recurrence".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/recurrence/layer_params_tactic.h"
#include "kernels/cpu/recurrence/recurrence.h"

namespace lathe::cpu {
namespace {

using namespace recurrence;

constexpr size_t kR = 1, kBias = 2, kLengths = 3, kPeepholes = 6;

Result<Emission> emit(const Problem& problem) {
  const auto& attrs = problem.attrs<RecurrenceAttrs>();
  LATHE_ASSIGN(const LayerParams layer, layer_params(attrs));
  const Operand& r = problem.inputs[kR];
  const int64_t hidden = *r.dims[2].as_constant();
  Emission emission = emission_of(problem, RecurrenceParams{layer, hidden, r.constant != nullptr}, all_inputs(problem));
  if (!r.constant) return emission;
  CellType type;
  type.cell = static_cast<Cell>(attrs.cell);
  type.linear_before_reset = attrs.linear_before_reset;
  const CellPanels panels(type, hidden);
  const int64_t directions = layer.directions();
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::f32, {directions * panels.floats()}));
  for (int64_t d = 0; d < directions; ++d)
    pack(panels, r.constant->as<float>() + d * type.gates() * hidden * hidden, hidden, 1,
         packed.mutable_as<float>() + d * panels.floats());
  emission.packed.push_back(std::move(packed));
  emission.inputs[kR] = {StepInput::packed, 0};
  return emission;
}

}  // namespace

Matched match_recurrence(const Problem& problem) {
  if (!problem.is(OpKind::recurrence)) return refuse("not a recurrence");
  if (auto reason = unsupported_feature(problem, {.further_results = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_epilogue(problem)) return refuse(*std::move(reason));
  for (const auto* list : {&problem.inputs, &problem.outputs})
    for (const Operand& operand : *list)
      if (!operand.omitted && !is_integer(operand.dtype) && operand.dtype != DType::f32)
        return refuse(fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype)));
  if (problem.has_input(kLengths) && size_of(problem.inputs[kLengths].dtype) < 4)
    return refuse("lengths of 8 or 16 bits");
  if (problem.inputs[kR].dims[2].as_constant().value_or(0) < 1) return refuse("the hidden size is dynamic or 0");
  for (const Operand* operand : {&problem.inputs[0], &problem.outputs[0]})
    if (operand->strides[2] != Expr(1)) return refuse("rows are not contiguous");
  for (const size_t i : {kBias, kPeepholes})
    if (problem.has_input(i) && problem.inputs[i].strides[1] != Expr(1)) return refuse("rows are not contiguous");
  return match_later([&problem] { return emit(problem); }, predicted_us(problem, {.vectors = 4}));
}

}  // namespace lathe::cpu
