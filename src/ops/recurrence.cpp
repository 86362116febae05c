// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/gate_functions.h"
#include "ops/rules.h"

namespace lathe {
namespace {

enum Input : size_t { kX, kR, kBias, kLengths, kInitialH, kInitialC, kPeepholes };
constexpr const char* kNames[] = {"x", "r", "bias", "lengths", "initial h", "initial c", "peepholes"};

Result<> require_shape(InferContext& context, size_t input, const Shape& want) {
  if (!context.has(input)) return {};
  const Shape& shape = context.shape(input);
  bool fits = shape.size() == want.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = context.assume_equal(shape[d], want[d]);
  if (fits) return {};
  return fail(ErrorCode::shape_mismatch, "{} (input {}) has shape {}, but it must be {}", kNames[input], input,
              to_string(shape), to_string(want));
}

Result<> check_cell(const InferContext& context, const RecurrenceAttrs& attrs) {
  const bool is_lstm = attrs.cell == CellKind::lstm, is_gru = attrs.cell == CellKind::gru;
  const auto only = [&](size_t input, bool allowed, const char* cell) -> Result<> {
    if (allowed || !context.has(input)) return {};
    return fail(ErrorCode::attribute_invalid, "{} (input {}) is of {} cells only", kNames[input], input, cell);
  };
  LATHE_TRY(only(kBias, is_gru, "gru"));
  LATHE_TRY(only(kInitialC, is_lstm, "lstm"));
  LATHE_TRY(only(kPeepholes, is_lstm, "lstm"));
  if (context.num_outputs() > 2 && !is_lstm)
    return fail(ErrorCode::attribute_invalid, "output 2, the last c, is of lstm cells only");
  if ((attrs.linear_before_reset && !is_gru) || (attrs.input_forget && !is_lstm))
    return fail(ErrorCode::attribute_invalid, "linear_before_reset is of gru cells only, input_forget of lstm cells");
  if (!(attrs.clip >= 0)) return fail(ErrorCode::attribute_invalid, "clip is {}, it must not be negative", attrs.clip);
  LATHE_TRY(functions_of(attrs));
  return {};
}

// One sequence in one direction, and the state that it is in.
class Sequence {
 public:
  // All arguments must outlive the object. r is [gates * hidden, hidden]; omitted bias and peepholes are empty.
  Sequence(const RecurrenceAttrs& attrs, std::span<const GateFunction> functions, std::span<const double> r,
           std::span<const double> bias, std::span<const double> peepholes)
      : attrs_(attrs), functions_(functions), r_(r), bias_(bias), peepholes_(peepholes) {}

  std::vector<double> h, c;

  // x is the input's part of the gates, [gates * hidden].
  void step(std::span<const double> x) {
    switch (attrs_.cell) {
      case CellKind::rnn:
        return step_rnn(x);
      case CellKind::gru:
        return step_gru(x);
      case CellKind::lstm:
        return step_lstm(x);
    }
  }

 private:
  // Row `unit` of the gate's weights times `state`.
  double product(size_t gate, size_t unit, std::span<const double> state) const {
    const double* row = r_.data() + (gate * h.size() + unit) * h.size();
    double sum = 0;
    for (size_t k = 0; k < state.size(); ++k) sum += row[k] * state[k];
    return sum;
  }
  double apply_clipped(size_t function, double x) const {
    if (attrs_.clip > 0) x = x < -attrs_.clip ? -attrs_.clip : x > attrs_.clip ? attrs_.clip : x;  // keeps NaN
    return apply(functions_[function], x);
  }

  void step_rnn(std::span<const double> x) {
    std::vector<double> next(h.size());
    for (size_t u = 0; u < h.size(); ++u) next[u] = apply_clipped(0, x[u] + product(0, u, h));
    h = std::move(next);
  }

  void step_gru(std::span<const double> x) {
    const size_t n = h.size();
    std::vector<double> z(n), r(n), reset(n), next(n);
    for (size_t u = 0; u < n; ++u) {
      z[u] = apply_clipped(0, x[u] + product(0, u, h));
      r[u] = apply_clipped(0, x[n + u] + product(1, u, h));
      reset[u] = r[u] * h[u];
    }
    for (size_t u = 0; u < n; ++u) {
      const double bias = bias_.empty() ? 0 : bias_[u];
      const double memory = attrs_.linear_before_reset ? r[u] * (product(2, u, h) + bias) : product(2, u, reset) + bias;
      next[u] = (1 - z[u]) * apply_clipped(1, x[2 * n + u] + memory) + z[u] * h[u];
    }
    h = std::move(next);
  }

  void step_lstm(std::span<const double> x) {
    const size_t n = h.size();
    const auto gate = [&](size_t which, size_t u) { return x[which * n + u] + product(which, u, h); };
    const auto peek = [&](size_t which, size_t u) { return peepholes_.empty() ? 0 : peepholes_[which * n + u] * c[u]; };
    std::vector<double> next(n);
    for (size_t u = 0; u < n; ++u) {
      const double i = apply_clipped(0, gate(0, u) + peek(0, u));
      const double f = attrs_.input_forget ? 1 - i : apply_clipped(0, gate(2, u) + peek(2, u));
      c[u] = f * c[u] + i * apply_clipped(1, gate(3, u));
      const double o = apply_clipped(0, gate(1, u) + peek(1, u));
      next[u] = o * apply(functions_[2], c[u]);  // ONNX clips the inputs of gates only
    }
    h = std::move(next);
  }

  const RecurrenceAttrs& attrs_;
  std::span<const GateFunction> functions_;
  std::span<const double> r_, bias_, peepholes_;
};

class Evaluation {
 public:
  Evaluation(EvalContext& context, std::vector<GateFunction> functions)
      : context_(context),
        attrs_(context.attrs<RecurrenceAttrs>()),
        functions_(std::move(functions)),
        steps_(static_cast<size_t>(context.input(kX).dims()[0])),
        batch_(static_cast<size_t>(context.input(kX).dims()[1])),
        hidden_(static_cast<size_t>(context.input(kR).dims()[2])),
        directions_(static_cast<size_t>(directions_of(attrs_.direction))),
        gates_(static_cast<size_t>(gates_of(attrs_.cell))) {
    for (size_t i = 0; i <= kPeepholes; ++i)
      if (i != kLengths && context.has(i)) inputs_[i] = to_doubles(context.input(i));
    if (context.has(kLengths)) lengths_ = to_ints(context.input(kLengths));
    y_.resize(steps_ * batch_ * directions_ * hidden_);
    last_h_.resize(directions_ * batch_ * hidden_);
    last_c_.resize(last_h_.size());
  }

  void run() {
    for (size_t direction = 0; direction < directions_; ++direction)
      for (size_t b = 0; b < batch_; ++b) run_sequence(direction, b);
    from_doubles(y_, context_.output(0));
    from_doubles(last_h_, context_.output(1));
    if (context_.num_outputs() > 2) from_doubles(last_c_, context_.output(2));
  }

 private:
  // One direction's part of an input whose first dimension is the directions.
  std::span<const double> part(Input input, size_t direction) const {
    const std::span<const double> all = inputs_[input];
    const size_t size = all.size() / directions_;
    return all.subspan(direction * size, size);
  }
  std::vector<double> initial(Input input, size_t at) const {
    if (inputs_[input].empty()) return std::vector<double>(hidden_);
    const auto first = inputs_[input].begin() + static_cast<ptrdiff_t>(at);
    return {first, first + static_cast<ptrdiff_t>(hidden_)};
  }

  void run_sequence(size_t direction, size_t b) {
    const size_t functions = functions_.size() / directions_, width = gates_ * hidden_;
    Sequence sequence(attrs_, std::span(functions_).subspan(direction * functions, functions), part(kR, direction),
                      part(kBias, direction), part(kPeepholes, direction));
    const size_t state = (direction * batch_ + b) * hidden_;
    sequence.h = initial(kInitialH, state);
    sequence.c = initial(kInitialC, state);
    const bool backwards = direction == 1 || attrs_.direction == SequenceDirection::reverse;
    const int64_t steps = static_cast<int64_t>(steps_);
    const int64_t length = lengths_.empty() ? steps : std::clamp<int64_t>(lengths_[b], 0, steps);
    for (int64_t i = 0; i < length; ++i) {
      const auto t = static_cast<size_t>(backwards ? length - 1 - i : i),
                 at = (t * batch_ + b) * directions_ + direction;
      sequence.step(std::span(inputs_[kX]).subspan(at * width, width));
      std::copy(sequence.h.begin(), sequence.h.end(), y_.begin() + static_cast<ptrdiff_t>(at * hidden_));
    }
    std::copy(sequence.h.begin(), sequence.h.end(), last_h_.begin() + static_cast<ptrdiff_t>(state));
    std::copy(sequence.c.begin(), sequence.c.end(), last_c_.begin() + static_cast<ptrdiff_t>(state));
  }

  EvalContext& context_;
  const RecurrenceAttrs& attrs_;
  const std::vector<GateFunction> functions_;
  const size_t steps_, batch_, hidden_, directions_, gates_;
  std::vector<double> inputs_[kPeepholes + 1];
  std::vector<int64_t> lengths_;
  std::vector<double> y_, last_h_, last_c_;
};

}  // namespace

Result<> infer_recurrence(InferContext& context) {
  const auto& attrs = context.attrs<RecurrenceAttrs>();
  LATHE_TRY(check_cell(context, attrs));
  LATHE_TRY(require_floating(context, kX));
  for (size_t i = 1; i < context.num_inputs(); ++i)
    if (context.has(i)) LATHE_TRY(i == kLengths ? require_integer(context, i) : require_same_dtype(context, kX, i));
  LATHE_TRY(require_rank(context, kX, 3, 3));
  LATHE_TRY(require_rank(context, kR, 3, 3));
  const Expr &steps = context.shape(kX)[0], &batch = context.shape(kX)[1], &hidden = context.shape(kR)[2];
  const Expr directions = directions_of(attrs.direction), gates = gates_of(attrs.cell);
  LATHE_TRY(require_shape(context, kR, {directions, gates * hidden, hidden}));
  LATHE_TRY(require_shape(context, kX, {steps, batch, directions * gates * hidden}));
  LATHE_TRY(require_shape(context, kBias, {directions, hidden}));
  LATHE_TRY(require_shape(context, kLengths, {batch}));
  LATHE_TRY(require_shape(context, kInitialH, {directions, batch, hidden}));
  LATHE_TRY(require_shape(context, kInitialC, {directions, batch, hidden}));
  LATHE_TRY(require_shape(context, kPeepholes, {directions, 3 * hidden}));
  const DType dtype = context.dtype(kX);
  context.set(0, dtype, {steps, batch, directions * hidden});
  for (size_t i = 1; i < context.num_outputs(); ++i) context.set(i, dtype, {directions, batch, hidden});
  return {};
}

Result<> eval_recurrence(EvalContext& context) {
  LATHE_ASSIGN(std::vector<GateFunction> functions, functions_of(context.attrs<RecurrenceAttrs>()));
  Evaluation(context, std::move(functions)).run();
  return {};
}

}  // namespace lathe
