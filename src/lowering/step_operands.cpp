// SPDX-License-Identifier: Apache-2.0
// The tensors that a chosen step reads and writes.
#include "lowering/region_lowering.h"

namespace lathe {

using ir::Value;
using plan::TensorId;

void RegionLowering::set_operands(Pending& pending) {
  plan::Step& step = pending.step;
  const Region& region = *pending.region;
  const Problem& problem = pending.matches->problem();
  for (StepInput input : pending.emission->inputs) {
    const std::optional<size_t> inlined = std::exchange(input.inlined, std::nullopt);
    step.inputs.push_back(inlined ? input_of(pending.inlined[*inlined], problem.inlined[*inlined].problem, input,
                                             *pending.emission, step.name)
                                  : input_of(region, problem, input, *pending.emission, step.name));
  }
  for (const Value* output : region.outputs)  // of a region that moves elements in the order of its space
    step.outputs.push_back(region.moves_elements() ? tensors_.along(output, problem.outputs[0])
                                                   : tensors_.tensor_of(output));
  for (const Region& inlined : pending.inlined)
    if (inlined.root->has_trait(kUpdates)) step.outputs.push_back(tensors_.tensor_of(inlined.result()));
}

TensorId RegionLowering::input_of(const Region& region, const Problem& problem, const StepInput& input,
                                  const Emission& emission, const std::string& step) {
  switch (input.kind) {
    case StepInput::packed:
      return tensors_.packed_of(emission.packed[input.index], step + " packed");
    case StepInput::input:
      return as_read(region, input, problem);
    case StepInput::operand:
      return tensors_.along(region.expression.operands[input.index], problem.operands[input.index]);
    case StepInput::input_operand:
      return tensors_.along(region.producer_of(input.index)->operands[input.of_program + 1],
                            operand_of(problem, input));
  }
  return plan::kNoTensor;
}

// An input of the root as its kernel reads it: the placed tensor, perhaps in another order, or its channels-last copy.
TensorId RegionLowering::as_read(const Region& region, const StepInput& input, const Problem& problem) {
  const Value* value = region.input(input.index);
  if (!value) return plan::kNoTensor;
  const Operand& operand = problem.inputs[input.index];
  const bool is_moved = !operand.reassociation.empty();
  const auto copy = channels_last_.find(value);
  const bool is_copied = !is_moved && copy != channels_last_.end() && operand.strides[1] == Expr(1);
  const TensorId id = is_copied ? copy->second : is_moved ? tensors_.along(value, operand) : tensors_.tensor_of(value);
  return input.transposed ? tensors_.transposed(id) : id;
}

}  // namespace lathe
