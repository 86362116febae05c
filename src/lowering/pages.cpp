// SPDX-License-Identifier: Apache-2.0
#include "lowering/pages.h"

#include "indexing/access.h"
#include "lowering/expression_builder.h"
#include "tuning/problem.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kMostQueries = 64;  // that share a head of keys, as kernels of few queries take

// Queries that share a head of keys, of all heads that do.
double queries_of_keys(const Node& attention, const CostModel& costs) {
  const Shape &q = attention.input(0)->shape(), &k = attention.input(1)->shape();
  return costs.at_optimum(q[1]) * costs.at_optimum(q[2]) / std::max(costs.at_optimum(k[1]), 1.0);
}

// The pool and its table, in the place of the gather whose result is the first operand of `read`.
void read_through(const Node& gather, Expression& read) {
  Value *pool = gather.input(0), *table = gather.input(1);
  const int64_t axis = gather.attrs<GatherAttrs>().axis;
  const auto at = static_cast<size_t>(axis < 0 ? axis + pool->rank() : axis);
  const Shape index = read.space.current(read.reads[0].map.index);
  const auto begin = index.begin() + static_cast<ptrdiff_t>(at), end = begin + table->rank();
  Shape of_pool(index.begin(), begin);
  of_pool.push_back(0);
  of_pool.insert(of_pool.end(), end, index.end());
  const Read of_table{{Shape(begin, end), {}}, {}};
  read.reads[0] = {{std::move(of_pool), {}}, {}};
  read.reads.insert(read.reads.begin() + 1, of_table);
  read.operands[0] = pool;
  read.operands.insert(read.operands.begin() + 1, table);
  read.paged_dim = at;
}

// Along the axes of the space, of a tensor that lies densely.
std::optional<Shape> strides_of(const Expression& read, size_t operand) {
  const Shape dense = dense_strides(read.operands[operand]->shape(), Layout::linear);
  std::optional<Access> access = access_of(read.reads[operand].map, dense, read.space);
  return access ? std::optional(std::move(access->strides)) : std::nullopt;
}

// Whether all but the pool and its table are alike for all sequences and keys of a head.
bool scales_heads(const Expression& read, const PageAxes& axes) {
  for (size_t i = 2; i < read.operands.size(); ++i) {
    const std::optional<Shape> strides = strides_of(read, i);
    const auto is_repeated = [&](std::optional<size_t> axis) { return !axis || (*strides)[*axis] == Expr(0); };
    if (!strides || !is_repeated(axes.batch) || !is_repeated(axes.blocks) || !is_repeated(axes.keys)) return false;
  }
  return true;
}

// What moves keys or values, or dequantises them, on their way to that input of an attention of few queries.
std::optional<Region> conversion_before(const Node& root, size_t input, const NodeOrder& order, const MayJoin& may_join,
                                        const CostModel& costs) {
  const Value* keys = root.input(input);
  if (!root.is(OpKind::attention) || input == 0 || !is_factor(root.info(), input)) return std::nullopt;
  if (!keys->has_single_use() || queries_of_keys(root, costs) > kMostQueries) return std::nullopt;
  Node* last = keys->producer();
  const auto joins = [&](const Node& node) {
    const bool is_converted = node.is(OpKind::dequantize) || node.is(OpKind::cast);
    return (permutes_elements(node) || is_converted) && may_join(node);
  };
  if (!last || !joins(*last)) return std::nullopt;
  ExpressionBuilder expression(last, order);
  expression.grow(joins);
  std::optional<Region> region = expression.is_known() ? expression.region() : std::nullopt;
  if (!region || !round_result(region->expression.program, *keys)) return std::nullopt;
  return region;
}

}  // namespace

// The batch and the blocks choose from the table alone, the others from the pool alone.
std::optional<PageAxes> page_axes(const Expression& read) {
  const std::optional<Shape> pool = strides_of(read, 0), table = strides_of(read, 1);
  const std::vector<size_t> counts = read.space.reassociation();
  if (!pool || !table || counts.size() != 4) return std::nullopt;
  PageAxes axes;
  size_t at = 0;
  for (size_t d = 0; d < counts.size(); ++d)
    for (size_t i = 0; i < counts[d]; ++i, ++at) {
      const bool in_table = (*table)[at] != Expr(0), in_pool = (*pool)[at] != Expr(0);
      std::optional<size_t>& axis = d == 0     ? axes.batch
                                    : d == 1   ? axes.heads
                                    : d == 3   ? axes.size
                                    : in_table ? axes.blocks
                                               : axes.keys;
      const bool may_be_in_table = d == 0 || (d == 2 && !axes.keys);
      if (in_table == in_pool || axis || (in_table ? !may_be_in_table : d == 0)) return std::nullopt;
      axis = at;
    }
  return axes;
}

std::optional<Region> pages_before(const Node& root, size_t input, const NodeOrder& order, const MayJoin& may_join,
                                   const CostModel& costs) {
  std::optional<Region> region = conversion_before(root, input, order, may_join, costs);
  if (!region) return std::nullopt;
  const Value* blocks = region->expression.operands[0];
  Node* gather = blocks->producer();
  const bool is_gather = gather && gather->is(OpKind::gather) && blocks->has_single_use();
  if (!is_gather || gather->input(0)->content() || gather->input(1)->content()) return std::nullopt;
  read_through(*gather, region->expression);
  const std::optional<PageAxes> axes = page_axes(region->expression);
  if (!axes || !scales_heads(region->expression, *axes)) return std::nullopt;
  region->nodes.push_back(gather);
  order.sort(region->nodes);
  return region;
}

std::optional<Region> levels_before(const Node& root, size_t input, const NodeOrder& order, const MayJoin& may_join,
                                    const CostModel& costs) {
  if (!root.is(OpKind::attention)) return std::nullopt;
  const Shape &q = root.input(0)->shape(), &k = root.input(1)->shape();
  const std::optional<int64_t> heads = k[1].as_constant();
  // A prompt's queries would dequantise each key again and again; one step has one way to read it.
  if (!heads || (q[1] * q[2]).range(order.symbols).max > kMostQueries * *heads) return std::nullopt;
  std::optional<Region> region = conversion_before(root, input, order, may_join, costs);
  if (!region) return std::nullopt;
  const Value& levels = *region->expression.operands[0];
  const Shape& keys = root.input(input)->shape();
  const bool is_whole = levels.shape() == keys || region->expression.moves_elements(keys);  // Problems::produced()
  const bool are_levels = is_byte_integer(levels.dtype()) || is_factor_float8(levels.dtype());
  return are_levels && !levels.content() && is_whole ? region : std::nullopt;
}

}  // namespace lathe
