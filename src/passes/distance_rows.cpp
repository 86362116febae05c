// SPDX-License-Identifier: Apache-2.0
#include "passes/distance_rows.h"

#include <algorithm>
#include <cstring>

#include "ops/rules.h"
#include "passes/attention_shapes.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;

constexpr size_t kMostValues = 128;  // that are looked through

Expr dim_at(const Shape& shape, int64_t place) {
  return place <= std::ssize(shape) ? shape[shape.size() - static_cast<size_t>(place)] : Expr(1);
}

// The dimensions of 1, of which that at `place` is one in rows.
Ints ones_of(const Shape& shape, int64_t place) {
  Ints axes;
  for (int64_t axis = 0; axis < std::ssize(shape); ++axis)
    if (std::ssize(shape) - axis == place || is_one(shape[static_cast<size_t>(axis)])) axes.push_back(axis);
  return axes;
}

bool compares(const Node& node) {
  return is(&node, Op::less) || is(&node, Op::less_equal) || is(&node, Op::greater) || is(&node, Op::greater_equal) ||
         is(&node, Op::equal);
}

// c, a and b of c + a * queries + b * keys, as lengths of pasts are.
struct OfLengths {
  int64_t constant, queries, keys;
};
std::optional<OfLengths> of_lengths(const Expr& x, const Expr& queries, const Expr& keys) {
  for (const int64_t a : {0, 1, -1})
    for (const int64_t b : {0, 1, -1})
      if (const auto rest = (x - Expr(a) * queries - Expr(b) * keys).as_constant()) return OfLengths{*rest, a, b};
  return std::nullopt;
}

}  // namespace

DistanceRows::DistanceRows(Rewrite& r, Value* q, Value* k)
    : r_(r), q_(q), k_(k), queries_(rows_of(q)), keys_(rows_of(k)) {}

// Whether it is the same for all queries and keys.
bool DistanceRows::is_free(const Value* value, Places at) const {
  return is_one(dim_at(value->shape(), at.query)) && is_one(dim_at(value->shape(), at.key));
}

Value* DistanceRows::row_of(Value* value, Places at) {
  if (is_free(value, at)) return value;
  const auto [found, is_new] = rows_.try_emplace({value, at}, nullptr);
  if (!is_new) return found->second;
  if (rows_.size() > kMostValues) return nullptr;
  return found->second = made_row(value, at);
}

Value* DistanceRows::made_row(Value* value, Places at) {
  if (const std::optional<double> number = splat_of(value)) return r_.scalar(*number, value->dtype());
  if (const Tensor* constant = value->constant()) return constant_row(*constant, at);
  if (is_integer(value->dtype()))
    if (const std::optional<Affine> affine = affine_of(value))
      if (Value* row = counted(*affine, value->dtype(), at)) return row;
  const Node* node = value->producer();
  if (!node) return nullptr;
  if (node->has_trait(kPointwise) && !node->has_trait(kQuantization)) return pointwise_row(*node, at);
  if (node->is(OpKind::expand)) return row_of(node->input(0), at);
  if (node->has_trait(kView)) return view_row(*node, at);
  if (node->is(OpKind::transpose)) return transposed_row(*node, at);
  return node->is(OpKind::gather) ? gathered_row(*node, at) : nullptr;
}

// Of a matrix for each index of the other dimensions, whose diagonals each have one number: the first column from
// below, and the first row.
Value* DistanceRows::constant_row(const Tensor& constant, Places at) {
  const Dims& dims = constant.dims();
  const auto size = static_cast<int64_t>(size_of(constant.dtype()));
  if (at != Places{2, 1} || dims.size() < 2 || bits_of(constant.dtype()) % 8 != 0 || constant.volume() == 0)
    return nullptr;
  const int64_t queries = dims[dims.size() - 2], keys = dims.back(), length = queries + keys - 1;
  if (Expr(queries) != queries_ || Expr(keys) != keys_) return nullptr;
  Dims row_dims = dims;
  row_dims[dims.size() - 2] = 1, row_dims.back() = length;
  Result<Tensor> row = Tensor::allocate(constant.dtype(), row_dims);
  if (!row) return nullptr;
  const auto* from = static_cast<const std::byte*>(constant.data());
  auto* to = static_cast<std::byte*>(row->mutable_data());
  for (int64_t matrix = constant.volume() / (queries * keys); matrix-- > 0; to += length * size)
    for (int64_t i = 0; i < queries; ++i, from += keys * size) {
      std::byte* own = to + (queries - 1 - i) * size;
      if (i == 0)
        std::memcpy(own, from, static_cast<size_t>(keys * size));
      else if (std::memcmp(own + size, from + size, static_cast<size_t>((keys - 1) * size)) != 0)
        return nullptr;
      else
        std::memcpy(own, from, static_cast<size_t>(size));
    }
  return r_.constant(std::move(row));
}

// What grows along keys as it falls along queries, and is the same along others; `first` is of the first query and key.
std::optional<Affine> DistanceRows::distance_in(const Affine& affine, Places at) const {
  const auto rank = std::ssize(affine.steps);
  Affine distance{affine.first, {0}};
  for (int64_t place = 1; place <= rank; ++place) {
    const int64_t step = affine.steps[static_cast<size_t>(rank - place)];
    if (place == at.key)
      distance.steps[0] = step;
    else if (step != 0 && place != at.query)
      return std::nullopt;
  }
  const int64_t along_queries = at.query <= rank ? affine.steps[static_cast<size_t>(rank - at.query)] : 0;
  return along_queries == -distance.steps[0] ? std::optional(distance) : std::nullopt;
}

// The integers of such: number n of a row stands for key - query = n - (queries - 1).
Value* DistanceRows::counted(const Affine& affine, DType dtype, Places at) {
  const std::optional<Affine> distance = distance_in(affine, at);
  const std::optional<OfLengths> first = distance ? of_lengths(distance->first, queries_, keys_) : std::nullopt;
  if (!first) return nullptr;
  const int64_t step = distance->steps[0];
  Value *one = r_.integer_scalar(1), *queries = length_of(r_, q_), *keys = length_of(r_, k_);
  if (!numbers_) numbers_ = r_.add(RangeAttrs(), {r_.integer_scalar(0), r_.minus(r_.plus(queries, keys), one), one});
  const auto times = [&](Value* x, int64_t count) { return count == 1 ? x : r_.mul(x, r_.integer_scalar(count)); };
  // Number 0 is the last query's and the first key's.
  Value* row = times(numbers_, step);
  if (const int64_t constant = first->constant + step; constant != 0) row = r_.plus(row, r_.integer_scalar(constant));
  if (const int64_t count = first->queries - step; count != 0) row = r_.plus(row, times(queries, count));
  if (first->keys != 0) row = r_.plus(row, times(keys, first->keys));
  Ints dims(static_cast<size_t>(at.key), 1);
  dims[0] = -1;
  return r_.cast(at.key == 1 ? row : r_.reshape(row, dims), dtype);
}

// Of a comparison of two values of which each has one of the two dimensions, such as places of queries and of keys: the
// comparison of their difference with 0.
Value* DistanceRows::compared_row(const Node& node, Places at) {
  if (!compares(node) || !is_integer(node.input(0)->dtype())) return nullptr;
  const std::optional<Affine> affine = affine_difference(node.input(0), node.input(1), node.output()->shape());
  Value* row = affine ? counted(*affine, DType::i64, at) : nullptr;
  return row ? r_.add(node.attributes(), {row, r_.integer_scalar(0)}) : nullptr;
}

Value* DistanceRows::pointwise_row(const Node& node, Places at) {
  if (Value* row = compared_row(node, at)) return row;
  std::vector<Value*> rows;
  for (Value* input : node.inputs()) {
    rows.push_back(row_of(input, at));
    if (!rows.back()) return nullptr;
  }
  return r_.add(node.attributes(), std::move(rows));
}

// With leading dimensions of 1.
Value* DistanceRows::ranked(Value* row, int64_t rank) {
  Ints axes;
  for (int64_t axis = 0; axis < rank - row->rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? row : r_.unsqueeze(row, axes);
}

// Of a view that adds or leaves out dimensions of 1: the same view of its input's row.
Value* DistanceRows::view_row(const Node& node, Places at) {
  const Shape &from = node.input(0)->shape(), &to = node.output()->shape();
  Places inner{0, 0};
  int64_t place = 0;
  const auto next = [&] {
    while (++place <= std::ssize(from) && is_one(dim_at(from, place))) {
    }
  };
  for (int64_t own = 1; own <= std::ssize(to); ++own) {
    if (is_one(dim_at(to, own))) continue;
    next();
    if (place > std::ssize(from) || dim_at(from, place) != dim_at(to, own)) return nullptr;
    if (own == at.query) inner.query = place;
    if (own == at.key) inner.key = place;
  }
  next();
  if (inner.query == 0 || inner.key == 0 || place <= std::ssize(from)) return nullptr;
  Value* row = row_of(node.input(0), inner);
  if (!row) return nullptr;
  row = ranked(row, std::ssize(from));
  if (const Ints axes = ones_of(from, inner.query); !axes.empty()) row = r_.squeeze(row, axes);
  const Ints axes = ones_of(to, at.query);
  return axes.empty() ? row : r_.unsqueeze(row, axes);
}

Value* DistanceRows::transposed_row(const Node& node, Places at) {
  const int64_t rank = node.output()->rank();
  const Ints perm = permutation_of(node.attrs<TransposeAttrs>(), static_cast<size_t>(rank));
  const auto inner = [&](int64_t place) { return rank - perm[static_cast<size_t>(rank - place)]; };
  Value* row = row_of(node.input(0), {inner(at.query), inner(at.key)});
  return row ? r_.transpose(ranked(row, rank), perm) : nullptr;
}

// By indices that have both dimensions.
Value* DistanceRows::gathered_row(const Node& node, Places at) {
  Value *data = node.input(0), *indices = node.input(1);
  const int64_t axis = node.attrs<GatherAttrs>().axis;
  const int64_t behind =
      axis < 0 ? -axis - 1 : data->rank() - axis - 1;  // dimensions of the result that are not of the indices
  const Places inner{at.query - behind, at.key - behind};
  if (std::min(inner.query, inner.key) < 1 || std::max(inner.query, inner.key) > indices->rank()) return nullptr;
  Value* row = row_of(indices, inner);
  return row ? r_.add(node.attributes(), {data, ranked(row, indices->rank())}) : nullptr;
}

}  // namespace lathe
