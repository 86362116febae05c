// SPDX-License-Identifier: Apache-2.0
#include "lowering/paired_epilogue.h"

#include <algorithm>
#include <array>

#include "lowering/expression_builder.h"
#include "lowering/program_builder.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Halves = std::array<Node*, 2>;

std::optional<Halves> halves_of(const Node& root) {
  const Value* y = root.output();
  if ((!root.is(OpKind::matmul) && !root.is(OpKind::expert_matmul)) || y->rank() == 0 || y->uses().size() != 2 ||
      y->is_graph_output())
    return std::nullopt;
  const Ints last = {static_cast<int64_t>(y->rank()) - 1};
  Halves halves = {};
  for (const ir::Use& use : y->uses()) {
    const Node& slice = *use.node;
    if (!slice.is(OpKind::slice) || use.index != 0 || slice.num_inputs() < 5) return std::nullopt;
    const std::optional<Ints> first = ints_of(slice.input(1)), axis = ints_of(slice.input(3));
    if ((first != Ints{0} && first != Ints{1}) || (axis != Ints{-1} && axis != last) ||
        ints_of(slice.input(4)) != Ints{2} || slice.output()->shape().back() * 2 != y->shape().back())
      return std::nullopt;
    halves[static_cast<size_t>((*first)[0])] = use.node;
  }
  return halves[0] && halves[1] ? std::optional(halves) : std::nullopt;
}

// The value's only reader, where it reads nothing but constants beside it.
Node* alone_with(const Value& value) {
  if (!value.has_single_use()) return nullptr;
  Node* next = value.uses()[0].node;
  const auto is_known = [&](const Value* input) { return !input || input == &value || input->content(); };
  return std::ranges::all_of(next->inputs(), is_known) ? next : nullptr;
}

}  // namespace

std::optional<Region> with_pairs(Node& root, const NodeOrder& order, const MayJoin& may_join) {
  const std::optional<Halves> halves = halves_of(root);
  if (!halves) return std::nullopt;
  Region region;
  region.kind = RegionKind::kernel;
  region.root = &root;
  region.nodes = {&root, (*halves)[0], (*halves)[1]};
  region.pairs = true;
  std::array<Value*, 2> sides = {(*halves)[0]->output(), (*halves)[1]->output()};
  Space space(order.symbols);
  const Shape index = space.add(sides[0]->shape());
  ProgramBuilder program(sides[0], sides[1]);
  const auto joins = [&](Node& next, const Value& before) {
    if (moves_elements(next) || !may_join(next) || next.output()->shape() != before.shape() ||
        !program.add(next, index))
      return false;
    region.nodes.push_back(&next);
    return true;
  };
  for (Value*& side : sides)
    while (Node* next = alone_with(*side)) {
      if (!joins(*next, *side)) return std::nullopt;
      side = next->output();
    }
  if (!sides[0]->has_single_use() || !sides[1]->has_single_use()) return std::nullopt;
  Node* meeting = sides[0]->uses()[0].node;
  if (sides[1]->uses()[0].node != meeting || !joins(*meeting, *sides[0])) return std::nullopt;
  std::optional<Expression> expression = program.finish(meeting->output(), std::move(space));
  if (!expression) return std::nullopt;
  region.expression = *std::move(expression);
  region.written.index = index;
  region.outputs = {meeting->output()};
  order.sort(region.nodes);
  return region;
}

}  // namespace lathe
