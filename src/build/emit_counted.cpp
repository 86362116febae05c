// SPDX-License-Identifier: Apache-2.0
// Results whose sizes the device computes.
#include "build/emitter.h"

namespace lathe {

using plan::TensorId;

// Two steps for an op whose result's size depends on data; false where the device leaves it to the plain evaluation.
Result<bool> Emitter::emit_counted(const Region& region) {
  if (!counted_ || region.outputs.size() != 1 || !introduces_symbols(region, graph_)) return false;
  const Problem problem = problem_of(region);
  if (!counted_->takes(problem)) return false;
  LATHE_ASSIGN(const CountedEmission emission, counted_->emit(problem));
  const ir::Value* result = region.result();
  const std::optional<SymbolId> symbol = result->shape()[emission.output_dim].as_symbol();
  if (!symbol) return false;
  if (mode_ == Mode::survey) return true;
  const TensorId found = temporary(result->name() + " found", DType::i64, emission.found);
  const auto step_of = [&](const Emission& part) -> Result<plan::Step> {
    plan::Step step;
    step.name = region.root->name();
    step.origin = region.root->origin();
    step.kernel = std::string(counted_->name());
    step.tactic = step.kernel;
    for (const StepInput& input : part.inputs)
      step.inputs.push_back(as_read(region.input(input.index), problem.inputs[input.index], false));
    LATHE_TRY(describe_code(part, step));
    return step;
  };
  LATHE_ASSIGN(plan::Step find, step_of(emission.find));
  find.name += " (counts)";
  find.outputs = {found};
  add_step(std::move(find), "kernel");
  LATHE_ASSIGN(plan::Step write, step_of(emission.write));
  write.counts = {{*symbol, static_cast<uint32_t>(write.inputs.size()), emission.count}};
  write.inputs.push_back(found);
  write.outputs = {tensor_of(result)};
  add_step(std::move(write), "kernel");
  return true;
}

}  // namespace lathe
