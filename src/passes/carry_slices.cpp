// SPDX-License-Identifier: Apache-2.0
#include "passes/carry_slices.h"

#include <algorithm>

#include "ir/builder.h"
#include "passes/body_writer.h"

namespace lathe {
namespace {

using ir::Value;

constexpr size_t kControls = 2;  // trip count and condition, before the carried values

// What the condition reads of the scanned arguments.
std::vector<Value*> slices_of_condition(const ir::Graph& graph, const ir::Node& end) {
  NodeSet all;
  for (const auto& node : graph.nodes()) all.insert(node.get());
  const NodeSet needed = producers_of({end.input(1)}, all);
  std::vector<Value*> found;
  for (size_t i = kControls + 2 * static_cast<size_t>(end.attrs<LoopEndAttrs>().carried); i < end.num_inputs(); ++i)
    if (needed.contains(end.input(i)->producer())) found.push_back(end.input(i));
  return found;
}

int64_t axis_of(const Value* slice) {
  const int64_t axis = slice->producer()->attrs<LoopArgumentAttrs>().axis;
  return axis < 0 ? axis + slice->rank() + 1 : axis;
}

// Rounds until one of these has no more slices, or the trip count is reached: an i64 without dimensions.
Value* rounds_of(ir::GraphBuilder& b, Value* trip_count, const std::vector<Value*>& slices) {
  const auto least = [&](Value* a, Value* c) { return b.binary(ElementwiseOp::min, a, c); };
  Value* rounds = nullptr;
  if (trip_count)
    rounds = b.binary(ElementwiseOp::max, b.reshape(b.cast(trip_count, DType::i64), Ints{}), b.integer_scalar(0));
  for (const Value* slice : slices) {
    const int64_t axis = axis_of(slice);
    Value* extent = b.squeeze(b.shape_of(slice->producer()->input(0), axis, axis + 1), {0});
    rounds = rounds ? least(rounds, extent) : extent;
  }
  return rounds;
}

// The slice of that round. Beyond the last one it is of zeros.
Value* slice_at(ir::GraphBuilder& b, const Value* slice, Value* round, Value* rounds) {
  const int64_t axis = axis_of(slice);
  Value* x = slice->producer()->input(0);
  Value* dims = b.concat({b.shape_of(x, 0, axis), b.ints({1}), b.shape_of(x, axis + 1)}, 0);
  Value* padded = b.concat({x, b.expand(b.scalar_like(0, x), dims)}, axis);
  if (slice->producer()->attrs<LoopArgumentAttrs>().reversed)  // the last is that of the first round
    round = b.minus(b.minus(rounds, b.integer_scalar(1)), round);
  return b.gather(padded, round, axis);
}

}  // namespace

Result<ir::Node*> carry_slices_of_condition(ir::Graph& graph, ir::Node* end) {
  if (!end->input(1)) return end;
  const std::vector<Value*> slices = slices_of_condition(graph, *end);
  if (slices.empty()) return end;
  ir::GraphBuilder b(graph, {end->name(), end->origin(), {}});
  Value* rounds = rounds_of(b, end->input(0), slices);
  LoopArgumentAttrs carried;
  carried.carried = true;
  Value* round = b.add(carried, {b.integer_scalar(0)});
  Value* next = b.plus(round, b.integer_scalar(1));
  for (Value* slice : slices) {
    Value* taken = slice_at(b, slice, round, rounds);
    if (b.failed()) return fail(*b.error());
    graph.redirect_uses(slice, taken);
  }
  const auto count = static_cast<std::ptrdiff_t>(end->attrs<LoopEndAttrs>().carried);
  std::vector<Value*> operands = end->inputs();
  const auto is_carried_now = [&](const Value* value) {
    return !value->producer() || !value->producer()->is(OpKind::loop_argument);
  };
  const auto scanned = operands.begin() + kControls + 2 * count;
  operands.erase(std::remove_if(scanned, operands.end(), is_carried_now), operands.end());
  operands.insert(operands.begin() + kControls + 2 * count, next);
  operands.insert(operands.begin() + kControls + count, round);
  operands[0] = rounds;
  LoopEndAttrs attributes;
  attributes.carried = count + 1;
  LATHE_ASSIGN(ir::Node * made, graph.add(attributes, std::move(operands), {end->name(), end->origin(), {}}));
  graph.redirect_uses(end->output(), made->output());
  graph.erase(end);
  for (const Value* slice : slices) graph.erase(slice->producer());
  LATHE_TRY(graph.sort());
  return made;
}

}  // namespace lathe
