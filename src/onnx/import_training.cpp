// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers. Inputs are the learning rate, the number of steps before, then one tensor for each weight of
// what is optimised, of its gradients, and of each kind of state; outputs are what is optimised and the states.
#include <functional>

#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;
using Values = std::vector<ir::Value*>;

ir::Value* times(NodeContext& c, ir::Value* x, double factor) { return c.binary(Op::mul, x, factor); }

// Applies `step` to the tensors of each weight: itself, gradient, states -> itself, states.
void optimize(NodeContext& c, size_t num_states, const std::function<Values(Values tensors)>& step) {
  const size_t kinds = 2 + num_states, count = c.num_inputs() < 2 ? 0 : (c.num_inputs() - 2) / kinds;
  if (count == 0 || c.num_inputs() != 2 + count * kinds)
    return c.invalid("it has {} inputs, expected 2 and {} for each tensor that is optimised", c.num_inputs(), kinds);
  for (size_t i = 0; i < count && !c.failed(); ++i) {
    Values tensors;
    for (size_t kind = 0; kind < kinds; ++kind) tensors.push_back(c.require(2 + kind * count + i));
    if (c.failed()) return;
    const Values results = step(std::move(tensors));
    for (size_t kind = 0; kind < results.size(); ++kind) c.set_output(kind * count + i, results[kind]);
  }
}

// The number of steps before as a number of the learning rate's type; both without dimensions.
ir::Value* steps_of(NodeContext& c) { return c.cast(c.reshape(c.require(1), Ints{}), c.require(0)->dtype()); }
ir::Value* rate_of(NodeContext& c) { return c.reshape(c.require(0), Ints{}); }

ir::Value* regularized(NodeContext& c, ir::Value* x, ir::Value* gradient, double coefficient) {
  return c.plus(times(c, x, coefficient), gradient);
}

}  // namespace

void import_adagrad(NodeContext& c) {
  const double decay = c.real("decay_factor", 0), epsilon = c.real("epsilon", 1e-6f),
               norm = c.real("norm_coefficient", 0);
  ir::Value* rate = c.divide(rate_of(c), c.binary(Op::add, times(c, steps_of(c), decay), 1.0));
  optimize(c, 1, [&](Values tensors) {
    ir::Value *x = tensors[0], *gradient = regularized(c, x, tensors[1], norm);
    ir::Value* squares = c.plus(tensors[2], c.mul(gradient, gradient));
    ir::Value* root = c.binary(Op::add, c.unary(UnaryOp::sqrt, squares), epsilon);
    return Values{c.minus(x, c.divide(c.mul(c.cast(rate, x->dtype()), gradient), root)), squares};
  });
}

void import_adam(NodeContext& c) {
  const double alpha = c.real("alpha", 0.9f), beta = c.real("beta", 0.999f), epsilon = c.real("epsilon", 1e-6f);
  const double norm = c.real("norm_coefficient", 0), after = c.real("norm_coefficient_post", 0);
  ir::Value *rate = rate_of(c), *steps = steps_of(c);
  const auto rest = [&](double base) {  // 1 - base^steps
    return c.minus(c.scalar_like(1, steps), c.binary(Op::pow, c.scalar_like(base, steps), steps));
  };
  ir::Value* corrected = c.divide(c.mul(rate, c.unary(UnaryOp::sqrt, rest(beta))), rest(alpha));
  rate = c.select(c.binary(Op::greater, steps, 0.0), corrected, rate);
  optimize(c, 2, [&](Values tensors) {
    ir::Value *x = tensors[0], *gradient = regularized(c, x, tensors[1], norm);
    ir::Value* mean = c.plus(times(c, tensors[2], alpha), times(c, gradient, 1 - alpha));
    ir::Value* squares = c.plus(times(c, tensors[3], beta), times(c, c.mul(gradient, gradient), 1 - beta));
    ir::Value* root = c.binary(Op::add, c.unary(UnaryOp::sqrt, squares), epsilon);
    ir::Value* next = c.minus(x, c.mul(c.cast(rate, x->dtype()), c.divide(mean, root)));
    return Values{times(c, next, 1 - after), mean, squares};
  });
}

void import_momentum(NodeContext& c) {
  for (const char* name : {"alpha", "beta", "mode", "norm_coefficient"})
    if (!c.has_attribute(name)) return c.invalid("attribute '{}' is required", name);
  const double alpha = c.real("alpha", 0), beta = c.real("beta", 0), norm = c.real("norm_coefficient", 0);
  const std::string mode = c.string("mode", "");
  if (mode != "standard" && mode != "nesterov") return c.invalid("mode '{}' is unknown", mode);
  ir::Value *rate = rate_of(c), *steps = steps_of(c);
  ir::Value* weight = c.select(c.binary(Op::greater, steps, 0.0), c.scalar_like(beta, steps), c.scalar_like(1, steps));
  optimize(c, 1, [&](Values tensors) {
    ir::Value *x = tensors[0], *gradient = regularized(c, x, tensors[1], norm);
    ir::Value* momentum = c.plus(times(c, tensors[2], alpha), c.mul(c.cast(weight, x->dtype()), gradient));
    ir::Value* direction = mode == "standard" ? momentum : c.plus(gradient, times(c, momentum, alpha));
    return Values{c.minus(x, c.mul(c.cast(rate, x->dtype()), direction)), momentum};
  });
}

}  // namespace lathe::onnx
