// SPDX-License-Identifier: Apache-2.0
#include "passes/cache_updates.h"

#include "ops/rules.h"
#include "passes/affine.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Value;

constexpr size_t kTarget = 0, kRows = 1, kWritten = 2;  // inputs of scatters

Ints perm_of(const ir::Node& transpose) {
  return permutation_of(transpose.attrs<TransposeAttrs>(), static_cast<size_t>(transpose.output()->rank()));
}

bool are_inverse(const Ints& a, const Ints& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (b[static_cast<size_t>(a[i])] != static_cast<int64_t>(i)) return false;
  return true;
}

// The first of constant indices that follow each other; nullopt = they do not.
std::optional<int64_t> first_of_row(const Value* indices) {
  const Ints list = to_ints(*indices->constant());
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] < 0 || list[i] != list[0] + static_cast<int64_t>(i)) return std::nullopt;
  return list.empty() ? std::nullopt : std::optional(list[0]);
}

Value* written_from(Rewrite& r, Value* x, Value* updates, Value* first, int64_t axis) {
  TensorScatterAttrs attrs;
  attrs.axis = axis;
  return r.add(attrs, {x, updates, r.expand(first, r.shape_of(x, 0, 1))});
}

bool is_one_number(const Value* value) { return volume(value->shape()) == Expr(1); }

// Of numbers each of which is one more than the one before, the first; null = they are others.
Value* first_of_count(const Value* numbers) {
  const ir::Node* node = numbers->producer();
  if (!node) return nullptr;
  if (node->has_trait(kView)) return first_of_count(node->input(0));
  if (node->is(OpKind::range) && known_integer(node->input(2)) == Expr(1)) return node->input(0);
  if (!is(node, ElementwiseOp::add) || size_of(numbers->dtype()) < 4) return nullptr;  // narrow ones wrap
  for (const size_t i : {0, 1}) {
    Value* first = is_one_number(node->input(i)) ? first_of_count(node->input(1 - i)) : nullptr;
    if (first && known_integer(first) == Expr(0)) return node->input(i);
  }
  return nullptr;
}

// The first index of rows along that axis, whose indices an expand repeats for all elements; null = they do not follow
// each other.
Value* first_row(const Value* indices, const Expr& rows, size_t axis) {
  const ir::Node* expand = made_by(indices, OpKind::expand);
  if (!expand) return nullptr;
  Value* each = expand->input(0);
  if (rows == Expr(1)) return is_one_number(each) ? each : nullptr;
  Shape shape = each->shape(), wanted(shape.size(), Expr(1));
  const size_t left = indices->shape().size() - shape.size();  // dimensions that it lacks
  if (axis < left) return nullptr;
  wanted[axis - left] = rows;
  return shape == wanted ? first_of_count(each) : nullptr;
}

}  // namespace

Result<bool> scatter_between_transposes(Rewrite& r) {
  const ir::Node* scatter = made_by(r.input(0), OpKind::scatter_nd);
  const ir::Node* before = scatter ? made_by(scatter->input(kTarget), OpKind::transpose) : nullptr;
  if (!before || !r.input(0)->has_single_use()) return false;
  const auto reduction = scatter->attrs<ScatterNdAttrs>().reduction;
  Value* tuples = scatter->input(kRows);
  const Ints back = perm_of(*r.node), perm = perm_of(*before);
  const bool is_rows = tuples->rank() == 2 && tuples->shape()[1] == Expr(1);
  if (reduction != ScatterReduction::none || !is_rows || !are_inverse(back, perm)) return false;
  const std::optional<int64_t> first = tuples->constant() ? first_of_row(tuples) : std::nullopt;
  if (tuples->constant() && (!first || perm[0] == 0)) return false;  // an index for each element would be a constant
  r.absorb(scatter), r.absorb(before);
  Value* updates = r.transpose(scatter->input(kWritten), back);
  if (first) return r.finish(written_from(r, before->input(0), updates, r.ints({*first}), perm[0]));
  Ints sizes(perm.size(), 1);
  sizes[static_cast<size_t>(perm[0])] = -1;
  ScatterElementsAttrs attrs;
  attrs.axis = perm[0];
  Value* indices = r.expand(r.reshape(tuples, sizes), r.shape_of(updates));
  return r.finish(r.add(attrs, {before->input(0), indices, updates}));
}

Result<bool> scatter_of_rows(Rewrite& r) {
  const auto& attrs = r.node->attrs<ScatterElementsAttrs>();
  Value *x = r.input(kTarget), *updates = r.input(kWritten);
  const int64_t axis = attrs.axis < 0 ? attrs.axis + x->rank() : attrs.axis;
  if (axis == 0 || attrs.reduction != ScatterReduction::none) return false;
  Shape rows = x->shape();
  rows[static_cast<size_t>(axis)] = updates->shape()[static_cast<size_t>(axis)];
  Value* first = first_row(r.input(kRows), rows[static_cast<size_t>(axis)], static_cast<size_t>(axis));
  if (!first || updates->shape() != rows) return false;
  // Indices may count from the end.
  Value* extent = r.shape_of(x, axis, axis + 1);
  Value* index = r.cast(r.reshape(first, Ints{1}), DType::i64);
  index = r.select(r.binary(ElementwiseOp::less, index, 0.0), r.plus(index, extent), index);
  return r.finish(written_from(r, x, updates, index, axis));
}

}  // namespace lathe
