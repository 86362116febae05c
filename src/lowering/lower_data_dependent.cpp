// SPDX-License-Identifier: Apache-2.0
// Results whose sizes the device computes.
#include <algorithm>

#include "lowering/region_lowering.h"

namespace lathe {

using plan::TensorId;

namespace {

// Whether each symbol that running the region binds is the extent of a whole dimension, where it is read.
bool are_dimensions(const std::vector<SymbolId>& symbols, const Region& region) {
  return std::all_of(symbols.begin(), symbols.end(), [&](SymbolId id) {
    return std::any_of(region.outputs.begin(), region.outputs.end(), [&](const ir::Value* output) {
      return std::find(output->shape().begin(), output->shape().end(), Expr::symbol(id)) != output->shape().end();
    });
  });
}

}  // namespace

// Why one of the two steps would need more memory than is allowed; nullopt = neither does.
std::optional<std::string> RegionLowering::excess_of(const Problem& problem, std::string_view tactic,
                                                     const DataDependentEmission& emission, SymbolId size) const {
  std::vector<int64_t> symbols = tuner_.largest(problem);
  if (const std::optional<int64_t> room = emission.found[0].evaluate(symbols)) symbols[size] = *room;
  Problem find = problem;
  Operand omitted;
  omitted.omitted = true;
  for (const Emission* part : {&emission.find, &emission.write})
    for (const StepInput& input : part->inputs)
      find.inputs.resize(std::max(find.inputs.size(), input.index + 1), omitted);
  Problem write = find;
  find.outputs = {problems_.operand_at({"", DType::i64, emission.found, {}, plan::StorageKind::arena, 0, 0})};
  write.inputs.push_back(find.outputs[0]);
  Emission finds = emission.find, writes = emission.write;
  writes.inputs.push_back({StepInput::input, write.inputs.size() - 1});
  for (Emission* part : {&finds, &writes})
    if (part->kernel.empty()) part->kernel = tactic;
  if (auto excess = tuner_.excess_of(find, finds, symbols)) return excess;
  return tuner_.excess_of(write, writes, symbols);
}

// One or two steps for an op whose result's size depends on data; false where the device leaves it to the plain
// evaluation, or has a refusal.
Result<bool> RegionLowering::lower_data_dependent(const Region& region, std::vector<std::string>& refusals) {
  const std::vector<SymbolId> introduced = introduced_symbols(region, graph_);
  if (introduced.empty()) return false;
  const Problem problem = problems_.of(region);
  std::string_view tactic;
  DataDependentEmission emission;
  for (const DataDependentTactic& each : context_.options.data_dependent) {
    DataDependentMatched matched = each.match(problem);
    if (!matched) {
      refusals.push_back(fmt::format("{}: {}", each.name, matched.error().reason));
      continue;
    }
    tactic = each.name;
    emission = *std::move(matched);
    break;
  }
  if (tactic.empty()) return false;
  refusals.clear();
  const ir::Value* result = region.result();
  const std::optional<SymbolId> symbol =
      emission.by_rule ? std::nullopt : result->shape()[emission.output_dim].as_symbol();
  if (emission.by_rule ? !are_dimensions(introduced, region) : !symbol || region.outputs.size() != 1) return false;
  if (const auto excess = symbol ? excess_of(problem, tactic, emission, *symbol) : std::nullopt) {
    refusals.push_back(fmt::format("{}: {}", tactic, *excess));
    return false;
  }
  const auto pending_of = [&](const Emission& part) {
    Pending pending(region.root->name(), region.root->origin(), "kernel");
    pending.step.tactic = std::string(tactic);
    for (const StepInput& input : part.inputs) pending.step.inputs.push_back(as_read(region, input, problem));
    pending.region = region;
    pending.region->kind = RegionKind::single;
    pending.emission = part;
    return pending;
  };
  Pending write = pending_of(emission.write);
  for (const ir::Value* output : region.outputs) write.step.outputs.push_back(tensors_.tensor_of(output));
  if (emission.by_rule) {
    write.step.op = region.root->info().name;
    write.step.attributes = to_text(region.root->attributes());
  } else {
    Pending find = pending_of(emission.find);
    const TensorId found = tensors_.temporary(result->name() + " found", DType::i64, emission.found);
    find.step.name += " (counts)";
    find.step.outputs = {found};
    pending_.push_back(std::move(find));
    write.step.counts = {{*symbol, static_cast<uint32_t>(write.step.inputs.size()), emission.count}};
    write.step.inputs.push_back(found);
  }
  pending_.push_back(std::move(write));
  return true;
}

}  // namespace lathe
