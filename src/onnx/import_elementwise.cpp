// SPDX-License-Identifier: Apache-2.0
// Operators of two or more operands that work element by element.
#include "compose/text.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

struct Row {
  std::string_view name;
  ElementwiseOp op;
};
constexpr Row kRows[] = {
    {"Add", ElementwiseOp::add},
    {"Sub", ElementwiseOp::sub},
    {"Mul", ElementwiseOp::mul},
    {"Div", ElementwiseOp::div},
    {"Max", ElementwiseOp::max},
    {"Min", ElementwiseOp::min},
    {"And", ElementwiseOp::logical_and},
    {"Or", ElementwiseOp::logical_or},
    {"Xor", ElementwiseOp::logical_xor},
    {"Equal", ElementwiseOp::equal},
    {"Greater", ElementwiseOp::greater},
    {"GreaterOrEqual", ElementwiseOp::greater_equal},
    {"Less", ElementwiseOp::less},
    {"LessOrEqual", ElementwiseOp::less_equal},
    {"BitwiseAnd", ElementwiseOp::bitwise_and},
    {"BitwiseOr", ElementwiseOp::bitwise_or},
    {"BitwiseXor", ElementwiseOp::bitwise_xor},
    {"Sum", ElementwiseOp::add},
    {"Mean", ElementwiseOp::add},
};

ElementwiseOp op_of(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.op;
  return ElementwiseOp::add;
}

// The second operand, brought to where NumPy's broadcasting expects it. Before version 7, broadcast=1 lays its dims
// beside those of the first operand from `axis` on.
ir::Value* second_operand(NodeContext& c, ir::Value* a) {
  ir::Value* b = c.require(1);
  if (c.version() >= 7) return b;
  c.ignore({"consumed_inputs"});
  const bool broadcast = c.flag("broadcast", false);
  if (!c.has_attribute("axis") || !broadcast) return b;
  const int64_t axis = c.integer("axis", 0);
  const int64_t trailing = a->rank() - (axis < 0 ? axis + a->rank() : axis) - b->rank();
  if (trailing < 0) c.invalid("axis {} leaves no room for the second operand", axis);
  Ints axes;
  for (int64_t i = 0; i < trailing; ++i) axes.push_back(b->rank() + i);
  return axes.empty() ? b : c.unsqueeze(b, axes);
}

}  // namespace

void import_binarizer(NodeContext& c) {
  ir::Value* x = c.require(0);
  c.set_output(0, c.cast(c.binary(ElementwiseOp::greater, c.cast(x, DType::f64), c.real("threshold", 0)), x->dtype()));
}

void import_elementwise(NodeContext& c) {
  if (c.op() == "Equal" && c.has_texts()) {
    ir::Value *a = c.require_text(0), *b = c.require_text(1);
    return c.set_output(0, c.failed() ? a : same_text(c, a, b));
  }
  ir::Value* a = c.require(0);
  c.set_output(0, c.binary(op_of(c.op()), a, second_operand(c, a)));
}

void import_variadic(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  ir::Value* result = c.require(0);
  for (size_t i = 1; i < c.num_inputs(); ++i) result = c.binary(op_of(c.op()), result, c.require(i));
  if (c.op() == "Mean" && c.num_inputs() > 1)
    result = c.binary(ElementwiseOp::div, result, static_cast<double>(c.num_inputs()));
  c.set_output(0, c.num_inputs() == 1 ? c.identity(result) : result);
}

// The result has the base's type; the operands may differ.
void import_pow(NodeContext& c) {
  ir::Value* base = c.require(0);
  ir::Value* exponent = second_operand(c, base);
  const DType type = base->dtype();
  const bool widen = is_integer(type) && is_floating(exponent->dtype());
  const DType work = widen ? exponent->dtype() : type;
  c.set_output(0, c.cast(c.binary(ElementwiseOp::pow, c.cast(base, work), c.cast(exponent, work)), type));
}

void import_mod(NodeContext& c) {
  const bool fmod = c.flag("fmod", false);
  ir::Value* a = c.require(0);
  if (!fmod && is_floating(a->dtype())) c.invalid("floating operands need fmod=1");
  c.set_output(0, c.binary(fmod ? ElementwiseOp::fmod : ElementwiseOp::mod, a, c.require(1)));
}

void import_bit_shift(NodeContext& c) {
  const std::string direction = c.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.invalid("direction is '{}', expected LEFT or RIGHT", direction);
  c.set_output(0, c.binary(direction == "LEFT" ? ElementwiseOp::shift_left : ElementwiseOp::shift_right, c.require(0),
                           c.require(1)));
}

void import_where(NodeContext& c) { c.set_output(0, c.select(c.require(0), c.require(1), c.require(2))); }

}  // namespace lathe::onnx
