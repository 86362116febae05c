// SPDX-License-Identifier: Apache-2.0
// Sorts, and finds where what is sorted differs from what is before it.
#include "compose/unique.h"

#include "compose/count_up.h"
#include "compose/same_number.h"
#include "compose/scan.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

// The indices in ascending order of the keys, a list; of equal ones in the order in which they are.
ir::Value* ascending(ir::GraphBuilder& c, ir::Value* keys) {
  TopkAttrs attributes;
  attributes.largest = false;
  return c.add_all(attributes, {keys, c.shape_of(keys)}, 2)[1];
}

// The indices of rows keys[rows, columns] in their lexicographic order: sorted by each column from the last to the
// first, which keeps the order of rows that are equal there.
ir::Value* ascending_rows(ir::GraphBuilder& c, ir::Value* keys) {
  ir::Value* begin = count_up(c, c.shape_of(keys, 0, 1));
  return scan(c, begin, keys, {.axis = 1, .is_reversed = true, .part = ".column"},
              [](ir::GraphBuilder& inside, ir::Value* order, ir::Value* keys_there) {
                ir::Value* column = inside.gather(keys_there, order, 0);
                return inside.gather(order, ascending(inside, column), 0);
              });
}

struct Counter {
  ir::GraphBuilder& c;

  ir::Value* filled(ir::Value* shape, int64_t value) { return c.fill(shape, Tensor::of<int64_t>({1}, {value})); }
  // Sums up to each element, less one: of flags, how many of them are before it, and it.
  ir::Value* number(ir::Value* flags) {
    ir::Value* sums = c.add(CumulativeAttrs{}, {flags, c.integer_scalar(0)});
    return c.minus(sums, c.integer_scalar(1));
  }
  ir::Value* scattered(ir::Value* onto, ir::Value* at, ir::Value* values,
                       ScatterReduction reduction = ScatterReduction::none) {
    ScatterElementsAttrs attributes;
    attributes.reduction = reduction;
    return c.add(attributes, {onto, at, values});
  }
};

}  // namespace

UniqueValues unique_values(ir::GraphBuilder& c, ir::Value* x, const Unique& how) {
  const int64_t axis = how.axis.value_or(0);
  if (!how.axis) x = c.reshape(x, {-1});
  ir::Value* keys = x->dtype() == DType::boolean ? c.cast(x, DType::u8) : x;
  if (x->rank() > 1) {
    Ints perm = {axis};
    for (int64_t d = 0; d < x->rank(); ++d)
      if (d != axis) perm.push_back(d);
    keys = c.transpose(keys, perm);
    ir::Value* columns = c.reduce(ReduceOp::prod, c.shape_of(keys, 1), {0}, true);
    keys = c.reshape(keys, c.concat({c.shape_of(keys, 0, 1), columns}, 0), true);
  }
  ir::Value* order = keys->rank() > 1 ? ascending_rows(c, keys) : ascending(c, keys);
  ir::Value* places = count_up(c, c.shape_of(order));
  ir::Value* before = c.binary(Op::max, c.binary(Op::sub, places, 1.0), 0.0);
  ir::Value* sorted = c.gather(keys, order, 0);
  ir::Value* differs = c.unary(UnaryOp::logical_not, same_number(c, sorted, c.gather(sorted, before, 0)));
  if (keys->rank() > 1)
    differs = c.binary(Op::greater, c.reduce(ReduceOp::sum, c.cast(differs, DType::i64), {1}, false), 0.0);
  ir::Value* begins = c.binary(Op::logical_or, differs, c.binary(Op::equal, places, 0.0));  // a value, in sorted order
  Counter counter{c};
  ir::Value *begin = c.cast(begins, DType::i64), *value = counter.number(begin);  // which value each place holds
  UniqueValues found;
  if (how.sorted) {
    found.first = c.gather(order, c.add(CompressAttrs{}, {places, begins}), 0);
  } else {
    ir::Value* is_first = counter.scattered(order, order, begin);  // in x's order
    found.first = c.add(CompressAttrs{}, {places, c.cast(is_first, DType::boolean)});
    ir::Value* none = counter.filled(c.shape_of(order), 0);
    ir::Value* first_of = counter.scattered(none, value, c.mul(order, begin), ScatterReduction::add);
    value = c.gather(counter.number(is_first), c.gather(first_of, value, 0), 0);
  }
  found.values = c.gather(x, found.first, axis);
  found.inverse = counter.scattered(order, order, value);
  found.counts = counter.scattered(counter.filled(c.shape_of(found.first), 0), value,
                                   counter.filled(c.shape_of(order), 1), ScatterReduction::add);
  return found;
}

}  // namespace lathe
