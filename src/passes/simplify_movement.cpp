// SPDX-License-Identifier: Apache-2.0
// The algebra of transposes and reshapes. Transposes move towards the outputs through pointwise ops, where they meet
// and cancel; matrix products take them as flags. So do views that stand between a kernel and what it can apply.
#include <algorithm>

#include "ops/rules.h"
#include "passes/cache_updates.h"
#include "passes/match.h"
#include "passes/reshape_target.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

Ints permutation_of(const ir::Node* transpose) {
  return lathe::permutation_of(transpose->attrs<TransposeAttrs>(), static_cast<size_t>(transpose->output()->rank()));
}

Ints inverse(const Ints& perm) {
  Ints out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

Result<bool> transpose_of_transpose(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::transpose);
  if (!inner) return false;
  const Ints first = permutation_of(inner);
  Ints perm = permutation_of(r.node);
  for (int64_t& axis : perm) axis = first[static_cast<size_t>(axis)];
  r.absorb(inner);
  if (std::is_sorted(perm.begin(), perm.end()) && may_stand_for(inner->input(0), r.output()))
    return r.finish(inner->input(0));
  return r.finish(r.transpose(inner->input(0), perm));
}

Result<bool> finish_as_reshape(Rewrite& r, ir::Value* x) {
  const std::optional<Ints> target = reshape_target(x->shape(), r.output()->shape());
  if (!target) return false;
  return r.finish(r.reshape(x, *target));
}

// Axes longer than 1 keep their order.
Result<bool> transpose_to_reshape(Rewrite& r) {
  const Shape& shape = r.input(0)->shape();
  int64_t last = -1;
  bool moves = false;
  const Ints perm = permutation_of(r.node);
  for (int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] == Expr(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  moves = !std::is_sorted(perm.begin(), perm.end());
  return moves ? finish_as_reshape(r, r.input(0)) : false;
}

// The views above, the farthest first: one reshape does what the whole chain did.
Result<bool> view_of_view(Rewrite& r) {
  std::vector<const ir::Node*> chain;
  for (const ir::Node* view = r.input(0)->producer(); view && view->has_trait(kView); view = view->input(0)->producer())
    chain.push_back(view);
  for (; !chain.empty(); chain.pop_back()) {
    ir::Value* x = chain.back()->input(0);
    if (!same_shape(x, r.output()) && !reshaped(r, x, r.output()->shape())) continue;
    for (const ir::Node* view : chain) r.absorb(view);
    const std::optional<Ints> target = reshape_target(x->shape(), r.output()->shape());
    return r.finish(target ? r.reshape(x, *target) : reshaped(r, x, r.output()->shape()));
  }
  return false;
}

// Dimensions of 1 that views bring and take away again need not be transposed: einsums have them, as tf2onnx writes
// them.
Result<bool> transpose_without_units(Rewrite& r) {
  constexpr int kMostMatched = 4;  // other rules look for transposes of up to so many dimensions as they are
  const auto is_view = [](const ir::Node* node) { return node && node->has_trait(kView); };
  ir::Value* x = r.input(0);
  if (x->rank() <= kMostMatched || !is_view(x->producer()) || r.output()->is_graph_output() ||
      !std::ranges::all_of(r.output()->uses(), [&](const ir::Use& use) { return use.index == 0 && is_view(use.node); }))
    return false;
  Shape kept;
  Ints places;  // of each dimension among those that are kept
  for (const Expr& dim : x->shape()) {
    places.push_back(std::ssize(kept));
    if (dim != Expr(1)) kept.push_back(dim);
  }
  if (kept.size() == x->shape().size()) return false;
  Ints perm;
  for (const int64_t axis : permutation_of(r.node))
    if (x->shape()[static_cast<size_t>(axis)] != Expr(1)) perm.push_back(places[static_cast<size_t>(axis)]);
  const std::optional<Ints> target = reshape_target(x->shape(), kept);
  if (!target) return false;
  return finish_as_reshape(r, r.transpose(r.reshape(x, *target), perm));
}

bool swaps_last_two(const ir::Node* transpose) {
  const int64_t rank = transpose->output()->rank();
  return rank >= 2 && permutation_of(transpose) == swap_of_last_two(rank);
}

bool keep_matrices(const ir::Value* a, const ir::Value* b) {
  return a->rank() >= 2 && b->rank() >= 2 && std::equal(a->shape().end() - 2, a->shape().end(), b->shape().end() - 2);
}

// Matrices of a batch that was given other dimensions for their transposition alone.
Result<bool> transpose_of_flat_batch(Rewrite& r) {
  const ir::Node* transpose = made_by(r.input(0), OpKind::transpose);
  const ir::Node* view = transpose ? transpose->input(0)->producer() : nullptr;
  if (!view || !view->has_trait(kView) || !swaps_last_two(transpose)) return false;
  ir::Value* x = view->input(0);
  if (!keep_matrices(x, view->output()) || !keep_matrices(r.input(0), r.output())) return false;
  Shape before = r.output()->shape();
  std::swap(before[before.size() - 1], before[before.size() - 2]);
  const std::optional<Ints> target = reshape_target(x->shape(), before);
  if (!target) return false;
  r.absorb(view), r.absorb(transpose);
  x = x->shape() == before ? x : r.reshape(x, *target);
  return r.finish(r.transpose(x, swap_of_last_two(x->rank())));
}

// f(transpose(x)) = transpose(f(x)).
Result<bool> sink_through_one(Rewrite& r) {
  const ir::Node* transpose = made_by(r.input(0), OpKind::transpose);
  if (!transpose || !r.input(0)->has_single_use()) return false;
  ir::Value* inner = r.add(r.node->attributes(), {transpose->input(0)});
  r.absorb(transpose);
  return r.finish(r.transpose(inner, permutation_of(transpose)));
}

// The operand of an elementwise op that is no constant, where the other one is; else null.
ir::Value* beside_constant(const ir::Node& node) {
  for (size_t i = 0; i < 2; ++i)
    if (!node.input(i)->content() && node.input(1 - i)->content()) return node.input(i);
  return nullptr;
}

// Whether a kernel makes the value, or what follows it in its epilogue.
bool ends_kernel(const ir::Value* value) {
  while (value && value->has_single_use() && value->producer()) {
    const ir::Node& node = *value->producer();
    if (node.has_trait(kHeavy)) return true;
    if (node.is(OpKind::elementwise))
      value = beside_constant(node);
    else if (node.is(OpKind::activation) || node.is(OpKind::unary))
      value = node.input(0);
    else
      return false;
  }
  return false;
}

// f(view(x)) = view(f(x)) where a kernel can apply f at once.
Result<bool> sink_view_through_one(Rewrite& r) {
  const ir::Node* view = r.input(0)->producer();
  if (!view || !view->has_trait(kView) || !r.input(0)->has_single_use() || !ends_kernel(view->input(0))) return false;
  std::vector<ir::Value*> operands = view->inputs();
  operands[0] = r.add(r.node->attributes(), {operands[0]});
  r.absorb(view);
  return r.finish(r.add(view->attributes(), std::move(operands)));
}

bool keep_last_dim(const ir::Value* a, const ir::Value* b) {
  return a->rank() > 0 && b->rank() > 0 && a->shape().back() == b->shape().back();
}

// f(view(x), c) = view(f(x, c)) where a kernel can apply f at once, and c is a number or runs along the last dimension.
Result<bool> sink_view_through_constant(Rewrite& r) {
  ir::Value* viewed = beside_constant(*r.node);
  const ir::Node* view = viewed ? viewed->producer() : nullptr;
  if (!view || !view->has_trait(kView) || !viewed->has_single_use() || !same_shape(viewed, r.output())) return false;
  ir::Value* x = view->input(0);
  const size_t at = r.input(0) == viewed ? 0 : 1;
  const ir::Value* constant = r.input(1 - at);
  const bool is_number = constant->content()->volume() == 1 && constant->rank() <= x->rank();
  if (!is_number && (constant->rank() != 1 || !keep_last_dim(x, viewed))) return false;
  if (!ends_kernel(x)) return false;
  std::vector<ir::Value*> operands = r.node->inputs(), viewed_operands = view->inputs();
  operands[at] = x;
  viewed_operands[0] = r.add(r.node->attributes(), std::move(operands));
  r.absorb(view);
  return r.finish(r.add(view->attributes(), std::move(viewed_operands)));
}

// A batch that was flattened to a matrix for the product alone: nothing need be viewed before it.
Result<bool> sink_view_through_matmul(Rewrite& r) {
  const ir::Node* view = r.input(0)->producer();
  if (!view || !view->has_trait(kView) || r.input(0)->rank() != 2 || r.input(1)->rank() != 2 ||
      r.node->attrs<MatmulAttrs>().transpose_a)
    return false;
  // Sums of integers are scaled next, which must see them as they are.
  if (r.context.arithmetic.weighted_products && is_integer(r.output()->dtype())) return false;
  ir::Value* x = view->input(0);
  if (x->rank() < 3 || !keep_last_dim(x, r.input(0))) return false;
  Shape shape = x->shape();
  shape.back() = r.output()->shape().back();
  if (!reshape_target(shape, r.output()->shape())) return false;
  r.absorb(view);
  return finish_as_reshape(r, r.add(r.node->attributes(), {x, r.input(1)}));
}

// The operand that, transposed by perm, is `value`: what a transpose of that perm reads, or a constant turned back.
ir::Value* before_transpose(Rewrite& r, ir::Value* value, const Ints& perm) {
  if (const ir::Node* transpose = made_by(value, OpKind::transpose))
    return permutation_of(transpose) == perm ? transpose->input(0) : nullptr;
  const Tensor* content = value->content();
  if (!content || value->rank() > static_cast<int>(perm.size())) return nullptr;
  if (content->volume() == 1) return value;
  Dims dims(perm.size() - content->dims().size(), 1);
  dims.insert(dims.end(), content->dims().begin(), content->dims().end());
  ir::Value* aligned = value->constant() ? r.constant(content->reshaped(dims)) : r.reshape(value, dims);
  return r.transpose(aligned, inverse(perm));
}

bool is_sole_transpose(const ir::Value* value, const ir::Node* reader) {
  if (!made_by(value, OpKind::transpose) || value->is_graph_output()) return false;
  return std::all_of(value->uses().begin(), value->uses().end(),
                     [&](const ir::Use& use) { return use.node == reader; });
}

// f(transpose(x), transpose(y)) = transpose(f(x, y)), where y may be a constant.
Result<bool> sink_through_two(Rewrite& r) {
  const size_t lead = made_by(r.input(0), OpKind::transpose) ? 0 : 1;
  const ir::Node* transpose = made_by(r.input(lead), OpKind::transpose);
  if (!transpose || !is_sole_transpose(r.input(lead), r.node)) return false;
  ir::Value* other = r.input(1 - lead);
  if (!other->content() && !is_sole_transpose(other, r.node)) return false;
  if (r.input(lead)->rank() != r.output()->rank()) return false;
  const Ints perm = permutation_of(transpose);
  ir::Value* mate = before_transpose(r, other, perm);
  if (!mate) return false;
  std::vector<ir::Value*> operands = {transpose->input(0), mate};
  if (lead == 1) std::swap(operands[0], operands[1]);
  ir::Value* inner = r.add(r.node->attributes(), std::move(operands));
  r.absorb(transpose);
  return r.finish(r.transpose(inner, perm));
}

// The only index of a gather, below 0 counted from the end, where the axis is as long as that at least.
std::optional<int64_t> sole_index(Rewrite& r, const Expr& extent) {
  const ir::Value* index = r.input(1);
  const std::vector<Range>& symbols = r.graph().symbol_ranges();
  std::optional<int64_t> at;
  if (index->constant() && index->constant()->volume() == 1)
    at = index->constant()->at(0);
  else if (index->elements() && index->elements()->size() == 1)
    at = place_in(extent, index->elements()->front(), symbols);
  const int64_t least = extent.range(symbols).min;
  return at && (*at < 0 ? *at >= -least : *at < least) ? at : std::nullopt;
}

// One index that is known picks a slice. Shapes are left to what computes them.
Result<bool> gather_to_slice(Rewrite& r) {
  ir::Value* x = r.input(0);
  if (x->constant() || x->elements() || x->rank() == 0) return false;
  int64_t axis = r.node->attrs<GatherAttrs>().axis;
  if (axis < 0) axis += x->rank();
  const Expr& extent = x->shape()[static_cast<size_t>(axis)];
  std::optional<int64_t> at = sole_index(r, extent);
  if (!at) return false;
  if (*at < 0) *at += extent.as_constant().value_or(0);
  Shape sliced = x->shape();
  sliced[static_cast<size_t>(axis)] = 1;
  if (!reshape_target(sliced, r.output()->shape())) return false;
  return finish_as_reshape(r, r.slice(x, axis, *at, *at == -1 ? INT64_MAX : *at + 1));
}

// A table is converted once, and holds less, unless something reads it as it is.
Result<bool> narrow_table(Rewrite& r) {
  const ir::Node* gather = made_by(r.input(0), OpKind::gather);
  if (!gather || !gather->input(0)->content()) return false;
  if (size_of(r.output()->dtype()) >= size_of(r.input(0)->dtype())) return false;
  const auto becomes_narrow = [&](const ir::Use& use) {
    return use.node->is(OpKind::cast) && equal(use.node->attributes(), r.node->attributes());
  };
  const auto reads_narrow = [&](const ir::Use& use) {
    const ir::Value& rows = *use.node->output();
    return becomes_narrow(use) || (use.node->is(OpKind::gather) && use.index == 0 && !rows.is_graph_output() &&
                                   std::ranges::all_of(rows.uses(), becomes_narrow));
  };
  if (!std::ranges::all_of(gather->input(0)->uses(), reads_narrow)) return false;
  ir::Value* table = r.add(r.node->attributes(), {gather->input(0)});
  r.absorb(gather);
  return r.finish(r.add(gather->attributes(), {table, gather->input(1)}));
}

// How many copies of each element a list of indices makes of that many: (0, 0, 1, 1) makes 2 of each; 1 = it does
// otherwise.
int64_t copies_of_each(const Ints& indices, int64_t extent) {
  const auto count = std::ssize(indices);
  if (extent < 1 || count <= extent || count % extent != 0) return 1;
  const int64_t copies = count / extent;
  for (int64_t i = 0; i < count; ++i)
    if (indices[static_cast<size_t>(i)] != i / copies) return 1;
  return copies;
}

// A copy of each gets a dimension of its own, as attention looks for, behind the axis and before a transpose that `x`
// may be.
Result<bool> copies_to_expand(Rewrite& r, int64_t axis) {
  ir::Value* x = r.input(0);
  if (x->content() || !r.input(1)->constant()) return false;
  const std::optional<int64_t> extent = x->shape()[static_cast<size_t>(axis)].as_constant();
  const int64_t copies = copies_of_each(to_ints(*r.input(1)->constant()), extent.value_or(0));
  if (copies == 1) return false;
  const ir::Node* transpose = made_by(x, OpKind::transpose);
  if (transpose) x = transpose->input(0), axis = permutation_of(transpose)[static_cast<size_t>(axis)];
  Shape repeated = x->shape(), merged = repeated;
  repeated.insert(repeated.begin() + axis + 1, Expr(copies));
  merged[static_cast<size_t>(axis)] = Expr(*extent * copies);
  const std::optional<Ints> target = reshape_target(repeated, merged);
  if (!target) return false;
  Ints numbers(repeated.size(), 1);
  numbers[static_cast<size_t>(axis) + 1] = copies;
  ir::Value* result = r.reshape(r.expand(r.unsqueeze(x, {axis + 1}), r.ints(numbers)), *target);
  if (transpose) r.absorb(transpose);
  return r.finish(transpose ? r.transpose(result, permutation_of(transpose)) : result);
}

Result<bool> gather_to_expand(Rewrite& r) {
  const int64_t axis = r.node->attrs<GatherAttrs>().axis;
  return r.input(1)->rank() == 1 ? copies_to_expand(r, axis < 0 ? axis + r.input(0)->rank() : axis) : false;
}

// Tuples of one index.
Result<bool> gather_nd_to_expand(Rewrite& r) {
  const ir::Value* tuples = r.input(1);
  const bool is_list = tuples->rank() == 2 && tuples->shape()[1] == Expr(1);
  return is_list && r.node->attrs<GatherNdAttrs>().batch_dims == 0 ? copies_to_expand(r, 0) : false;
}

// What only dimensions of 1 are repeated along.
Result<bool> tile_to_expand(Rewrite& r) {
  const Shape& shape = r.input(0)->shape();
  const std::optional<Ints> repeats = ints_of(r.input(1));
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != Expr(1) && !(repeats && (*repeats)[i] == 1)) return false;
  return r.finish(r.expand(r.input(0), r.cast(r.input(1), DType::i64)));
}

Result<bool> matmul_takes_transpose(Rewrite& r) {
  MatmulAttrs attrs = r.node->attrs<MatmulAttrs>();
  std::vector<ir::Value*> operands = r.node->inputs();
  bool found = false;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* transpose = made_by(operands[i], OpKind::transpose);
    if (!transpose || !swaps_last_two(transpose)) continue;
    bool& flag = i == 0 ? attrs.transpose_a : attrs.transpose_b;
    flag = !flag;
    operands[i] = transpose->input(0);
    r.absorb(transpose);
    found = true;
  }
  if (!found) return false;
  return r.finish(r.add(attrs, std::move(operands)));
}

}  // namespace

Result<bool> simplify_movement(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"transpose(transpose(x)) = transpose(x)", OpKind::transpose, transpose_of_transpose},
      {"transpose(x) = reshape(x) when only axes of extent 1 move", OpKind::transpose, transpose_to_reshape},
      {"transpose(view(x)) = view(transpose(x)) without axes of extent 1", OpKind::transpose, transpose_without_units},
      {"reshape(transpose(view(x))) = transpose(x) of matrices in batches", OpKind::reshape, transpose_of_flat_batch},
      {"reshape(view(x)) = reshape(x)", OpKind::reshape, view_of_view},
      {"flatten(view(x)) = reshape(x)", OpKind::flatten, view_of_view},
      {"squeeze(view(x)) = reshape(x)", OpKind::squeeze, view_of_view},
      {"unsqueeze(view(x)) = reshape(x)", OpKind::unsqueeze, view_of_view},
      {"gather(x, i) = reshape(slice(x, i, i + 1))", OpKind::gather, gather_to_slice},
      {"gather(x, copies of each) = reshape(expand(unsqueeze(x)))", OpKind::gather, gather_to_expand},
      {"gather_nd(x, copies of each) = reshape(expand(unsqueeze(x)))", OpKind::gather_nd, gather_nd_to_expand},
      {"tile(x) = expand(x) along dimensions of 1", OpKind::tile, tile_to_expand},
      {"transpose(scatter_nd(transpose(x), rows)) = scatter_elements(x, rows)", OpKind::transpose,
       scatter_between_transposes},
      {"scatter_elements(x, rows that follow each other) = tensor_scatter(x)", OpKind::scatter_elements,
       scatter_of_rows},
      {"matmul(transpose(a), b) = matmul{transpose_a}(a, b)", OpKind::matmul, matmul_takes_transpose},
      {"matmul(view(x), w) = view(matmul(x, w))", OpKind::matmul, sink_view_through_matmul},
      {"unary(transpose(x)) = transpose(unary(x))", OpKind::unary, sink_through_one},
      {"activation(transpose(x)) = transpose(activation(x))", OpKind::activation, sink_through_one},
      {"unary(view(kernel(x))) = view(unary(kernel(x)))", OpKind::unary, sink_view_through_one},
      {"activation(view(kernel(x))) = view(activation(kernel(x)))", OpKind::activation, sink_view_through_one},
      {"f(view(kernel(x)), c) = view(f(kernel(x), c))", OpKind::elementwise, sink_view_through_constant},
      {"cast(gather(table)) = gather(cast(table)) where that is narrower", OpKind::cast, narrow_table},
      {"cast(transpose(x)) = transpose(cast(x))", OpKind::cast, sink_through_one},
      {"f(transpose(x), transpose(y) or c) = transpose(f(x, y or c))", OpKind::elementwise, sink_through_two},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
