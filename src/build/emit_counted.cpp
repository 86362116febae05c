// SPDX-License-Identifier: Apache-2.0
// Results whose sizes the device computes.
#include <algorithm>

#include "build/emitter.h"

namespace lathe {

using plan::TensorId;

// Two steps for an op whose result's size depends on data; false where the device leaves it to the plain evaluation.
Result<bool> Emitter::emit_counted(const Region& region) {
  if (region.outputs.size() != 1 || !introduces_symbols(region, graph_)) return false;
  const Problem problem = problem_of(region);
  const auto found_tactic =
      std::find_if(counted_.begin(), counted_.end(), [&](const CountedTactic* each) { return each->takes(problem); });
  if (found_tactic == counted_.end()) return false;
  const CountedTactic& tactic = **found_tactic;
  LATHE_ASSIGN(const CountedEmission emission, tactic.emit(problem));
  const ir::Value* result = region.result();
  const std::optional<SymbolId> symbol = result->shape()[emission.output_dim].as_symbol();
  if (!symbol) return false;
  if (mode_ == Mode::survey) return true;
  const TensorId found = temporary(result->name() + " found", DType::i64, emission.found);
  const auto step_of = [&](const Emission& part) -> Result<plan::Step> {
    plan::Step step;
    step.name = region.root->name();
    step.origin = region.root->origin();
    step.kernel = part.kernel.empty() ? std::string(tactic.name()) : part.kernel;
    step.params = part.params;
    step.tactic = std::string(tactic.name());
    for (const StepInput& input : part.inputs) {
      const ir::Value* value = region.input(input.index);
      step.inputs.push_back(value ? as_read(value, problem.inputs[input.index], false) : plan::kNoTensor);
    }
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
