// SPDX-License-Identifier: Apache-2.0
#include "lowering/region.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "indexing/access.h"
#include "lowering/epilogue_roots.h"
#include "lowering/expression_builder.h"

namespace lathe {

using ir::Node;
using ir::Value;

bool Expression::moves_operand(size_t i, const Shape& dims) const {
  const Shape index = space.indices();
  const Read& read = reads[i];
  return index.size() != dims.size() || read.fill || !read.map.domain.empty() ||
         space.current(read.map.index) != broadcast_index(operands[i]->shape(), dims, index);
}

bool Expression::moves_elements(const Shape& dims) const {
  if (space.rank() != dims.size()) return true;
  for (size_t i = 0; i < operands.size(); ++i)
    if (moves_operand(i, dims)) return true;
  return false;
}

bool Region::is_bias(const Value& operand) const {
  const bool has_bias = kind != RegionKind::pointwise && result()->shape().size() > 1;
  return has_bias && &operand == root->input(2) && operand.rank() == 1;
}

bool Region::moves_elements() const {
  if (expression.space.current(written.index) != expression.space.indices()) return true;
  if (kind == RegionKind::pointwise) return expression.moves_elements(result()->shape());
  for (size_t i = 0; i < expression.operands.size(); ++i)
    if (!is_bias(*expression.operands[i]) && expression.moves_operand(i, result()->shape())) return true;
  return false;
}

bool Region::only_permutes() const {
  return kind != RegionKind::kernel && expression.operands.size() == 1 &&
         std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return permutes_elements(*node); });
}

std::optional<Shape> Region::permuted_strides(const Shape& of_operand) const {
  const Space& space = expression.space;
  const std::optional<Access> access = access_of(expression.reads[0].map, of_operand, space);
  if (!access || access->offset != Expr(0)) return std::nullopt;
  const Shape extents = space.extents();
  Shape result;
  for (const Expr& e : written.index) {
    const std::vector<size_t> axes = axes_in(e, space);
    for (size_t i = 0; i + 1 < axes.size(); ++i)
      if (access->strides[axes[i]] != access->strides[axes[i + 1]] * extents[axes[i + 1]]) return std::nullopt;
    // No axis moves along a dimension of one element. Its stride may be any but 0, which means a repetition.
    result.push_back(axes.empty() ? volume(extents) : access->strides[axes.back()]);
  }
  return result;
}

const Expression* Region::producer_of(size_t input) const {
  const auto it = producers.find(input);
  return it == producers.end() ? nullptr : &it->second;
}

std::vector<size_t> Region::produced_inputs() const {
  std::vector<size_t> inputs;
  for (auto it = producers.rbegin(); it != producers.rend(); ++it) inputs.push_back(it->first);
  std::stable_partition(inputs.begin(), inputs.end(), [&](size_t i) {
    const std::vector<Value*>& operands = producers.at(i).operands;
    return operands.empty() || !operands[0]->content();
  });
  return inputs;
}

Value* Region::input(size_t i) const {
  const Expression* producer = producer_of(i);
  return producer ? producer->operands[0] : root->input(i);
}

std::vector<std::string> RefusedFusions::reasons(const Node& node) const {
  const auto it = reasons_.find(&node);
  return it == reasons_.end() ? std::vector<std::string>() : it->second;
}

std::string RefusedFusions::last_in_vain() const {
  const Note& last = notes_.back();
  return fmt::format("{} is grouped as before though {}, for no kernel takes it: {}",
                     last.root ? "'" + last.root->name() + "'" : "an expression", last.what,
                     fmt::join(last.reasons, "; "));
}

void RefusedFusions::give_up(const Node& node, const std::vector<std::string>& reasons) {
  reasons_.emplace(&node, reasons);
  alone_.insert(&node);
}

bool RefusedFusions::isolate(const Region& region, const std::function<bool(const Node&)>& which) {
  const size_t before = alone_.size();
  const bool has_others =
      std::any_of(region.nodes.begin(), region.nodes.end(), [&](Node* node) { return !which(*node); });
  for (const Node* node : region.nodes)
    if (has_others && which(*node)) alone_.insert(node);
  return alone_.size() > before;
}

void RefusedFusions::add(const Region& region, const std::vector<std::string>& reasons, std::optional<size_t> input) {
  const bool is_kernel = region.kind == RegionKind::kernel;
  const auto note = [&](std::string what) { notes_.push_back({region.root, std::move(what), reasons}); };
  const auto normalizes = [&](const Node& node) { return &node == region.expression.normalization; };
  if (is_kernel && !input && isolate(region, normalizes))
    return note("what normalises its result is a step of its own");
  const bool moves = is_kernel && region.moves_elements();
  if (region.has_further_results() && !input) {
    further_.insert(region.root);
    return note("what else is computed of its result is a step of its own");
  }
  if (!region.producers.empty() && !input) input = region.produced_inputs()[0];
  // Packed weights would be evaluated in each run: what moves the result is given up before them.
  if (input && !(moves && region.input(*input)->content())) {
    producers_.emplace(region.root, *input);
    note(fmt::format("input {} is written before it is read", *input));
  } else if (moves) {
    movements_.insert(region.root);
    note("what moves its result is a step of its own");
  } else if (is_kernel && region.nodes.size() > 1) {
    epilogues_.insert(region.root);
    note("what follows it is a step of its own");
  } else if (isolate(region, [](const Node& node) { return node.is(OpKind::pad); })) {
    note("padding is a step of its own");
  } else if (isolate(region, moves_elements)) {
    note("what moves elements is a step of its own");
  } else {
    alone_.insert(region.nodes.begin(), region.nodes.end());
    note("each node of its step stands alone");
  }
}

Region region_alone(Node& node, const std::vector<Range>& symbols) {
  Region region;
  region.kind = is_heavy(node) ? RegionKind::kernel : RegionKind::single;
  region.root = &node;
  region.nodes = {&node};
  if (region.kind == RegionKind::kernel) {
    Space space(symbols);
    region.written.index = space.add(node.output()->shape());
    ProgramBuilder program(node.output());
    if (Value* bias = bias_of(node)) program.add_bias(bias, region.written.index);
    region.expression = *program.finish(node.output(), std::move(space));
  } else {
    region.expression.program = {1, {}, {0}};
  }
  for (size_t i = 0; i < node.num_outputs(); ++i) region.outputs.push_back(node.output(i));
  return region;
}

}  // namespace lathe
