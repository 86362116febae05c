// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: one matrix product of the inputs of all steps with W, plus the biases, then the recurrence with R.
#include <algorithm>

#include "onnx/importer.h"
#include "ops/gate_functions.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

enum Input : size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

// A size of a tensor that fits any memory; its multiples below do not overflow.
constexpr int64_t kMaxHidden = int64_t{1} << 31;

CellKind cell_of(std::string_view op) {
  return op == "LSTM" ? CellKind::lstm : op == "GRU" ? CellKind::gru : CellKind::rnn;
}

struct FunctionName {
  std::string_view name;  // in lower case, for exporters differ
  ActivationOp op;
  double alpha = 1, beta = 1;  // the defaults, where the node lists none
};
constexpr FunctionName kFunctionNames[] = {
    {"affine", ActivationOp::affine, 1, 0},
    {"elu", ActivationOp::elu},
    {"hardsigmoid", ActivationOp::hard_sigmoid, 0.2, 0.5},
    {"leakyrelu", ActivationOp::leaky_relu, 0.01},
    {"relu", ActivationOp::relu},
    {"scaledtanh", ActivationOp::scaled_tanh},
    {"sigmoid", ActivationOp::sigmoid},
    {"softplus", ActivationOp::softplus},
    {"softsign", ActivationOp::softsign},
    {"tanh", ActivationOp::tanh},
    {"thresholdedrelu", ActivationOp::thresholded_relu},
};

const FunctionName* find_function(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto it = std::find_if(std::begin(kFunctionNames), std::end(kFunctionNames),
                               [&](const FunctionName& row) { return row.name == name; });
  return it == std::end(kFunctionNames) ? nullptr : it;
}

// The next of `values`, or `otherwise` when none is left. A node's activation_alpha lists values only for those of its
// activations that have an alpha, in order; likewise activation_beta.
double take(std::span<const double>& values, double otherwise) {
  if (values.empty()) return otherwise;
  const double value = values[0];
  values = values.subspan(1);
  return value;
}

// The activations of all directions as RecurrenceAttrs::functions has them; "", the defaults, where the node names
// none.
std::string functions(NodeContext& c, CellKind cell, int64_t directions) {
  const std::vector<std::string> names = c.strings("activations");
  const std::vector<double> all_alphas = c.reals("activation_alpha"), all_betas = c.reals("activation_beta");
  std::span<const double> alphas = all_alphas, betas = all_betas;
  const size_t count = default_functions(cell).size() * static_cast<size_t>(directions);
  if (!names.empty() && names.size() != count) c.invalid("it lists {} activations, expected {}", names.size(), count);
  std::vector<GateFunction> functions;
  for (const std::string& name : names) {
    const FunctionName* row = find_function(name);
    if (!row) {
      c.unsupported("activation '{}' is unknown", name);
      return "";
    }
    GateFunction function{row->op, row->alpha, row->beta};
    if (gate_parameters(row->op) > 0) function.alpha = take(alphas, row->alpha);
    if (gate_parameters(row->op) > 1) function.beta = take(betas, row->beta);
    functions.push_back(function);
  }
  if (!alphas.empty() || !betas.empty())
    c.invalid("its {} activation_alpha and {} activation_beta are more than its activations take", all_alphas.size(),
              all_betas.size());
  return to_text(functions);
}

class Layer {
 public:
  explicit Layer(NodeContext& context) : c(context) { attrs_.cell = cell_of(c.op()); }

  void run() {
    read_attributes();
    ir::Value *x = c.require(kX), *w = c.require(kW), *r = c.require(kR);
    if (c.failed()) return;
    if (hidden_ == 0 && r->rank() == 3) hidden_ = r->shape()[2].as_constant().value_or(0);
    if (hidden_ < 1) return c.invalid("hidden_size must be stated, or the shape of R be known");
    if (hidden_ > kMaxHidden) return c.invalid("hidden_size is {}, at most {} is possible", hidden_, kMaxHidden);
    gates_ = gates_of(attrs_.cell);
    check_shapes();
    if (c.failed()) return;
    if (batch_first_) x = c.transpose(x, {1, 0, 2});
    x = c.matmul(x, c.reshape(w, {directions_ * gates_ * hidden_, -1}), {.b = true});
    ir::Value* bias = nullptr;
    if (c.has(kB)) x = c.plus(x, input_bias(bias));
    std::vector<ir::Value*> inputs = {x, c.reshape(r, {directions_, gates_ * hidden_, hidden_}), bias,
                                      c.input(kLengths), initial(kInitialH)};
    const bool is_lstm = attrs_.cell == CellKind::lstm;
    if (is_lstm) inputs.insert(inputs.end(), {initial(kInitialC), c.input(kPeepholes)});
    set_outputs(c.add_all(attrs_, std::move(inputs), is_lstm ? 3 : 2));
  }

 private:
  void read_attributes() {
    c.ignore({"output_sequence"});  // version 1: whether Y is wanted; it is when it has a name
    const std::string direction = c.string("direction", "forward");
    if (direction == "reverse")
      attrs_.direction = SequenceDirection::reverse;
    else if (direction == "bidirectional")
      attrs_.direction = SequenceDirection::bidirectional;
    else if (direction != "forward")
      c.invalid("direction '{}' is unknown", direction);
    directions_ = directions_of(attrs_.direction);
    const int64_t layout = c.integer("layout", 0);
    if (layout != 0 && layout != 1) c.invalid("layout is {}, it must be 0 or 1", layout);
    batch_first_ = layout == 1;
    hidden_ = c.integer("hidden_size", 0);
    attrs_.clip = c.real("clip", 0);
    if (attrs_.cell == CellKind::gru) attrs_.linear_before_reset = c.flag("linear_before_reset", false);
    if (attrs_.cell == CellKind::lstm) attrs_.input_forget = c.flag("input_forget", false);
    attrs_.functions = functions(c, attrs_.cell, directions_);
  }

  void check_shape(size_t input, const char* name, const Shape& want) {
    if (!c.has(input) || c.failed()) return;
    const Shape& shape = c.input(input)->shape();
    bool fits = shape.size() == want.size();
    for (size_t d = 0; fits && d < want.size(); ++d)  // the shape rules assume what is undecided here
      fits = decide({Relation::equal, shape[d], want[d], {}}, {}).value_or(true);
    if (!fits) c.invalid("{} has shape {}, expected {}", name, to_string(shape), to_string(want));
  }
  void check_shapes() {
    const Shape& x = c.input(kX)->shape();
    if (x.size() != 3) return c.invalid("X has shape {}, expected rank 3", to_string(x));
    const Expr batch = x[batch_first_ ? 0 : 1], width = gates_ * hidden_;
    const Shape state = batch_first_ ? Shape{batch, directions_, hidden_} : Shape{directions_, batch, hidden_};
    check_shape(kW, "W", {directions_, width, x[2]});
    check_shape(kR, "R", {directions_, width, hidden_});
    check_shape(kB, "B", {directions_, 2 * width});
    check_shape(kLengths, "sequence_lens", {batch});
    check_shape(kInitialH, "initial_h", state);
    if (attrs_.cell != CellKind::lstm) return;
    check_shape(kInitialC, "initial_c", state);
    check_shape(kPeepholes, "P", {directions_, 3 * hidden_});
  }

  // The biases of W and R are added to the input's part of the gates. The exception is R's bias of gate h in a GRU with
  // linear_before_reset, which the reset gate scales: it becomes `inner`, an input of the recurrence.
  ir::Value* input_bias(ir::Value*& inner) {
    ir::Value* all = c.reshape(c.input(kB), {directions_, 2, gates_, hidden_});
    ir::Value *first = c.slice(all, 1, 0, 1), *second = c.slice(all, 1, 1, 2);
    if (attrs_.linear_before_reset) {
      inner = c.reshape(c.slice(second, 2, 2, 3), {directions_, hidden_});
      ir::Value* none = c.expand(c.scalar_like(0, all), c.ints({directions_, 1, 1, hidden_}));
      second = c.concat({c.slice(second, 2, 0, 2), none}, 2);
    }
    return c.reshape(c.plus(first, second), {directions_ * gates_ * hidden_});
  }

  ir::Value* initial(size_t input) {
    return c.has(input) && batch_first_ ? c.transpose(c.input(input), {1, 0, 2}) : c.input(input);
  }

  // y is [steps, batch, directions * hidden].
  void set_outputs(const std::vector<ir::Value*>& values) {
    ir::Value* y = values[0];
    if (directions_ == 1 && !batch_first_)
      y = c.unsqueeze(y, {1});
    else
      y = c.transpose(c.reshape(y, {0, 0, directions_, hidden_}), batch_first_ ? Ints{1, 0, 2, 3} : Ints{0, 2, 1, 3});
    c.set_output(0, y);
    for (size_t i = 1; i < values.size(); ++i)
      c.set_output(i, batch_first_ ? c.transpose(values[i], {1, 0, 2}) : values[i]);
  }

  NodeContext& c;
  RecurrenceAttrs attrs_;
  int64_t directions_ = 1, gates_ = 1, hidden_ = 0;
  bool batch_first_ = false;
};

}  // namespace

void import_recurrent(NodeContext& c) { Layer(c).run(); }

}  // namespace lathe::onnx
