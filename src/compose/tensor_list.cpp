// SPDX-License-Identifier: Apache-2.0
#include "compose/tensor_list.h"

#include "compose/count_up.h"
#include "compose/text.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

ir::Value* number(ir::GraphBuilder& c, int64_t value) { return c.integer_scalar(value); }

ir::Value* product(ir::GraphBuilder& c, ir::Value* x, const Ints& axes, bool keeps) {
  return c.reduce(ReduceOp::prod, x, axes, keeps);
}

ir::Value* length(ir::GraphBuilder& c, const TensorList& list) { return c.shape_of(list.dims, 0, 1); }  // i64[1]

// Where the elements of each tensor begin, and where the last one's end: prefix sums of counts, i64[n + 1].
ir::Value* bounds_of(ir::GraphBuilder& c, ir::Value* counts) {
  return c.concat({c.ints({0}), c.add(CumulativeAttrs{}, {counts, number(c, 0)})}, 0);
}

// Elements of each tensor, i64[tensors]. |-1| = 1 leaves out the dimensions that a tensor does not have.
ir::Value* sizes_of(ir::GraphBuilder& c, const TensorList& list) {
  return product(c, c.unary(UnaryOp::abs, list.dims), {1}, false);
}

// A position in [-length, length + `beyond`), counted from the start. It is looked up in a list of all that there are,
// so that others fail whatever is read of the result; one before the start is looked up behind the end.
ir::Value* from_start(ir::GraphBuilder& c, const TensorList& list, ir::Value* position, int64_t beyond = 0) {
  ir::Value* count = length_of(c, list);
  ir::Value* limit = c.plus(count, number(c, beyond));
  ir::Value* counted = c.select(c.binary(Op::less, position, number(c, 0)), c.plus(position, count), position);
  counted = c.select(c.binary(Op::less, counted, number(c, 0)), limit, counted);
  return c.gather(count_up(c, c.unsqueeze(limit, {0})), counted, 0);
}

// Rows [begin, end), which are i64[].
ir::Value* rows_between(ir::GraphBuilder& c, ir::Value* x, ir::Value* begin, ir::Value* end) {
  return c.add(SliceAttrs{}, {x, c.unsqueeze(begin, {0}), c.unsqueeze(end, {0}), c.ints({0})});
}
ir::Value* rows_before(ir::GraphBuilder& c, ir::Value* x, ir::Value* end) {
  return rows_between(c, x, number(c, 0), end);
}
ir::Value* rows_from(ir::GraphBuilder& c, ir::Value* x, ir::Value* begin) {
  return rows_between(c, x, begin, number(c, INT64_MAX));
}

// Rows in these dims; those of strings have their bytes behind them.
ir::Value* in_dims(ir::GraphBuilder& c, ir::Value* rows, ir::Value* dims, bool is_text) {
  if (is_text) dims = c.concat({dims, c.shape_of(rows, -1)}, 0);
  return c.reshape(rows, dims, /*allow_zero=*/true);
}

ir::Value* dims_of(ir::GraphBuilder& c, ir::Value* x, bool is_text) {
  return c.shape_of(x, 0, is_text ? -1 : INT64_MAX);
}

ir::Value* rows_of(ir::GraphBuilder& c, ir::Value* x, bool is_text) {
  return in_dims(c, x, product(c, dims_of(c, x, is_text), {0}, true), is_text);
}

// The dims that all tensors have, i64[rank], where only those along `axis` may differ.
ir::Value* common_dims(ir::GraphBuilder& c, const TensorList& list, int64_t axis) {
  ir::Value* first = c.gather(list.dims, number(c, 0), 0);
  ir::Value* differ = c.unary(UnaryOp::logical_not, c.binary(Op::equal, list.dims, first));
  Ints counts(static_cast<size_t>(list.rank()), 1);
  if (axis >= 0) counts[static_cast<size_t>(axis)] = 0;
  ir::Value* wrong = c.mul(c.cast(differ, DType::i64), c.ints(counts));
  return only_if_zero(c, first, c.reduce(ReduceOp::sum, wrong, {0, 1}, false));
}

// A tensor that is cut along an axis: `dims`, i64[rank], whose entry at the axis is not read, and the `extents` of the
// parts along it, i64[parts].
struct Along {
  ir::Value *dims, *extents;
  int64_t axis;

  ir::Value* dims_before(ir::GraphBuilder& c) const { return c.slice(dims, 0, 0, axis); }
  ir::Value* dims_behind(ir::GraphBuilder& c) const { return c.slice(dims, 0, axis + 1, INT64_MAX); }
};

// The row of the list in which each element of the whole tensor lies, i64[outer, along, inner].
ir::Value* places(ir::GraphBuilder& c, const Along& along) {
  ir::Value* ends = bounds_of(c, along.extents);
  ir::Value* total = c.reduce(ReduceOp::sum, along.extents, {0});
  ir::Value* index = count_up(c, total);
  ir::Value* is_behind = c.binary(Op::less_equal, c.unsqueeze(c.slice(ends, 0, 1, INT64_MAX), {1}), index);
  ir::Value* part = c.reduce(ReduceOp::sum, c.cast(is_behind, DType::i64), {0}, false);
  ir::Value* inner = product(c, along.dims_behind(c), {0}, true);
  ir::Value* outer = product(c, along.dims_before(c), {0}, true);
  ir::Value* each = c.mul(c.mul(along.extents, inner), outer);
  ir::Value* inside = c.mul(c.minus(index, c.gather(ends, part, 0)), inner);
  ir::Value* begins = c.unsqueeze(c.plus(c.gather(bounds_of(c, each), part, 0), inside), {1});
  ir::Value* step = c.unsqueeze(c.mul(c.gather(along.extents, part, 0), inner), {1});
  ir::Value* rounds = c.mul(c.unsqueeze(count_up(c, outer), {1, 2}), step);
  return c.plus(c.plus(rounds, begins), count_up(c, inner));
}

ir::Value* constant_rows(ir::GraphBuilder& c, int64_t value, ir::Value* shape) {
  return c.fill(shape, Tensor::of<int64_t>({1}, {value}));
}

}  // namespace

ir::Value* only_if_zero(ir::GraphBuilder& c, ir::Value* x, ir::Value* number) {
  return c.gather(c.unsqueeze(x, {0}), c.cast(c.cast(number, DType::boolean), DType::i64), 0);
}

TensorList empty_list(ir::GraphBuilder& c, std::optional<DType> dtype, int64_t rank) {
  TensorList list;
  list.is_text = !dtype;
  list.is_empty = true;
  list.rows = dtype ? c.filled(0, *dtype, {0}) : c.filled(0, DType::u8, {0, 1});
  list.dims = c.filled(0, DType::i64, {0, rank});
  return list;
}

TensorList of_rank(ir::GraphBuilder& c, TensorList list, int64_t rank) {
  if (c.failed() || list.rank() == rank) return list;
  list.is_mixed |= !list.is_empty;
  if (list.is_empty)
    list.dims = c.filled(0, DType::i64, {0, rank});
  else
    list.dims =
        c.concat({list.dims, constant_rows(c, -1, c.concat({length(c, list), c.ints({rank - list.rank()})}, 0))}, 1);
  return list;
}

ir::Value* length_of(ir::GraphBuilder& c, const TensorList& list) { return c.squeeze(length(c, list), {0}); }

ir::Value* element_at(ir::GraphBuilder& c, const TensorList& list, ir::Value* position) {
  ir::Value* at = from_start(c, list, position);
  ir::Value* bounds = bounds_of(c, sizes_of(c, list));
  ir::Value* rows = rows_between(c, list.rows, c.gather(bounds, at, 0), c.gather(bounds, c.plus(at, number(c, 1)), 0));
  return in_dims(c, rows, c.gather(list.dims, at, 0), list.is_text);
}

TensorList inserted(ir::GraphBuilder& c, const TensorList& list, ir::Value* x, ir::Value* position) {
  const int64_t own_rank = x->rank() - (list.is_text ? 1 : 0);
  if (c.failed()) return list;
  TensorList longer = of_rank(c, list, list.is_empty ? own_rank : std::max(list.rank(), own_rank));
  longer.is_mixed |= own_rank < longer.rank();
  longer.is_empty = false;
  ir::Value* rows = rows_of(c, x, list.is_text);
  if (list.is_text) {
    const TextPair both = of_one_width(c, list.rows, rows);
    longer.rows = both.a, rows = both.b;
  }
  Ints lacking(static_cast<size_t>(longer.rank() - own_rank), -1);
  ir::Value* dims = c.unsqueeze(c.concat({dims_of(c, x, list.is_text), c.ints(lacking)}, 0), {0});
  if (!position) {
    longer.rows = c.concat({longer.rows, rows}, 0);
    longer.dims = c.concat({longer.dims, dims}, 0);
    return longer;
  }
  ir::Value* at = from_start(c, list, position, 1);
  ir::Value* place = c.gather(bounds_of(c, sizes_of(c, list)), at, 0);
  longer.rows = c.concat({rows_before(c, longer.rows, place), rows, rows_from(c, longer.rows, place)}, 0);
  longer.dims = c.concat({rows_before(c, longer.dims, at), dims, rows_from(c, longer.dims, at)}, 0);
  return longer;
}

TensorList erased(ir::GraphBuilder& c, const TensorList& list, ir::Value* position) {
  ir::Value* at = from_start(c, list, position ? position : number(c, -1));
  ir::Value* behind = c.plus(at, number(c, 1));
  ir::Value* bounds = bounds_of(c, sizes_of(c, list));
  TensorList shorter = list;
  shorter.rows = c.concat(
      {rows_before(c, list.rows, c.gather(bounds, at, 0)), rows_from(c, list.rows, c.gather(bounds, behind, 0))}, 0);
  shorter.dims = c.concat({rows_before(c, list.dims, at), rows_from(c, list.dims, behind)}, 0);
  return shorter;
}

ir::Value* joined(ir::GraphBuilder& c, const TensorList& list, int64_t axis) {
  if (c.failed()) return list.rows;
  const Along along{common_dims(c, list, axis), c.gather(list.dims, number(c, axis), 1), axis};
  ir::Value* total = c.reduce(ReduceOp::sum, along.extents, {0});
  ir::Value* dims = c.concat({along.dims_before(c), total, along.dims_behind(c)}, 0);
  if (axis == 0) return in_dims(c, list.rows, dims, list.is_text);
  return in_dims(c, rows_of(c, c.gather(list.rows, places(c, along), 0), list.is_text), dims, list.is_text);
}

ir::Value* stacked(ir::GraphBuilder& c, const TensorList& list, int64_t axis) {
  if (c.failed()) return list.rows;
  ir::Value* dims = c.concat({length(c, list), common_dims(c, list, -1)}, 0);
  ir::Value* x = in_dims(c, list.rows, dims, list.is_text);
  Ints perm;
  for (int64_t d = 1; d < x->rank(); ++d) perm.push_back(d);
  perm.insert(perm.begin() + axis, 0);
  return axis == 0 ? x : c.transpose(x, perm);
}

TensorList parted(ir::GraphBuilder& c, ir::Value* x, bool is_text, ir::Value* extents, int64_t axis, bool keeps) {
  TensorList list;
  list.is_text = is_text;
  ir::Value *dims = dims_of(c, x, is_text), *extent = c.shape_of(x, axis, axis + 1);
  ir::Value* excess = c.minus(c.reduce(ReduceOp::sum, extents, {0}), extent);
  ir::Value* negative = c.cast(c.binary(Op::less, extents, number(c, 0)), DType::i64);
  ir::Value* wrong =
      c.plus(c.unary(UnaryOp::abs, c.squeeze(excess, {0})), c.reduce(ReduceOp::sum, negative, {0}, false));
  const Along along{dims, only_if_zero(c, extents, wrong), axis};
  ir::Value* rows = rows_of(c, x, is_text);
  if (axis > 0) {
    ir::Value* size = product(c, dims, {0}, true);
    ir::Value* to = c.reshape(places(c, along), {-1});
    ScatterElementsAttrs scatter;
    rows = c.gather(rows, c.add(scatter, {constant_rows(c, 0, size), to, count_up(c, size)}), 0);
  }
  list.rows = rows;
  ir::Value* count = c.shape_of(along.extents);
  const auto for_all = [&](ir::Value* some) {
    return c.expand(c.unsqueeze(some, {0}), c.concat({count, c.ints({1})}, 0));
  };
  std::vector<ir::Value*> columns = {for_all(along.dims_before(c)), c.unsqueeze(along.extents, {1}),
                                     for_all(along.dims_behind(c))};
  if (!keeps) columns.erase(columns.begin() + 1);
  list.dims = c.concat(columns, 1);
  return list;
}

ir::Value* equal_extents(ir::GraphBuilder& c, ir::Value* extent, ir::Value* of_each) {
  ir::Value* is_wrong = c.cast(c.binary(Op::less, c.squeeze(of_each, {0}), number(c, 1)), DType::i64);
  of_each = c.binary(Op::min, only_if_zero(c, of_each, is_wrong), c.binary(Op::max, extent, number(c, 1)));
  ir::Value* count = c.divide(c.minus(c.plus(extent, of_each), number(c, 1)), of_each);
  ir::Value* begins = c.mul(count_up(c, count), of_each);
  return c.binary(Op::min, of_each, c.minus(extent, begins));
}

}  // namespace lathe
