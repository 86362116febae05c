// SPDX-License-Identifier: Apache-2.0
#include "passes/match.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/rules.h"

namespace lathe {
namespace {

template <class A, class Op>
bool has_op(const ir::Node* node, OpKind kind, Op op) {
  return node && node->is(kind) && node->attrs<A>().op == op;
}

// Multiplies the factors of `value` into the product; the root's own reader does not matter.
void flatten(ir::Value* value, FlatProduct& product, bool root) {
  const ir::Node* node = value->producer();
  const bool inner = node && (root || value->has_single_use()) && product.nodes.size() < 8;
  if (const std::optional<double> c = scalar_of(value); c && !root) {
    product.factor *= *c;
  } else if (inner && is(node, ElementwiseOp::mul)) {
    product.nodes.push_back(node);
    flatten(node->input(0), product, false);
    flatten(node->input(1), product, false);
  } else if (inner && is(node, ElementwiseOp::div) && scalar_of(node->input(1))) {
    product.nodes.push_back(node);
    product.factor /= *scalar_of(node->input(1));
    flatten(node->input(0), product, false);
  } else if (inner && is(node, ElementwiseOp::pow) &&
             (scalar_of(node->input(1)) == 2 || scalar_of(node->input(1)) == 3)) {
    product.nodes.push_back(node);
    product.leaves.insert(product.leaves.end(), static_cast<size_t>(*scalar_of(node->input(1))), node->input(0));
  } else {
    product.leaves.push_back(value);
  }
}

}  // namespace

bool is(const ir::Node* node, UnaryOp op) { return has_op<UnaryAttrs>(node, OpKind::unary, op); }
bool is(const ir::Node* node, ActivationOp op) { return has_op<ActivationAttrs>(node, OpKind::activation, op); }
bool is(const ir::Node* node, ElementwiseOp op) { return has_op<ElementwiseAttrs>(node, OpKind::elementwise, op); }

const ir::Node* made_by(const ir::Value* value, OpKind kind) {
  return value && value->producer() && value->producer()->is(kind) ? value->producer() : nullptr;
}
const ir::Node* made_by(const ir::Value* value, UnaryOp op) {
  return value && is(value->producer(), op) ? value->producer() : nullptr;
}
const ir::Node* made_by(const ir::Value* value, ActivationOp op) {
  return value && is(value->producer(), op) ? value->producer() : nullptr;
}
const ir::Node* made_by(const ir::Value* value, ElementwiseOp op) {
  return value && is(value->producer(), op) ? value->producer() : nullptr;
}

std::vector<const ir::Value*> unchanged_operands(const ir::Node& node) {
  if (!node.has_trait(kView | kUnchanged)) return {};
  if (node.is(OpKind::concat)) return {node.inputs().begin(), node.inputs().end()};
  if (node.is(OpKind::select)) return {node.input(1), node.input(2)};
  const bool has_number = node.is(OpKind::pad) && node.attrs<PadAttrs>().mode == PadMode::constant && node.input(2);
  return has_number ? std::vector<const ir::Value*>{node.input(0), node.input(2)}
                    : std::vector<const ir::Value*>{node.input(0)};
}

std::optional<double> scalar_of(const ir::Value* value) {
  const Tensor* constant = value ? value->constant() : nullptr;
  if (!constant || constant->volume() != 1) return std::nullopt;
  return constant->at_double(0);
}

std::optional<double> splat_of(const ir::Value* value) {
  if (const ir::Node* expand = made_by(value, OpKind::expand)) value = expand->input(0);
  if (const ir::Node* cast = made_by(value, OpKind::cast)) {
    const std::optional<double> number = splat_of(cast->input(0));
    return number == 0.0 || number == 1.0 ? number : std::nullopt;  // which every type has
  }
  if (const ir::Node* fill = made_by(value, OpKind::fill)) return fill->attrs<FillAttrs>().value.at_double(0);
  const Tensor* constant = value ? value->constant() : nullptr;
  if (!constant || constant->volume() == 0 || !all_equal(value, constant->at_double(0))) return std::nullopt;
  return constant->at_double(0);
}

bool all_equal(const ir::Value* value, double number) {
  const Tensor* constant = value ? value->constant() : nullptr;
  if (!constant) return false;
  for (int64_t i = 0; i < constant->volume(); ++i)
    if (constant->at_double(i) != number) return false;
  return true;
}

bool is_repeated(const Tensor& constant, size_t axis) {
  size_t bytes = size_of(constant.dtype());  // of what lies at one place of the axis
  for (size_t d = axis + 1; d < constant.dims().size(); ++d) bytes *= static_cast<size_t>(constant.dims()[d]);
  const auto all = static_cast<size_t>(constant.dims()[axis]) * bytes;
  const std::span data(static_cast<const std::byte*>(constant.data()), constant.bytes());
  for (size_t first = 0; first < data.size(); first += all)
    if (std::memcmp(&data[first], &data[first] + bytes, all - bytes) != 0) return false;
  return true;
}

std::optional<Ints> ints_of(const ir::Value* value) {
  if (!value) return std::nullopt;
  if (value->constant()) return to_ints(*value->constant());
  if (!value->elements()) return std::nullopt;
  Ints out;
  for (const Expr& element : *value->elements()) {
    if (!element.is_constant()) return std::nullopt;
    out.push_back(*element.as_constant());
  }
  return out;
}

std::optional<Ints> axes_of(const ir::Value* listed, size_t count, int64_t rank) {
  if (!listed) {
    Ints first(count);
    std::iota(first.begin(), first.end(), 0);
    return first;
  }
  std::optional<Ints> axes = ints_of(listed);
  for (size_t i = 0; axes && i < axes->size(); ++i)
    if ((*axes)[i] < 0) (*axes)[i] += rank;
  return axes;
}

Ints swap_of_last_two(int64_t rank) {
  Ints perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm;
}

bool near(double a, double b) { return std::fabs(a - b) <= 1e-3 * std::fabs(b); }

std::optional<int64_t> place_in(const Expr& extent, const Expr& at, std::span<const Range> symbols) {
  if (!at.is_valid() || at.is_constant()) return at.as_constant();
  const std::optional<int64_t> behind = (at - extent).as_constant();
  return behind && *behind < 0 && extent.range(symbols).min >= -*behind ? behind : std::nullopt;
}

bool same_shape(const ir::Value* a, const ir::Value* b) { return a->shape() == b->shape(); }

bool is_last_axis(int64_t axis, const ir::Value* value) {
  return axis == -1 || axis == static_cast<int64_t>(value->rank()) - 1;
}

bool commutes(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::add:
    case ElementwiseOp::mul:
    case ElementwiseOp::max:
    case ElementwiseOp::min:
    case ElementwiseOp::logical_and:
    case ElementwiseOp::logical_or:
    case ElementwiseOp::logical_xor:
    case ElementwiseOp::equal:
    case ElementwiseOp::bitwise_and:
    case ElementwiseOp::bitwise_or:
    case ElementwiseOp::bitwise_xor:
      return true;
    default:
      return false;
  }
}

std::optional<WithScalar> match_scalar(const ir::Value* value, ElementwiseOp op) {
  const ir::Node* node = made_by(value, op);
  if (!node) return std::nullopt;
  for (size_t i : {1, 0}) {
    if (i == 0 && !commutes(op)) break;
    const std::optional<double> c = scalar_of(node->input(i));
    if (c && same_shape(node->input(1 - i), value)) return WithScalar{node->input(1 - i), *c};
  }
  return std::nullopt;
}

std::optional<WithScalar> match_scaled(const ir::Value* value) {
  if (auto scaled = match_scalar(value, ElementwiseOp::mul)) return scaled;
  auto divided = match_scalar(value, ElementwiseOp::div);
  if (!divided || !is_floating(value->dtype())) return std::nullopt;
  return WithScalar{divided->x, 1 / divided->c};
}

std::optional<WithScalar> match_shifted(const ir::Value* value) {
  if (auto shifted = match_scalar(value, ElementwiseOp::add)) return shifted;
  auto lowered = match_scalar(value, ElementwiseOp::sub);
  if (!lowered) return std::nullopt;
  return WithScalar{lowered->x, -lowered->c};
}

std::optional<int64_t> reduced_axis(const ir::Value* value, ReduceOp op, const ir::Value* x) {
  const ir::Node* node = value ? value->producer() : nullptr;
  const bool has_view = node && node->has_trait(kView);
  const ir::Node* reduce = made_by(has_view ? node->input(0) : value, OpKind::reduce);
  if (!reduce || reduce->num_inputs() > 1 || reduce->input(0) != x) return std::nullopt;
  const auto& attrs = reduce->attrs<ReduceAttrs>();
  if (attrs.op != op || attrs.keepdims == has_view || attrs.axes.size() != 1) return std::nullopt;
  const int64_t axis = attrs.axes[0] < 0 ? attrs.axes[0] + x->rank() : attrs.axes[0];
  Shape kept = x->shape();
  kept[static_cast<size_t>(axis)] = 1;
  return value->shape() == kept ? std::optional(axis) : std::nullopt;
}

bool multiplies_computed(const ir::Node* node) {
  return node && node->is(OpKind::matmul) && !node->input(0)->content() && !node->input(1)->content();
}

FlatProduct product_of(const ir::Node* root) {
  FlatProduct product;
  flatten(root->output(), product, true);
  return product;
}

}  // namespace lathe
