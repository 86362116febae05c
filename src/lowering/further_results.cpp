// SPDX-License-Identifier: Apache-2.0
#include "lowering/further_results.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "lowering/program_builder.h"

namespace lathe {
namespace {

using ir::Value;

bool keeps_places(const Region& region) { return region.boxes.empty() && !region.pairs && !region.moves_elements(); }

// Whether something beside the expression reads the region's result, which then has to be written anyway.
bool has_other_readers(const Value& result, const Region& expression) {
  const auto is_other = [&](const ir::Use& use) { return std::ranges::count(expression.nodes, use.node) == 0; };
  return result.is_graph_output() || std::ranges::any_of(result.uses(), is_other);
}

// Which of its operands is the region's result, where all others are constants.
std::optional<size_t> operand_from(const Region& region, const Expression& expression) {
  std::optional<size_t> found;
  for (size_t i = 0; i < expression.operands.size(); ++i) {
    if (expression.operands[i]->content()) continue;
    if (found || expression.operands[i] != region.result()) return std::nullopt;
    found = i;
  }
  return found;
}

std::span<uint16_t> operands_of(Instruction& instruction) {
  const OpcodeInfo* info = opcode_info(static_cast<int>(instruction.op));
  return std::span(instruction.operands).first(static_cast<size_t>(info->operands));
}

// Appends what is computed of the first result, which is that operand of `further`.
void append(const Expression& further, size_t result, Expression& expression) {
  Program& program = expression.program;
  const size_t added = further.operands.size() - 1, before = program.num_inputs, code = program.code.size();
  const auto moved = [&](uint16_t reg) { return static_cast<uint16_t>(reg < before ? reg : reg + added); };
  for (Instruction& instruction : program.code)
    for (uint16_t& reg : operands_of(instruction)) reg = moved(reg);
  for (uint16_t& reg : program.outputs) reg = moved(reg);
  const auto placed = [&](uint16_t reg) {
    if (reg >= further.operands.size()) return static_cast<uint16_t>(reg + before + code - 1);
    if (reg == result) return program.outputs[0];
    return static_cast<uint16_t>(before + reg - (reg > result ? 1 : 0));
  };
  for (Instruction instruction : further.program.code) {
    for (uint16_t& reg : operands_of(instruction)) reg = placed(reg);
    program.code.push_back(instruction);
  }
  program.outputs.push_back(placed(further.program.outputs[0]));
  program.num_inputs = static_cast<uint16_t>(before + added);
  for (size_t i = 0; i < further.operands.size(); ++i) {
    if (i == result) continue;
    expression.operands.push_back(further.operands[i]);
    expression.reads.push_back(further.reads[i]);
  }
}

// The region with the expression's result beside its own; nullopt where the expression reads something else.
std::optional<Region> joined(const Region& region, const Region& expression) {
  const Value& result = *region.result();
  if (expression.kind != RegionKind::pointwise || expression.outputs.size() != 1 || !keeps_places(expression) ||
      expression.result()->shape() != result.shape() || !has_other_readers(result, expression))
    return std::nullopt;
  const std::optional<size_t> from = operand_from(region, expression.expression);
  if (!from || expression.expression.space.indices() != region.expression.space.indices()) return std::nullopt;
  Region both = region;
  if (!round_result(both.expression.program, result)) return std::nullopt;
  append(expression.expression, *from, both.expression);
  if (!validate(both.expression.program)) return std::nullopt;
  both.nodes.insert(both.nodes.end(), expression.nodes.begin(), expression.nodes.end());
  both.outputs.push_back(expression.outputs[0]);
  return both;
}

// A first result that nothing but the further ones is computed of, as of levels of several scales, is not written.
void drop_unread(Region& region) {
  const Value& result = *region.result();
  const auto is_inside = [&](const ir::Use& use) { return std::ranges::count(region.nodes, use.node) > 0; };
  if (result.is_graph_output() || !std::ranges::all_of(result.uses(), is_inside)) return;
  region.outputs.erase(region.outputs.begin());
  region.expression.program.outputs.erase(region.expression.program.outputs.begin());
}

}  // namespace

std::vector<Region> with_further_results(std::vector<Region> regions, const GroupingOptions& options,
                                         const RefusedFusions& refused) {
  const std::span<const OpKind> ops = options.traits.further_results;
  if (!options.fuse || ops.empty()) return regions;
  std::unordered_map<const ir::Node*, size_t> owner;
  for (size_t i = 0; i < regions.size(); ++i)
    for (const ir::Node* node : regions[i].nodes) owner[node] = i;
  const auto writes_several = [&](const Region& region) {
    const bool is_listed = region.kind == RegionKind::kernel && std::ranges::count(ops, region.root->kind()) > 0;
    return (is_listed || region.kind == RegionKind::pointwise) && keeps_places(region) &&
           !refused.has_further_results_of(*region.root);
  };
  for (Region& region : regions) {
    if (!writes_several(region)) continue;
    for (const ir::Use& use : region.result()->uses()) {
      Region& reader = regions[owner.at(use.node)];
      std::optional<Region> both = &reader == &region ? std::nullopt : joined(region, reader);
      if (!both) continue;
      region = *std::move(both);
      reader = {};
    }
    if (region.has_further_results()) drop_unread(region);
  }
  std::erase_if(regions, [](const Region& region) { return region.nodes.empty(); });
  return regions;
}

}  // namespace lathe
