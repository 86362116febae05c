// SPDX-License-Identifier: Apache-2.0
// What the rounds of a loop append to a tensor that they do not read is stacked, and appended behind the loop: carried
// along, the tensor would be copied in every round.
#include <algorithm>

#include "ir/builder.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr size_t kControls = 2;  // trip count and condition, before the carried values

// Whether all rounds know the same dims.
bool stays(const ir::Value& value, const std::vector<SymbolId>& inner) {
  std::vector<SymbolId> used;
  for (const Expr& dim : value.shape()) dim.collect_symbols(used);
  return std::ranges::none_of(used, [&](SymbolId id) { return std::ranges::count(inner, id) > 0; });
}

// The node by which a body appends to its carried value `i`, which nobody else reads, nor the longer one; null if none.
ir::Node* appending_node(const ir::Graph& body, size_t i) {
  const ir::Value* begun = body.inputs()[kControls + i];
  const ir::Value* left = body.outputs()[1 + i].value;
  if (!begun->has_single_use() || begun->uses()[0].index != 0 || !left->uses().empty()) return nullptr;
  ir::Node* node = begun->uses()[0].node;
  const auto yields = std::ranges::count(body.outputs(), left, &ir::Output::value);
  return node->is(OpKind::concat) && node->output() == left && yields == 1 ? node : nullptr;
}

bool can_stack(const ir::Node& loop, size_t i) {
  const ir::Node* node = appending_node(*loop.bodies()[0], i);
  if (!node || node->num_inputs() < 2) return false;
  const std::vector<SymbolId> inner = loop.inner_symbols();
  return std::all_of(node->inputs().begin() + 1, node->inputs().end(),
                     [&](const ir::Value* piece) { return stays(*piece, inner); });
}

// The body yields the pieces of its carried value `i` as slices. Gives the axis along which they were appended.
Result<int64_t> yield_pieces(ir::Graph& body, size_t i) {
  ir::Node* node = appending_node(body, i);
  const int64_t axis = node->attrs<ConcatAttrs>().axis;
  std::vector<ir::Value*> pieces(node->inputs().begin() + 1, node->inputs().end());
  ir::Value* piece = pieces[0];
  if (pieces.size() > 1) {
    LATHE_ASSIGN(piece, body.add_value(node->attributes(), std::move(pieces), {node->name(), node->origin(), {}}));
  }
  body.remove_output(1 + i);
  body.add_output(piece);
  body.erase(node);
  body.remove_input(body.inputs()[kControls + i]);
  return axis < 0 ? axis + piece->rank() : axis;
}

// Stacked pieces, [rounds, ...], behind each other along an axis of theirs.
ir::Value* laid_end_to_end(ir::GraphBuilder& b, ir::Value* x, int64_t axis) {
  Ints perm;
  for (int64_t d = 1; d < x->rank(); ++d) perm.push_back(d);
  perm.insert(perm.begin() + axis, 0);
  if (axis > 0) x = b.transpose(x, perm);
  ir::Value* extent = b.reduce(ReduceOp::prod, b.shape_of(x, axis, axis + 2), {0});
  constexpr bool kAllowZero = true;
  return b.reshape(x, b.concat({b.shape_of(x, 0, axis), extent, b.shape_of(x, axis + 2)}, 0), kAllowZero);
}

// Gives the loop that takes the place of `loop`.
Result<ir::Node*> stack_pieces(ir::Graph& graph, ir::Node* loop, size_t i) {
  auto attributes = loop->attrs<LoopAttrs>();
  --attributes.carried;
  attributes.stack_axes.push_back(0);
  attributes.stack_reversed.push_back(0);
  std::vector<std::unique_ptr<ir::Graph>> bodies = graph.clone_bodies(*loop);
  LATHE_ASSIGN(const int64_t axis, yield_pieces(*bodies[0], i));
  std::vector<ir::Value*> operands = loop->inputs();
  ir::Value* initial = operands[kControls + i];
  operands.erase(operands.begin() + static_cast<ptrdiff_t>(kControls + i));
  LATHE_ASSIGN(ir::Node * made, graph.add(attributes, std::move(bodies), std::move(operands),
                                          {loop->name(), loop->origin(), {}}, loop->num_outputs(), loop));
  ir::GraphBuilder b(graph, {loop->output(i)->name(), loop->origin(), {}}, loop);
  ir::Value* whole = b.concat({initial, laid_end_to_end(b, made->output(loop->num_outputs() - 1), axis)}, axis);
  if (b.failed()) return fail(*b.error());
  for (size_t k = 0; k < loop->num_outputs(); ++k)
    LATHE_TRY(graph.replace_uses(loop->output(k), k == i ? whole : made->output(k < i ? k : k - 1)));
  graph.erase(loop);
  return made;
}

}  // namespace

Result<bool> stack_appended(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node* loop = (at++)->get();
    if (!loop->is(OpKind::loop)) continue;
    for (auto i = static_cast<size_t>(loop->attrs<LoopAttrs>().carried); i-- > 0;) {
      if (!can_stack(*loop, i)) continue;
      LATHE_ASSIGN(loop, stack_pieces(graph, loop, i));
      changed = true;
    }
  }
  return changed;
}

}  // namespace lathe
