// SPDX-License-Identifier: Apache-2.0
#include "ops/gate_functions.h"

#include <charconv>
#include <cmath>

#include "ops/pointwise.h"

namespace lathe {
namespace {

struct Row {
  GateOp op;
  std::string_view name;
  size_t parameters;
  ActivationOp same;  // affine is none
};

constexpr Row kRows[] = {
    {GateOp::sigmoid, "sigmoid", 0, ActivationOp::sigmoid},
    {GateOp::tanh, "tanh", 0, ActivationOp::tanh},
    {GateOp::relu, "relu", 0, ActivationOp::relu},
    {GateOp::softsign, "softsign", 0, ActivationOp::softsign},
    {GateOp::softplus, "softplus", 0, ActivationOp::softplus},
    {GateOp::affine, "affine", 2, ActivationOp::relu},
    {GateOp::leaky_relu, "leaky_relu", 1, ActivationOp::leaky_relu},
    {GateOp::thresholded_relu, "thresholded_relu", 1, ActivationOp::thresholded_relu},
    {GateOp::elu, "elu", 1, ActivationOp::elu},
    {GateOp::hard_sigmoid, "hard_sigmoid", 2, ActivationOp::hard_sigmoid},
    {GateOp::scaled_tanh, "scaled_tanh", 2, ActivationOp::scaled_tanh},
};

const Row& row_of(GateOp op) { return kRows[static_cast<size_t>(op)]; }

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// What stands before `end`, which goes, too; all of it where there is none.
std::string_view take_until(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = trimmed(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  return is_number ? std::optional(value) : std::nullopt;
}

// "elu(0.5)" and the comma after it.
std::optional<GateFunction> take_function(std::string_view& text) {
  const size_t bracket = text.find('('), comma = text.find(',');
  const bool has_numbers = bracket < comma;
  const std::optional<GateOp> op = gate_op_from_name(take_until(text, has_numbers ? '(' : ','));
  if (!op || (parameters_of(*op) > 0) != has_numbers) return std::nullopt;
  GateFunction function{*op};
  if (!has_numbers) return function;
  std::string_view numbers = take_until(text, ')');
  for (size_t i = 0; i < parameters_of(*op); ++i) {
    const std::optional<double> number = number_in(take_until(numbers, ','));
    if (!number) return std::nullopt;
    (i == 0 ? function.alpha : function.beta) = *number;
  }
  if (!numbers.empty() || !take_until(text, ',').empty()) return std::nullopt;
  return function;
}

}  // namespace

std::string_view name_of(GateOp op) { return row_of(op).name; }
size_t parameters_of(GateOp op) { return row_of(op).parameters; }

std::optional<GateOp> gate_op_from_name(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.op;
  return std::nullopt;
}

double apply(const GateFunction& function, double x) {
  if (function.op == GateOp::affine) return function.alpha * x + function.beta;
  return activate(row_of(function.op).same, x, function.alpha, function.beta);
}

int64_t gates_of(CellKind cell) { return cell == CellKind::lstm ? 4 : cell == CellKind::gru ? 3 : 1; }
int64_t directions_of(SequenceDirection direction) { return direction == SequenceDirection::bidirectional ? 2 : 1; }

std::vector<GateFunction> default_functions(CellKind cell) {
  if (cell == CellKind::rnn) return {{GateOp::tanh}};
  if (cell == CellKind::gru) return {{GateOp::sigmoid}, {GateOp::tanh}};
  return {{GateOp::sigmoid}, {GateOp::tanh}, {GateOp::tanh}};
}

Result<std::vector<GateFunction>> functions_of(const RecurrenceAttrs& attributes) {
  std::vector<GateFunction> functions;
  for (std::string_view rest = attributes.functions; !trimmed(rest).empty();) {
    const std::optional<GateFunction> function = take_function(rest);
    if (!function)
      return fail(ErrorCode::attribute_invalid,
                  "functions '{}': expected names such as 'sigmoid, tanh, hard_sigmoid(0.2, 0.5)'",
                  attributes.functions);
    functions.push_back(*function);
  }
  if (functions.empty()) functions = default_functions(attributes.cell);
  const size_t each = default_functions(attributes.cell).size();
  const size_t all = each * static_cast<size_t>(directions_of(attributes.direction));
  if (functions.size() == each && all > each) functions.insert(functions.end(), functions.begin(), functions.end());
  if (functions.size() == all) return functions;
  return fail(ErrorCode::attribute_invalid, "functions '{}' are {}, expected {}, or {} for each direction",
              attributes.functions, functions.size(), each, each);
}

std::string to_text(std::span<const GateFunction> functions) {
  std::string text;
  for (const GateFunction& function : functions) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(function.op));
    if (parameters_of(function.op) == 1) text += fmt::format("({})", function.alpha);
    if (parameters_of(function.op) == 2) text += fmt::format("({}, {})", function.alpha, function.beta);
  }
  return text;
}

}  // namespace lathe
