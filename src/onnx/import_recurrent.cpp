// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM, written out step by step: one product of all inputs with the weights, then one product per step.
#include <cmath>

#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMaxSteps = 1024;

struct Activation {
  std::string name;
  std::optional<double> alpha, beta;
};

struct Cell {
  explicit Cell(NodeContext& context) : c(context) {}

  NodeContext& c;
  int64_t hidden = 0;
  double clip = 0;
  bool linear_before_reset = false, input_forget = false;
  std::vector<Activation> activations;  // of this direction
  // Of this direction: R [gates * hidden, hidden], its bias of the hidden gate (GRU), peepholes.
  ir::Value *recurrence = nullptr, *hidden_bias = nullptr, *peepholes = nullptr;

  ir::Value* apply(size_t which, ir::Value* x) {
    if (clip > 0) x = c.activation(ActivationOp::clip, x, -clip, clip);
    const Activation& f = activations[which];
    const double alpha = f.alpha.value_or(0), beta = f.beta.value_or(0);
    if (f.name == "Sigmoid") return c.activation(ActivationOp::sigmoid, x);
    if (f.name == "Tanh") return c.activation(ActivationOp::tanh, x);
    if (f.name == "Relu") return c.activation(ActivationOp::relu, x);
    if (f.name == "Softsign") return c.activation(ActivationOp::softsign, x);
    if (f.name == "Softplus") return c.activation(ActivationOp::softplus, x, 1, 1);
    if (f.name == "LeakyRelu") return c.activation(ActivationOp::leaky_relu, x, f.alpha.value_or(0.01f));
    if (f.name == "ThresholdedRelu") return c.activation(ActivationOp::thresholded_relu, x, f.alpha.value_or(1));
    if (f.name == "Elu") return c.activation(ActivationOp::elu, x, f.alpha.value_or(1));
    if (f.name == "HardSigmoid")
      return c.activation(ActivationOp::hard_sigmoid, x, f.alpha.value_or(0.2f), f.beta.value_or(0.5));
    if (f.name == "ScaledTanh") return c.activation(ActivationOp::scaled_tanh, x, alpha, beta);
    if (f.name == "Affine") return c.binary(ElementwiseOp::add, c.binary(ElementwiseOp::mul, x, alpha), beta);
    c.unsupported("activation '{}' is unknown", f.name);
    return x;
  }

  ir::Value* gate(ir::Value* gates, int64_t i) { return c.slice(gates, 1, i * hidden, (i + 1) * hidden); }
  ir::Value* one_minus(ir::Value* x) { return c.minus(c.scalar_like(1, x), x); }

  // `from_input` is x W' with the biases, [batch, gates * hidden].
  ir::Value* rnn(ir::Value* from_input, ir::Value* h) {
    return apply(0, c.plus(from_input, c.matmul(h, recurrence, false, true)));
  }

  ir::Value* gru(ir::Value* from_input, ir::Value* h) {
    ir::Value* gate_weights = c.slice(recurrence, 0, 0, 2 * hidden);
    ir::Value* hidden_weights = c.slice(recurrence, 0, 2 * hidden, 3 * hidden);
    ir::Value* gates = c.plus(c.slice(from_input, 1, 0, 2 * hidden), c.matmul(h, gate_weights, false, true));
    ir::Value *z = apply(0, gate(gates, 0)), *r = apply(0, gate(gates, 1));
    ir::Value* memory = c.matmul(linear_before_reset ? h : c.mul(r, h), hidden_weights, false, true);
    if (hidden_bias) memory = c.plus(memory, hidden_bias);
    if (linear_before_reset) memory = c.mul(r, memory);
    ir::Value* candidate = apply(1, c.plus(gate(from_input, 2), memory));
    return c.plus(c.mul(one_minus(z), candidate), c.mul(z, h));
  }

  // Gates in the order input, output, forget, cell; peepholes input, output, forget.
  ir::Value* lstm(ir::Value* from_input, ir::Value* h, ir::Value*& cell) {
    ir::Value* gates = c.plus(from_input, c.matmul(h, recurrence, false, true));
    const auto peek = [&](int64_t i, ir::Value* x, ir::Value* at) {
      return peepholes ? c.plus(x, c.mul(c.slice(peepholes, 0, i * hidden, (i + 1) * hidden), at)) : x;
    };
    ir::Value* i = apply(0, peek(0, gate(gates, 0), cell));
    ir::Value* f = input_forget ? one_minus(i) : apply(0, peek(2, gate(gates, 2), cell));
    cell = c.plus(c.mul(f, cell), c.mul(i, apply(1, gate(gates, 3))));
    ir::Value* o = apply(0, peek(1, gate(gates, 1), cell));
    // The output activation is not clipped.
    const double clipped = std::exchange(clip, 0);
    ir::Value* shown = apply(2, cell);
    clip = clipped;
    return c.mul(o, shown);
  }
};

struct Run {
  std::vector<ir::Value*> steps;  // [batch, hidden] each, by position
  ir::Value *h = nullptr, *cell = nullptr;
};

int64_t gates_of(std::string_view op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

std::vector<Activation> read_activations(NodeContext& c, int64_t directions) {
  std::vector<std::string> names = c.strings("activations");
  const std::vector<double> alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  const std::vector<std::string> defaults = c.op() == "LSTM"  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                            : c.op() == "GRU" ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                              : std::vector<std::string>{"Tanh"};
  const size_t count = defaults.size() * static_cast<size_t>(directions);
  while (names.empty() || (!c.has_attribute("activations") && names.size() < count))
    names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != count) c.invalid("it lists {} activations, expected {}", names.size(), count);
  names.resize(count);
  std::vector<Activation> activations;
  for (size_t i = 0; i < count; ++i)
    activations.push_back({names[i], i < alphas.size() ? std::optional(alphas[i]) : std::nullopt,
                           i < betas.size() ? std::optional(betas[i]) : std::nullopt});
  return activations;
}

// Runs one direction over x [steps, batch, input].
Run run_direction(Cell& cell, ir::Value* x, int64_t direction, int64_t steps, bool backwards, bool batch_first) {
  NodeContext& c = cell.c;
  const auto part = [&](size_t i) -> ir::Value* {
    return c.has(i) ? c.squeeze(c.slice(c.input(i), 0, direction, direction + 1), {0}) : nullptr;
  };
  const auto initial = [&](size_t i) -> ir::Value* {
    const int64_t axis = batch_first ? 1 : 0;
    if (c.has(i)) return c.squeeze(c.slice(c.input(i), axis, direction, direction + 1), {axis});
    return c.expand(c.scalar_like(0, x), c.concat({c.shape_of(x, 1, 2), c.ints({cell.hidden})}, 0));
  };
  const int64_t width = gates_of(c.op()) * cell.hidden;
  cell.recurrence = part(2);
  cell.peepholes = c.op() == "LSTM" ? part(7) : nullptr;
  cell.hidden_bias = nullptr;
  ir::Value* inputs = c.matmul(x, part(1), false, true);
  if (ir::Value* bias = part(3)) {
    // All biases add up beforehand, but for that of the GRU's hidden gate, which the reset gate may scale.
    ir::Value *first = c.slice(bias, 0, 0, width), *second = c.slice(bias, 0, width, 2 * width);
    if (c.op() == "GRU") {
      cell.hidden_bias = c.slice(second, 0, 2 * cell.hidden, 3 * cell.hidden);
      second =
          c.concat({c.slice(second, 0, 0, 2 * cell.hidden), c.expand(c.scalar_like(0, x), c.ints({cell.hidden}))}, 0);
    }
    inputs = c.plus(inputs, c.plus(first, second));
  }
  Run result;
  result.steps.resize(static_cast<size_t>(steps));
  result.h = initial(5);
  if (c.op() == "LSTM") result.cell = initial(6);
  for (int64_t step = 0; step < steps && !c.failed(); ++step) {
    const int64_t t = backwards ? steps - 1 - step : step;
    ir::Value* from_input = c.squeeze(c.slice(inputs, 0, t, t + 1), {0});
    ir::Value* memory = result.cell;
    ir::Value* h = c.op() == "LSTM"  ? cell.lstm(from_input, result.h, memory)
                   : c.op() == "GRU" ? cell.gru(from_input, result.h)
                                     : cell.rnn(from_input, result.h);
    ir::Value* shown = h;
    if (c.has(4)) {  // sequences that have ended keep their state and show zeros
      ir::Value* running = c.unsqueeze(c.binary(ElementwiseOp::greater, c.input(4), static_cast<double>(t)), {1});
      shown = c.select(running, h, c.scalar_like(0, h));
      h = c.select(running, h, result.h);
      if (memory) memory = c.select(running, memory, result.cell);
    }
    result.h = h, result.cell = memory;
    result.steps[static_cast<size_t>(t)] = shown;
  }
  return result;
}

}  // namespace

void import_recurrent(NodeContext& c) {
  c.ignore({"output_sequence"});  // version 1: whether Y is wanted; it is when it has a name
  const std::string direction = c.string("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return c.invalid("direction '{}' is unknown", direction);
  const bool batch_first = c.integer("layout", 0) == 1;
  Cell cell(c);
  cell.hidden = c.integer("hidden_size", 0);
  cell.clip = c.real("clip", 0);
  if (c.op() == "GRU") cell.linear_before_reset = c.flag("linear_before_reset", false);
  if (c.op() == "LSTM") cell.input_forget = c.flag("input_forget", false);
  const std::vector<Activation> activations = read_activations(c, directions);
  ir::Value *x = c.require(0), *recurrence = c.require(2);
  if (cell.hidden == 0) cell.hidden = c.dim(recurrence, 2).as_constant().value_or(0);
  if (x->rank() != 3 || recurrence->rank() != 3 || c.require(1)->rank() != 3 || cell.hidden < 1)
    return c.invalid("X, W and R must have rank 3, and the hidden size must be known");
  if (batch_first) x = c.transpose(x, {1, 0, 2});
  const std::optional<int64_t> steps = c.dim(x, 0).as_constant();
  if (!steps || *steps < 1 || *steps > kMaxSteps)
    return c.unsupported("the sequence length must be known while importing, and between 1 and {}", kMaxSteps);
  std::vector<ir::Value*> sequences, states, cells;
  for (int64_t d = 0; d < directions && !c.failed(); ++d) {
    const size_t count = activations.size() / static_cast<size_t>(directions);
    cell.activations.assign(activations.begin() + d * static_cast<ptrdiff_t>(count),
                            activations.begin() + (d + 1) * static_cast<ptrdiff_t>(count));
    Run result = run_direction(cell, x, d, *steps, d == 1 || direction == "reverse", batch_first);
    if (c.failed()) return;
    for (ir::Value*& step : result.steps) step = c.unsqueeze(step, {0});
    sequences.push_back(c.unsqueeze(c.concat(result.steps, 0), {1}));  // [steps, 1, batch, hidden]
    states.push_back(c.unsqueeze(result.h, {0}));
    if (result.cell) cells.push_back(c.unsqueeze(result.cell, {0}));
  }
  if (c.failed()) return;
  const auto join = [&](const std::vector<ir::Value*>& parts, int64_t axis, const Ints& perm) {
    ir::Value* whole = parts.size() == 1 ? parts[0] : c.concat(parts, axis);
    return batch_first ? c.transpose(whole, perm) : whole;
  };
  c.set_output(0, join(sequences, 1, {2, 0, 1, 3}));
  c.set_output(1, join(states, 0, {1, 0, 2}));
  if (!cells.empty()) c.set_output(2, join(cells, 0, {1, 0, 2}));
}

}  // namespace lathe::onnx
