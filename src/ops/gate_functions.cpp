// SPDX-License-Identifier: Apache-2.0
#include "ops/gate_functions.h"

#include <charconv>
#include <cmath>

#include "ops/pointwise.h"

namespace lathe {
namespace {

struct Row {
  ActivationOp op;
  std::string_view name;
  size_t parameters;
};

constexpr Row kRows[] = {
#define LATHE_ACTIVATION(name, parameters, formula) {ActivationOp::name, #name, parameters},
#include "base/scalars.def"
};

const Row& row_of(ActivationOp op) { return kRows[static_cast<size_t>(op)]; }

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
  const std::optional<ActivationOp> op = gate_op_from_name(take_until(text, has_numbers ? '(' : ','));
  if (!op || (gate_parameters(*op) > 0) != has_numbers) return std::nullopt;
  GateFunction function{*op};
  if (!has_numbers) return function;
  std::string_view numbers = take_until(text, ')');
  for (size_t i = 0; i < gate_parameters(*op); ++i) {
    const std::optional<double> number = number_in(take_until(numbers, ','));
    if (!number) return std::nullopt;
    (i == 0 ? function.alpha : function.beta) = *number;
  }
  if (!numbers.empty() || !take_until(text, ',').empty()) return std::nullopt;
  return function;
}

}  // namespace

size_t gate_parameters(ActivationOp op) { return op == ActivationOp::softplus ? 0 : row_of(op).parameters; }

std::optional<ActivationOp> gate_op_from_name(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.op;
  return std::nullopt;
}

double apply(const GateFunction& function, double x) { return activate(function.op, x, function.alpha, function.beta); }

int64_t gates_of(CellKind cell) { return cell == CellKind::lstm ? 4 : cell == CellKind::gru ? 3 : 1; }
int64_t directions_of(SequenceDirection direction) { return direction == SequenceDirection::bidirectional ? 2 : 1; }

std::vector<GateFunction> default_functions(CellKind cell) {
  if (cell == CellKind::rnn) return {{ActivationOp::tanh}};
  if (cell == CellKind::gru) return {{ActivationOp::sigmoid}, {ActivationOp::tanh}};
  return {{ActivationOp::sigmoid}, {ActivationOp::tanh}, {ActivationOp::tanh}};
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
    text += (text.empty() ? "" : ", ") + std::string(row_of(function.op).name);
    if (gate_parameters(function.op) == 1) text += fmt::format("({})", function.alpha);
    if (gate_parameters(function.op) == 2) text += fmt::format("({}, {})", function.alpha, function.beta);
  }
  return text;
}

}  // namespace lathe
