// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime's operators: a product by a constant matrix of 2, 4 or 8 bits, whose columns lie one
// after the other in blocks along K with a scale each. It becomes a matmul of a dequantisation.
#include <algorithm>
#include <numeric>

#include "base/divide.h"
#include "onnx/packed_levels.h"

namespace lathe::onnx {
namespace {

enum Inputs { kA, kB, kScales, kZeroPoints, kGroups, kBias };

struct Form {
  int64_t k, n, bits, block;
  DType levels = DType::u4;
  int64_t blocks() const { return ceil_div(k, block); }
};

std::optional<Form> form_of(NodeContext& c) {
  Form form{c.require_integer("K"), c.require_integer("N"), c.integer("bits", 4), c.require_integer("block_size")};
  c.ignore({"accuracy_level"});  // the least that products may be computed in, which is never more than what they are
  if (c.failed()) return std::nullopt;
  if (form.k < 1 || form.n < 1)
    c.invalid("K is {} and N {}; both are at least 1", form.k, form.n);
  else if (form.block < 16 || (form.block & (form.block - 1)) != 0)
    c.invalid("block_size is {}; it is a power of two, at least 16", form.block);
  else if (form.bits != 2 && form.bits != 4 && form.bits != 8)
    c.unsupported("bits is {}; give 2, 4 or 8", form.bits);
  if (c.failed()) return std::nullopt;
  form.levels = level_type(form.bits);
  return form;
}

// Where groups of K are not neighbours: K's order in which they are. Empty = they are; nothing after an error.
std::optional<std::vector<int64_t>> order_of_groups(NodeContext& c, const Form& form) {
  std::vector<int64_t> order;
  if (!c.has(kGroups)) return order;
  const std::optional<Tensor> groups = c.known(c.input(kGroups));
  if (!groups) {
    c.unsupported("g_idx is computed while running; give a constant");
    return std::nullopt;
  }
  if (groups->volume() != form.k) {
    c.invalid("g_idx has {} elements, K is {}", groups->volume(), form.k);
    return std::nullopt;
  }
  order.resize(static_cast<size_t>(form.k));
  std::iota(order.begin(), order.end(), 0);
  if (std::ranges::is_sorted(order, {}, [&](int64_t k) { return groups->at(k); })) order.clear();
  std::ranges::stable_sort(order, {}, [&](int64_t k) { return groups->at(k); });
  for (int64_t i = 0; i < form.k; ++i)
    if (groups->at(order.empty() ? i : order[static_cast<size_t>(i)]) != i / form.block) {
      c.unsupported("the groups of g_idx do not have block_size elements each");
      return std::nullopt;
    }
  return order;
}

ir::Value* by_blocks(NodeContext& c, ir::Value* value, const Form& form) {
  return c.reshape(value, {form.n, form.blocks()});
}

// Float zero points, which no level stands for: for each block its sum of A times zero point and scale.
ir::Value* without_float_zeros(NodeContext& c, ir::Value* y, ir::Value* a, const Form& form) {
  const int64_t missing = form.blocks() * form.block - form.k;
  if (missing > 0) {
    Ints pads(2 * static_cast<size_t>(a->rank()), 0);
    pads.back() = missing;
    a = c.add(PadAttrs{}, {a, c.ints(pads)});
  }
  ir::Value* split = c.reshape(a, c.concat({c.shape_of(a, 0, -1), c.ints({form.blocks(), form.block})}, 0));
  ir::Value* zeros = c.cast(by_blocks(c, c.input(kZeroPoints), form), a->dtype());
  ir::Value* products = c.mul(zeros, by_blocks(c, c.require(kScales), form));
  return c.minus(y, c.matmul(c.reduce(ReduceOp::sum, split, {-1}, false), products, {.b = true}));
}

}  // namespace

void import_matmul_n_bits(NodeContext& c) {
  const std::optional<Form> form = form_of(c);
  const std::optional<std::vector<int64_t>> order = form ? order_of_groups(c, *form) : std::nullopt;
  if (!order) return;
  ir::Value* a = c.require(kA);
  if (!order->empty()) a = c.gather(a, c.ints(*order), -1);
  const int64_t blocks = form->blocks();
  ir::Value* levels =
      unpacked_levels(c, kB, "B", {form->bits, form->n, form->k}, blocks * form->block * form->bits / 8, *order);
  const bool has_levels = c.has(kZeroPoints) && c.input(kZeroPoints)->dtype() == DType::u8;
  std::vector<ir::Value*> operands{levels, by_blocks(c, c.require(kScales), *form)};
  if (has_levels)
    operands.push_back(unpacked_levels(c, kZeroPoints, "the zero points", {form->bits, form->n, blocks}));
  else if (!c.has(kZeroPoints))
    operands.push_back(c.filled(1 << (form->bits - 1), form->levels, {form->n, blocks}));
  DequantizeAttrs attributes;
  attributes.to = a->dtype();
  attributes.blocks = {1, form->block};
  ir::Value* y = c.matmul(a, c.add(attributes, std::move(operands)), {.b = true});
  if (c.has(kZeroPoints) && !has_levels) y = without_float_zeros(c, y, a, *form);
  c.set_output(0, c.has(kBias) ? c.plus(y, c.input(kBias)) : y);
}

}  // namespace lathe::onnx
