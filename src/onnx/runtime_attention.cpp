// SPDX-License-Identifier: Apache-2.0
#include "onnx/runtime_attention.h"

#include <cmath>

#include "compose/count_up.h"
#include "onnx/heads.h"

namespace lathe::onnx {
namespace {

ir::Value* keys_of(NodeContext& c, const AttentionHeads& of) { return c.shape_of(of.k, 2, 3); }

// Of an end of each sequence, with a start where there are twice as many numbers. Behind three times as many and two,
// only the ends say more than the shapes.
ir::Value* between(NodeContext& c, ir::Value* mask, std::string_view name, const AttentionHeads& of) {
  const Expr batch = c.dim(of.q, 0), count = c.dim(mask, 0);
  const bool has_starts = count == batch * 2;
  if (!has_starts && count != batch && count != batch * 3 + 2) {
    c.unsupported(
        "{} has {} numbers, which is not known to be one for each of {} sequences, two, or three and 2 more; name its "
        "dimension as that of the batch",
        name, count.to_string(), batch.to_string());
    return mask;
  }
  ir::Value *keys = count_up(c, keys_of(c, of)), *size = c.shape_of(of.q, 0, 1);
  const auto part = [&](ir::Value* begin, ir::Value* end) {
    ir::Value* numbers = c.add(SliceAttrs{}, {mask, begin, end, c.ints({0}), c.ints({1})});
    return c.unsqueeze(c.cast(numbers, DType::i64), {1, 2, 3});
  };
  ir::Value* visible = c.binary(ElementwiseOp::less, keys, part(c.ints({0}), size));
  if (!has_starts) return visible;
  ir::Value* begun = c.binary(ElementwiseOp::greater_equal, keys, part(size, c.plus(size, size)));
  return c.binary(ElementwiseOp::logical_and, visible, begun);
}

// [batch, 1, rows, rows], of which the queries are the rows from `past` on.
ir::Value* rows_behind(NodeContext& c, ir::Value* mask, const AttentionHeads& of, ir::Value* past) {
  ir::Value* begin = past ? past : c.ints({0});
  ir::Value *ends = c.concat({c.plus(begin, c.shape_of(of.q, 2, 3)), keys_of(c, of)}, 0),
            *begins = c.concat({begin, c.ints({0})}, 0);
  return c.add(SliceAttrs{}, {mask, begins, ends, c.ints({2, 3}), c.ints({1, 1})});
}

// What is added to the scores.
ir::Value* mask_of(NodeContext& c, const RuntimeAttention& how) {
  if (!how.visible) return how.bias;
  ir::Value* hidden = c.scalar(how.filter, DType::f32);
  if (!how.bias) return c.select(how.visible, c.scalar(0, DType::f32), hidden);
  ir::Value* bias = c.cast(how.bias, DType::f32);
  return c.select(how.visible, bias, c.plus(bias, hidden));
}

}  // namespace

GroupedHeads read_grouped_heads(NodeContext& c) {
  GroupedHeads grouped{c.require_integer("num_heads"), c.require_integer("kv_num_heads"), {}};
  grouped.attributes.scale = c.real("scale", 0);
  grouped.attributes.softcap = c.real("softcap", 0);
  if (!c.failed() && (grouped.of_queries < 1 || grouped.of_keys < 1 || grouped.of_queries % grouped.of_keys != 0))
    c.invalid("num_heads is {}, expected a multiple of kv_num_heads, {}", grouped.of_queries, grouped.of_keys);
  return grouped;
}

std::optional<AttentionHeads> read_heads_of(NodeContext& c, const AttentionHeads& rows, GroupedHeads& grouped) {
  const int64_t heads = grouped.of_queries, shared = grouped.of_keys, all = rows.k ? heads : heads + 2 * shared;
  const std::optional<int64_t> width = c.dim(rows.q, 2).as_constant();
  if (!width) c.unsupported("the last dimension of the query must be known");
  if (width && *width % all != 0) c.invalid("the query has rows of {}, which are not those of {} heads", *width, all);
  if (c.failed()) return std::nullopt;
  const int64_t size = *width / all;
  if (grouped.attributes.scale == 0) grouped.attributes.scale = 1 / std::sqrt(static_cast<double>(size));
  ir::Value* q = split_heads(c, rows.q, all);
  if (rows.k) return AttentionHeads{q, split_heads(c, rows.k, shared), split_heads(c, rows.v, shared)};
  return AttentionHeads{c.slice(q, 1, 0, heads), c.slice(q, 1, heads, heads + shared),
                        c.slice(q, 1, heads + shared, all)};
}

std::optional<RuntimeAttention> runtime_attention(NodeContext& c) {
  RuntimeAttention how;
  how.heads = c.require_integer("num_heads");
  how.scale = c.real("scale", 0);
  how.filter = c.real("mask_filter_value", -10000);
  how.causal = c.flag("unidirectional", false);
  if (!c.failed() && how.heads < 1) c.invalid("num_heads is {}, expected 1 or more", how.heads);
  if (c.failed()) return std::nullopt;
  return how;
}

ir::Value* visible_keys_of(NodeContext& c, size_t input, std::string_view name, const AttentionHeads& of,
                           ir::Value* past) {
  ir::Value* mask = c.input(input);
  if (!mask || c.failed()) return nullptr;
  const auto sized = [&](std::vector<ir::Value*> dims) { return c.require_shape(name, mask, c.concat(dims, 0)); };
  ir::Value *batch = c.shape_of(of.q, 0, 1), *queries = c.shape_of(of.q, 2, 3), *keys = keys_of(c, of);
  switch (mask->rank()) {
    case 1:
      return between(c, mask, name, of);
    case 2:
      if (c.dim(mask, 1) == Expr(1)) return nullptr;  // the same for all keys
      mask = c.unsqueeze(sized({batch, keys}), {1, 2});
      break;
    case 3:
      mask = c.unsqueeze(sized({batch, queries, keys}), {1});
      break;
    case 4:
      mask = rows_behind(c, mask, of, past);
      mask = sized({batch, c.ints({1}), queries, keys});
      break;
    default:
      c.invalid("{} has {} dimensions, expected 1 to 4", name, mask->rank());
      return nullptr;
  }
  return c.binary(ElementwiseOp::greater, mask, 0.0);
}

ir::Value* attended(NodeContext& c, const AttentionHeads& of, const RuntimeAttention& how) {
  AttentionAttrs attributes;
  attributes.causal = how.causal;
  attributes.scale = how.scale;
  const std::optional<int64_t> size = c.dim(of.q, 3).as_constant();
  if (how.scale == 0 && !c.failed() && !size) c.unsupported("the head size must be known, or scale be given");
  if (c.failed()) return of.q;
  if (how.scale == 0) attributes.scale = 1 / std::sqrt(static_cast<double>(*size));
  ir::Value* mask = mask_of(c, how);
  if (!c.wants(how.scores)) {
    std::vector<ir::Value*> inputs{of.q, of.k, of.v};
    if (mask) inputs.push_back(mask);
    return merge_heads(c, c.add(attributes, std::move(inputs)));
  }
  ir::Value* scores = c.matmul(c.binary(ElementwiseOp::mul, of.q, attributes.scale), of.k, {.b = true});
  if (mask) scores = c.cast(c.plus(c.cast(scores, mask->dtype()), mask), of.q->dtype());
  if (how.causal) {
    ir::Value *queries = c.shape_of(of.q, 2, 3), *keys = keys_of(c, of);
    ir::Value* last = c.unsqueeze(c.plus(count_up(c, queries), c.minus(keys, queries)), {1});
    ir::Value* seen = c.binary(ElementwiseOp::less_equal, count_up(c, keys), last);
    scores = c.select(seen, scores, c.scalar_like(-HUGE_VAL, scores));
  }
  c.set_output(how.scores, scores);
  return merge_heads(c, c.matmul(c.softmax(scores, -1), of.v));
}

}  // namespace lathe::onnx
