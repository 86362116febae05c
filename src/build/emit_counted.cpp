// SPDX-License-Identifier: Apache-2.0
// Results whose sizes the device computes.
#include <algorithm>

#include "build/emitter.h"

namespace lathe {

using plan::TensorId;

namespace {

// Whether what running tells of the sizes are whole dimensions: what is read back is a dimension's extent.
bool dims_are_symbols(const ir::Value& result, const ir::Graph& graph) {
  return std::all_of(result.shape().begin(), result.shape().end(), [&](const Expr& dim) {
    std::vector<SymbolId> symbols;
    dim.collect_symbols(symbols);
    return dim.as_symbol() || std::none_of(symbols.begin(), symbols.end(), [&](SymbolId id) {
             return graph.symbols()[id].source == SymbolSource::computed;
           });
  });
}

}  // namespace

// Why one of the two steps would need more memory than is allowed; nullopt = neither does.
std::optional<std::string> Emitter::excess_of(const Problem& problem, const CountedTactic& tactic,
                                              const CountedEmission& emission, SymbolId counted) const {
  std::vector<int64_t> symbols = tuner_.largest(problem);
  if (const std::optional<int64_t> room = emission.found[0].evaluate(symbols)) symbols[counted] = *room;
  Problem find = problem;
  Operand omitted;
  omitted.omitted = true;
  for (const Emission* part : {&emission.find, &emission.write})
    for (const StepInput& input : part->inputs)
      find.inputs.resize(std::max(find.inputs.size(), input.index + 1), omitted);
  Problem write = find;
  find.outputs = {operand_at({"", DType::i64, emission.found, {}, plan::StorageKind::arena, 0, 0})};
  write.inputs.push_back(find.outputs[0]);
  Emission finds = emission.find, writes = emission.write;
  writes.inputs.push_back({StepInput::input, write.inputs.size() - 1});
  for (Emission* part : {&finds, &writes})
    if (part->kernel.empty()) part->kernel = tactic.name();
  if (auto excess = tuner_.excess_of(find, finds, symbols)) return excess;
  return tuner_.excess_of(write, writes, symbols);
}

// One or two steps for an op whose result's size depends on data; false where the device leaves it to the plain
// evaluation, or has a refusal.
Result<bool> Emitter::emit_counted(const Region& region, std::vector<std::string>& refusals) {
  if (!introduces_symbols(region, graph_)) return false;
  const Problem problem = problem_of(region);
  const auto found_tactic =
      std::find_if(counted_.begin(), counted_.end(), [&](const CountedTactic* each) { return each->takes(problem); });
  if (found_tactic == counted_.end()) return false;
  const CountedTactic& tactic = **found_tactic;
  LATHE_ASSIGN(const CountedEmission emission, tactic.emit(problem));
  const ir::Value* result = region.result();
  const std::optional<SymbolId> symbol =
      emission.by_rule ? std::nullopt : result->shape()[emission.output_dim].as_symbol();
  const auto dims_can_be_read = [&](const ir::Value* output) { return dims_are_symbols(*output, graph_); };
  const bool all_read = std::all_of(region.outputs.begin(), region.outputs.end(), dims_can_be_read);
  if (emission.by_rule ? !all_read : !symbol || region.outputs.size() != 1) return false;
  if (const auto excess = symbol ? excess_of(problem, tactic, emission, *symbol) : std::nullopt) {
    refusals.push_back(fmt::format("{}: {}", tactic.name(), *excess));
    return false;
  }
  if (mode_ == Mode::survey) return true;
  const auto step_of = [&](const Emission& part) -> Result<plan::Step> {
    plan::Step step;
    step.name = region.root->name();
    step.origin = region.root->origin();
    step.kernel = part.kernel.empty() ? std::string(tactic.name()) : part.kernel;
    step.params = part.params;
    step.tactic = std::string(tactic.name());
    for (const StepInput& input : part.inputs)
      step.inputs.push_back(region.input(input.index) ? as_read(region, input.index, problem.inputs[input.index], false)
                                                      : plan::kNoTensor);
    LATHE_TRY(describe_code(part, step));
    return step;
  };
  Result<plan::Step> write = step_of(emission.write);
  Result<plan::Step> find = emission.by_rule ? Result<plan::Step>() : step_of(emission.find);
  for (const Result<plan::Step>* step : {&write, &find})
    if (!*step) {  // its kernel does not compile
      refusals.push_back(fmt::format("{}: {}", tactic.name(), step->error().message));
      return false;
    }
  for (const ir::Value* output : region.outputs) write->outputs.push_back(tensor_of(output));
  if (emission.by_rule) {
    write->op = region.root->info().name;
    write->attributes = to_text(region.root->attributes());
  } else {
    const TensorId found = temporary(result->name() + " found", DType::i64, emission.found);
    find->name += " (counts)";
    find->outputs = {found};
    add_step(*std::move(find), "kernel");
    write->counts = {{*symbol, static_cast<uint32_t>(write->inputs.size()), emission.count}};
    write->inputs.push_back(found);
  }
  add_step(*std::move(write), "kernel");
  return true;
}

}  // namespace lathe
