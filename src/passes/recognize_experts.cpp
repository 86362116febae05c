// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: each token is multiplied by the matrices of the experts that were chosen for it. Models say so
// by gathering those matrices, a copy for each token; or they multiply all tokens by all matrices, and weigh what the
// others make by 0; or a loop over experts gathers each one's tokens. Here each row is multiplied by its expert's
// matrix where that lies.
#include <algorithm>
#include <unordered_map>

#include "ops/rules.h"
#include "passes/expert_loops.h"
#include "passes/gathered_matrices.h"
#include "passes/match.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Value;

bool has_kernels(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// weights[ids], perhaps in another type; ids of a gather_nd are tuples of one.
struct GatheredMatrices {
  const ir::Node *gather, *cast;
  Value* weights() const { return gather->input(0); }
  Value* ids(Rewrite& r) const {
    return gather->is(OpKind::gather) ? gather->input(1) : r.squeeze(gather->input(1), {-1});
  }
};

std::optional<GatheredMatrices> gathered_matrices(const Value* value) {
  const ir::Node* cast = made_by(value, OpKind::cast);
  const ir::Node* gather = cast ? cast->input(0)->producer() : value->producer();
  if (!gather || !takes_matrices(*gather) || (cast && !gather->input(0)->content())) return std::nullopt;
  return GatheredMatrices{gather, cast};
}

// matmul(x, weights[ids]) of one row each, or matmul(weights[ids], x) of one column.
Result<bool> multiply_in_place(Rewrite& r) {
  for (const size_t side : {1, 0}) {
    const std::optional<GatheredMatrices> gathered = gathered_matrices(r.input(side));
    const std::optional<RowByMatrices> by = row_by_matrices(*r.node, side);
    Value* x = r.input(1 - side);
    if (!gathered || !by || !has_kernels(x->dtype())) continue;
    ExpertMatmulAttrs product;
    product.transpose_w = by->transposed;
    product.strict = true;
    product.factors = r.node->attrs<MatmulAttrs>().factors;
    Value* weights = gathered->weights();
    if (gathered->cast) weights = r.add(gathered->cast->attributes(), {weights});
    Value* y = r.add(product, {r.squeeze(x, {by->single}), weights, gathered->ids(r)});
    if (r.failed() || y->rank() + 1 != r.output()->rank()) return r.finish(r.output());  // nothing is changed
    r.absorb(gathered->gather);
    if (gathered->cast) r.absorb(gathered->cast);
    return r.finish(r.unsqueeze(y, {side == 1 ? -2 : -1}));
  }
  return false;
}

// A number for each token and expert: what a token's chosen experts weigh, and 0 for the others.
struct Routing {
  Value *chosen, *weights;  // [tokens, choices]
  Expr tokens, experts;
};

// scatter(zeros[tokens, experts], the indices of a topk, weights).
std::optional<Routing> scattered(const Value* value) {
  const ir::Node* scatter = made_by(value, OpKind::scatter_elements);
  if (!scatter || value->rank() != 2 || splat_of(scatter->input(0)) != 0.0) return std::nullopt;
  const auto& attrs = scatter->attrs<ScatterElementsAttrs>();
  if ((attrs.axis != 1 && attrs.axis != -1) || attrs.reduction != ScatterReduction::none) return std::nullopt;
  Value *chosen = scatter->input(1), *weights = scatter->input(2);
  const ir::Node* topk = made_by(chosen, OpKind::topk);
  const bool is_chosen = topk && chosen->index() == 1 && chosen->rank() == 2 &&
                         (topk->attrs<TopkAttrs>().axis == 1 || topk->attrs<TopkAttrs>().axis == -1) &&
                         same_shape(topk->input(0), value) && same_shape(chosen, weights);
  return is_chosen ? std::optional(Routing{chosen, weights, value->shape()[0], value->shape()[1]}) : std::nullopt;
}

Shape without_ones(Shape dims) {
  std::erase(dims, Expr(1));
  return dims;
}

// Whether those two dimensions, beside which it has only ones, change places: that of tokens came first.
bool swaps_dims(const ir::Node& transpose, const Expr& experts, const Expr& tokens) {
  const Shape& from = transpose.input(0)->shape();
  std::vector<int64_t> moved;  // the places, before, of the dimensions that are not 1
  for (const int64_t axis : permutation_of(transpose.attrs<TransposeAttrs>(), from.size()))
    if (from[static_cast<size_t>(axis)] != Expr(1)) moved.push_back(axis);
  return moved.size() == 2 && moved[0] > moved[1] && from[static_cast<size_t>(moved[0])] == experts &&
         from[static_cast<size_t>(moved[1])] == tokens;
}

// The same as [experts, tokens, 1].
std::optional<Routing> routing_of(const Value* value) {
  if (value->rank() != 3 || value->shape()[2] != Expr(1)) return std::nullopt;
  const Expr experts = value->shape()[0], tokens = value->shape()[1];
  bool is_transposed = false;
  for (const ir::Node* node = value->producer(); node; node = value->producer()) {
    if (node->has_trait(kView)) {
      const Shape own = is_transposed ? Shape{tokens, experts} : Shape{experts, tokens};
      if (without_ones(node->input(0)->shape()) != without_ones(own)) return std::nullopt;
    } else if (node->is(OpKind::transpose)) {
      if (is_transposed || !swaps_dims(*node, experts, tokens)) return std::nullopt;
      is_transposed = true;
    } else {
      break;
    }
    value = node->input(0);
  }
  std::optional<Routing> routing = scattered(value);
  // Where there is one token, a view does what the transposition would.
  if (!routing || (!is_transposed && tokens != Expr(1)) || routing->tokens != tokens || routing->experts != experts)
    return std::nullopt;
  return routing;
}

// What was computed for all experts and tokens, [experts, tokens, n], for a token's chosen ones alone: [tokens,
// choices, n].
class ChosenRows {
 public:
  ChosenRows(Rewrite& r, const Routing& routing) : r_(r), routing_(routing) {}

  // Null where it is no such value, or computed in another way.
  Value* of(Value* value) {
    const auto known = rows_.find(value);
    if (known != rows_.end()) return known->second;
    const ir::Node* node = value->producer();
    Value* made = nullptr;
    if (node && is_for_all(*value)) {
      if (node->is(OpKind::matmul))
        made = of_product(*node);
      else if (node->has_trait(kPointwise) && node->num_outputs() == 1)
        made = of_pointwise(*node);
      else if (node->is(OpKind::slice))
        made = of_slice(*node);
      else if (node->is(OpKind::split))
        made = of_split(*node, value->index());
    }
    return rows_[value] = made;
  }
  const std::vector<const ir::Node*>& nodes() const { return nodes_; }

 private:
  bool is_for_all(const Value& value) const {
    return value.rank() == 3 && value.shape()[0] == routing_.experts && value.shape()[1] == routing_.tokens;
  }
  static bool is_last_axis(int64_t axis) { return axis == 2 || axis == -1; }

  Value* done(const ir::Node& node, Value* made) {
    nodes_.push_back(&node);
    return made;
  }

  // [tokens, k] or [1, tokens, k], which may be repeated for all experts, as [tokens, 1, k].
  Value* shared(Value* x) {
    if (const ir::Node* expand = made_by(x, OpKind::expand)) x = expand->input(0);
    if (x->rank() == 3 && x->shape()[0] == Expr(1)) x = r_.squeeze(x, {0});
    return x->rank() == 2 && x->shape()[0] == routing_.tokens ? r_.unsqueeze(x, {1}) : nullptr;
  }

  Value* of_product(const ir::Node& node) {
    const auto& attrs = node.attrs<MatmulAttrs>();
    Value *x = node.input(0), *weights = node.input(1);
    if (attrs.transpose_a || weights->rank() != 3 || weights->shape()[0] != routing_.experts || is_for_all(*weights) ||
        !has_kernels(x->dtype()))
      return nullptr;
    Value* rows = of(x);
    if (!rows) rows = shared(x);
    if (!rows) return nullptr;
    ExpertMatmulAttrs product;
    product.transpose_w = attrs.transpose_b;
    product.factors = attrs.factors;
    return done(node, r_.add(product, {rows, weights, routing_.chosen}));
  }

  // What is the same for all experts and tokens stays as it is; of what is one for each expert, the chosen ones'.
  Value* operand(Value* value) {
    Shape dims = value->shape();
    if (!dims.empty()) dims.pop_back();
    if (std::ranges::all_of(dims, [](const Expr& dim) { return dim == Expr(1); })) return value;
    if (Value* rows = of(value)) return rows;
    const bool is_of_experts = value->rank() == 3 && dims[0] == routing_.experts && dims[1] == Expr(1);
    return is_of_experts ? r_.gather(r_.squeeze(value, {1}), routing_.chosen, 0) : nullptr;
  }

  Value* of_pointwise(const ir::Node& node) {
    std::vector<Value*> operands;
    for (Value* input : node.inputs()) operands.push_back(input ? operand(input) : nullptr);
    for (size_t i = 0; i < operands.size(); ++i)
      if (node.input(i) && !operands[i]) return nullptr;
    return done(node, r_.add(node.attributes(), std::move(operands)));
  }

  Value* of_slice(const ir::Node& node) {
    constexpr size_t kAxes = 3;
    const std::optional<Ints> axes = node.num_inputs() > kAxes ? ints_of(node.input(kAxes)) : std::nullopt;
    if (!axes || axes->size() != 1 || !is_last_axis(axes->front())) return nullptr;
    std::vector<Value*> operands = node.inputs();
    operands[0] = of(operands[0]);
    if (!operands[0]) return nullptr;
    operands[kAxes] = r_.ints({2});
    return done(node, r_.add(node.attributes(), std::move(operands)));
  }

  Value* of_split(const ir::Node& node, size_t index) {
    Value* x = is_last_axis(node.attrs<SplitAttrs>().axis) ? of(node.input(0)) : nullptr;
    if (!x) return nullptr;
    std::vector<Value*> operands = node.inputs();
    operands[0] = x;
    const std::vector<Value*> parts = r_.add_all(node.attributes(), std::move(operands), node.num_outputs());
    for (size_t i = 0; i < parts.size(); ++i) rows_[node.output(i)] = parts[i];
    nodes_.push_back(&node);
    return parts[index];
  }

  Rewrite& r_;
  const Routing& routing_;
  std::unordered_map<const Value*, Value*> rows_;
  std::vector<const ir::Node*> nodes_;
};

// Nothing is left of the others: not even infinity times 0.
Result<bool> compute_chosen(Rewrite& r) {
  const auto& attrs = r.node->attrs<ReduceAttrs>();
  const ir::Node* product = made_by(r.input(0), ElementwiseOp::mul);
  if (!r.context.fast_math || attrs.op != ReduceOp::sum || !product || r.input(0)->rank() != 3 ||
      !r.input(0)->has_single_use())
    return false;
  const bool has_list = r.node->num_inputs() > 1 && r.input(1);
  const std::optional<Ints> axes = has_list ? ints_of(r.input(1)) : std::optional(attrs.axes);
  if (!axes || (*axes != Ints{0} && *axes != Ints{-3})) return false;
  for (const size_t side : {0, 1}) {
    const std::optional<Routing> routing = routing_of(product->input(side));
    if (!routing) continue;
    ChosenRows rows(r, *routing);
    Value* made = rows.of(product->input(1 - side));
    if (!made) return r.finish(r.output());  // nothing is changed
    for (const ir::Node* node : rows.nodes()) r.absorb(node);
    r.absorb(product);
    Value* y = r.reduce(ReduceOp::sum, r.mul(made, r.unsqueeze(routing->weights, {2})), {1}, false);
    return r.finish(attrs.keepdims ? r.unsqueeze(y, {0}) : y);
  }
  return false;
}

// Whether it is a product of experts, or what follows it alone.
bool is_made_by_experts(const Value* value) {
  while (value && value->has_single_use() && value->producer()) {
    const ir::Node& node = *value->producer();
    if (node.is(OpKind::expert_matmul)) return true;
    if (!node.is(OpKind::activation) && !node.is(OpKind::unary) && !node.is(OpKind::elementwise)) return false;
    value = node.input(0);
  }
  return false;
}

// Two products between the same views: the second one's kernel can finish both.
Result<bool> sink_views(Rewrite& r) {
  const ir::Node *first = r.input(0)->producer(), *second = r.input(1)->producer();
  if (!first || !second || !first->has_trait(kView) || !second->has_trait(kView) || !r.input(0)->has_single_use() ||
      !r.input(1)->has_single_use() || !same_shape(r.input(0), r.input(1)) ||
      !same_shape(first->input(0), second->input(0)))
    return false;
  if (!is_made_by_experts(first->input(0)) || !is_made_by_experts(second->input(0))) return false;
  std::vector<Value*> operands = first->inputs();
  operands[0] = r.add(r.node->attributes(), {first->input(0), second->input(0)});
  r.absorb(first), r.absorb(second);
  return r.finish(r.add(first->attributes(), std::move(operands)));
}

}  // namespace

Result<bool> recognize_experts(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"matmul(x, w[ids]) = expert_matmul(x, w, ids)", OpKind::matmul, multiply_in_place},
      {"f(view(experts(x)), view(experts(y))) = view(f(experts(x), experts(y)))", OpKind::elementwise, sink_views},
      {"sum of f(x w)[e] * scatter(topk) = sum of f(expert_matmul(x, w, topk))", OpKind::reduce, compute_chosen},
      {"0 + f(x[hits], w[e])[hits] of each e = sum of f(expert_matmul(x, w, topk))", OpKind::scatter_nd,
       multiply_looped_experts},
      {"likewise where elements are scattered", OpKind::scatter_elements, multiply_looped_experts},
      {"and where zeros are scattered to, and added", OpKind::elementwise, multiply_looped_experts},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
