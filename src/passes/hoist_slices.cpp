// SPDX-License-Identifier: Apache-2.0
// Rows that nothing reads need not be computed: a slice or gather of few rows moves in front of the ops that make each
// row of their result of the same row of their operands. A classifier that looks at the first token has the other rows
// of its last layer neither normalised nor multiplied, and a decoder that scores its last token likewise. It stops
// where others read the rows, too.
#include <algorithm>
#include <unordered_set>

#include "ops/attention_inputs.h"
#include "ops/rules.h"
#include "passes/match.h"
#include "passes/reshape_target.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// Rows [begin, end) along an axis, or those that a list names.
struct Pick {
  static constexpr int64_t kFar = INT32_MAX;  // exporters' bounds that are no less mean the end
  int64_t axis = 0;
  int64_t begin = 0, end = 0;
  Value* index = nullptr;  // of a gather
  int64_t rows = 0;

  bool has_last(const Value& x) const {
    const std::optional<int64_t> extent = x.shape()[static_cast<size_t>(axis)].as_constant();
    return !index && (end >= kFar || (extent && end >= *extent));
  }
  bool operator==(const Pick&) const = default;
};

std::optional<int64_t> only_number(const Value* value) {
  const std::optional<Ints> numbers = ints_of(value);
  return numbers && numbers->size() == 1 ? std::optional((*numbers)[0]) : std::nullopt;
}

std::optional<Pick> slice_of(const Node& node) {
  const auto begin = only_number(node.input(1)), end = only_number(node.input(2));
  const auto axes = axes_of(node.input(3), 1, node.input(0)->rank());
  if (!begin || !end || !axes || axes->size() != 1 || (node.input(4) && only_number(node.input(4)) != 1))
    return std::nullopt;
  return Pick{(*axes)[0], *begin, *end};
}

std::optional<Pick> gather_of(const Node& node) {
  if (node.input(1)->rank() > 1) return std::nullopt;
  const int64_t axis = node.attrs<GatherAttrs>().axis;
  return Pick{axis < 0 ? axis + node.input(0)->rank() : axis, 0, 0, node.input(1)};
}

// Few rows of a value that is computed, of many or one of a number that is not known. Never along the last axis, whose
// columns are those of weights: merge_matmuls cuts them apart.
std::optional<Pick> pick_of(const Node& node) {
  if (!node.is(OpKind::slice) && !node.is(OpKind::gather)) return std::nullopt;
  const Value& x = *node.input(0);
  if (!x.producer() || x.content() || x.elements()) return std::nullopt;
  std::optional<Pick> pick = node.is(OpKind::slice) ? slice_of(node) : gather_of(node);
  if (!pick || pick->axis + 1 >= x.rank()) return std::nullopt;
  const auto axis = static_cast<size_t>(pick->axis);
  const Expr rows = pick->index && pick->index->rank() == 0 ? Expr(1) : node.output()->shape()[axis];
  const std::optional<int64_t> count = rows.as_constant(), extent = x.shape()[axis].as_constant();
  if (!count || (extent ? 2 * *count > *extent : *count > 1)) return std::nullopt;
  pick->rows = *count;
  return pick;
}

// The axis of each operand along which the picked rows lie; none = it is read as it is.
using Axes = std::vector<std::optional<int64_t>>;

// Operands that broadcast to the result's first `rank` dimensions, of which one is the axis. False where one may or may
// not.
bool add_broadcast(const Value& operand, const Value& result, int64_t axis, std::optional<int64_t>& at) {
  const int64_t own = axis - (result.rank() - operand.rank());
  if (own < 0) return true;
  const Expr& dim = operand.shape()[static_cast<size_t>(own)];
  if (dim == Expr(1)) return true;
  at = own;
  return dim == result.shape()[static_cast<size_t>(axis)];
}

std::optional<Axes> axes_of_broadcast(const Node& node, int64_t axis) {
  Axes axes(node.num_inputs());
  for (size_t i = 0; i < axes.size(); ++i)
    if (node.input(i) && !add_broadcast(*node.input(i), *node.output(), axis, axes[i])) return std::nullopt;
  return axes;
}

bool has_blocks(const Node& node) {
  return (node.is(OpKind::quantize) && !node.attrs<QuantizeAttrs>().blocks.empty()) ||
         (node.is(OpKind::dequantize) && !node.attrs<DequantizeAttrs>().blocks.empty());
}

// Of a normalisation of the dimensions from `first` on, whose parameters have no others.
std::optional<Axes> axes_of_normalization(const Node& node, int64_t first, int64_t axis) {
  const int64_t rank = node.input(0)->rank();
  if (first < 0) first += rank;
  if (axis >= first) return std::nullopt;
  for (size_t i = 1; i < node.num_inputs(); ++i)
    if (node.input(i) && node.input(i)->rank() > rank - first) return std::nullopt;
  for (size_t i = 1; i < node.num_outputs(); ++i)
    if (!node.output(i)->uses().empty() || node.output(i)->is_graph_output()) return std::nullopt;
  Axes axes(node.num_inputs());
  axes[0] = axis;
  return axes;
}

// Rows of the left factor, or matrices of a batch, but not such as are gathered from weights anew in each run.
std::optional<Axes> axes_of_matmul(const Node& node, const Pick& pick) {
  const Value &a = *node.input(0), &b = *node.input(1);
  if (a.rank() < 2 || b.rank() < 2) return std::nullopt;
  if (pick.axis + 2 < node.output()->rank())
    return pick.index && !pick.index->content() && b.content() ? std::nullopt : axes_of_broadcast(node, pick.axis);
  if (node.attrs<MatmulAttrs>().transpose_a) return std::nullopt;
  return Axes{a.rank() - 2, std::nullopt};
}

// Rows of queries. A causal one counts them from the last on.
std::optional<Axes> axes_of_attention(const Node& node, const Pick& pick) {
  using namespace attention_input;
  const auto& attrs = node.attrs<AttentionAttrs>();
  if (pick.axis != 2 || node.input(kDistances)) return std::nullopt;
  if ((attrs.causal || attrs.window != 0) && !pick.has_last(*node.output())) return std::nullopt;
  Axes axes(node.num_inputs());
  axes[kQ] = 2;
  const Value* mask = node.input(kMask);
  const int64_t at = mask ? mask->rank() - 2 : -1;
  if (at < 0 || mask->shape()[static_cast<size_t>(at)] == Expr(1)) return axes;
  if (mask->shape()[static_cast<size_t>(at)] != node.input(kQ)->shape()[2]) return std::nullopt;
  axes[kMask] = at;
  return axes;
}

// The dimension of the operand that becomes that one of the result, with the same number of elements before it.
std::optional<Axes> axes_of_view(const Node& node, int64_t axis) {
  const Shape &from = node.input(0)->shape(), &to = node.output()->shape();
  const auto before = [](const Shape& shape, size_t dim) {
    return volume(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dim)));
  };
  const auto at = static_cast<size_t>(axis);
  for (size_t i = 0; i + 1 < from.size(); ++i)
    if (from[i] == to[at] && before(from, i) == before(to, at)) {
      Axes axes(node.num_inputs());
      axes[0] = static_cast<int64_t>(i);
      return axes;
    }
  return std::nullopt;
}

std::optional<Axes> axes_of_transpose(const Node& node, int64_t axis) {
  const Ints perm = permutation_of(node.attrs<TransposeAttrs>(), static_cast<size_t>(node.output()->rank()));
  const int64_t from = perm[static_cast<size_t>(axis)];
  return from + 1 < node.output()->rank() ? std::optional(Axes{from}) : std::nullopt;
}

std::optional<Axes> axes_of_rows(const Node& node, const Pick& pick) {
  if (node.has_trait(kPointwise)) return has_blocks(node) ? std::nullopt : axes_of_broadcast(node, pick.axis);
  if (node.has_trait(kView)) return axes_of_view(node, pick.axis);
  switch (node.kind()) {
    case OpKind::layer_normalization:
      return axes_of_normalization(node, node.attrs<LayerNormalizationAttrs>().axis, pick.axis);
    case OpKind::rms_normalization:
      return axes_of_normalization(node, node.attrs<RmsNormalizationAttrs>().axis, pick.axis);
    case OpKind::softmax:
      return is_last_axis(node.attrs<SoftmaxAttrs>().axis, node.output()) ? std::optional(Axes{pick.axis})
                                                                          : std::nullopt;
    case OpKind::matmul:
      return axes_of_matmul(node, pick);
    case OpKind::attention:
      return axes_of_attention(node, pick);
    case OpKind::transpose:
      return axes_of_transpose(node, pick.axis);
    default:
      return std::nullopt;
  }
}

Shape with_rows(Shape shape, int64_t axis, int64_t rows) {
  shape[static_cast<size_t>(axis)] = Expr(rows);
  return shape;
}

// The same of a node that can have picked operands: a view must be able to say its result's shape.
std::optional<Axes> movable(const Node& node, const Pick& pick) {
  std::optional<Axes> axes = axes_of_rows(node, pick);
  if (axes && node.has_trait(kView) &&
      !reshape_target(with_rows(node.input(0)->shape(), *axes->front(), pick.rows),
                      with_rows(node.output()->shape(), pick.axis, pick.rows)))
    return std::nullopt;
  return axes;
}

// Whether a heavy op or a reduction is among those that would compute these rows alone, as far as one looks.
bool saves_work(const Node& last, const Pick& of_last) {
  constexpr size_t kFar = 64;
  std::vector<std::pair<const Node*, Pick>> found = {{&last, of_last}};
  for (size_t at = 0; at < found.size() && at < kFar; ++at) {
    const auto [node, pick] = found[at];
    const std::optional<Axes> axes = movable(*node, pick);
    if (!axes) continue;
    if (node->has_trait(kHeavy | kReduction)) return true;
    for (size_t i = 0; i < axes->size(); ++i) {
      const Value* operand = (*axes)[i] ? node->input(i) : nullptr;
      const auto reads = [reader = node](const ir::Use& use) { return use.node == reader; };
      if (!operand || !operand->producer() || !std::ranges::all_of(operand->uses(), reads)) continue;
      Pick of_operand = pick;
      of_operand.axis = *(*axes)[i];
      found.emplace_back(operand->producer(), of_operand);
    }
  }
  return false;
}

// Whether `node` and copies of it are all that reads x.
bool is_sole_pick(const Value& x, const Pick& pick, const Node* node) {
  return !x.is_graph_output() && std::ranges::all_of(x.uses(), [&](const ir::Use& use) {
    return use.node == node || (use.index == 0 && pick_of(*use.node) == pick && !use.node->output()->is_graph_output());
  });
}

// Moves picks, those that come of them next. What reads the same rows, but stood elsewhere, is one of them from then
// on.
class Hoist {
 public:
  Hoist(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {
    for (const auto& node : graph.nodes())
      if (pick_of(*node)) add(node.get());
  }

  Result<bool> run() {
    bool changed = false;
    while (!waiting_.empty()) {
      Node* node = waiting_.back();
      waiting_.pop_back();
      if (!alive_.erase(node)) continue;
      LATHE_ASSIGN(const bool moved, move(node));
      changed |= moved;
    }
    if (has_copies_) LATHE_TRY(graph_.sort());  // copies may have stood before those that took their place
    return changed;
  }

 private:
  void add(Node* pick) {
    if (alive_.insert(pick).second) waiting_.push_back(pick);
  }

  Result<bool> move(Node* node) {
    const std::optional<Pick> pick = pick_of(*node);
    Value* x = node->input(0);
    if (!pick || !saves_work(*x->producer(), *pick)) return false;
    Rewrite r(graph_, context_, node);
    if (pick->index && pick->index->rank() == 0) return x->has_single_use() ? keep_dimension(r, *pick) : false;
    if (!is_sole_pick(*x, *pick, node)) return false;
    std::vector<Node*> picks;
    LATHE_ASSIGN(Value * result, on_rows(r, *x->producer(), *movable(*x->producer(), *pick), picks));
    LATHE_CHECK(result->dtype() == node->output()->dtype() && result->shape() == node->output()->shape());
    while (x->uses().size() > 1) {
      Node* copy = x->uses()[x->uses()[0].node == node ? 1 : 0].node;
      graph_.redirect_uses(copy->output(), result);
      alive_.erase(copy);
      graph_.erase(copy);
      has_copies_ = true;
    }
    LATHE_ASSIGN(const bool moved, r.finish(result));
    for (Node* each : picks) add(each);
    return moved;
  }

  static Value* picked(Rewrite& r, Value* x, int64_t axis) {
    if (r.node->is(OpKind::gather)) return r.gather(x, r.input(1), axis);
    return r.add(r.node->attributes(), {x, r.input(1), r.input(2), r.ints({axis})});
  }

  // The op on picked operands, in the place of the pick.
  Result<Value*> on_rows(Rewrite& r, const Node& node, const Axes& axes, std::vector<Node*>& picks) {
    std::vector<Value*> inputs = node.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!axes[i]) continue;
      inputs[i] = picked(r, inputs[i], *axes[i]);
      if (r.failed()) return fail(*r.error());
      picks.push_back(inputs[i]->producer());
    }
    if (node.has_trait(kView)) return r.reshape(inputs[0], *reshape_target(inputs[0]->shape(), r.output()->shape()));
    return graph_.add_value(node.attributes(), std::move(inputs), {node.name(), node.origin(), {}}, r.node);
  }

  // Gathers of one row that drop its dimension keep it until their rows are where they shall be.
  Result<bool> keep_dimension(Rewrite& r, const Pick& pick) {
    Value* row = r.gather(r.input(0), r.reshape(r.input(1), Ints{1}), pick.axis);
    const std::optional<Ints> target = r.failed() ? std::nullopt : reshape_target(row->shape(), r.output()->shape());
    if (!target) return false;
    LATHE_ASSIGN(const bool kept, r.finish(r.reshape(row, *target)));
    if (kept) add(row->producer());
    return kept;
  }

  ir::Graph& graph_;
  PassContext& context_;
  std::vector<Node*> waiting_;
  std::unordered_set<Node*> alive_;  // of those that wait
  bool has_copies_ = false;
};

}  // namespace

Result<bool> hoist_slices(ir::Graph& graph, PassContext& context) { return Hoist(graph, context).run(); }

}  // namespace lathe
