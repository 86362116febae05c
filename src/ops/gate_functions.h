// SPDX-License-Identifier: Apache-2.0
// What a recurrence applies to its gates. The attribute lists the functions of each direction in turn, or those of one
// for both: "sigmoid, tanh, hard_sigmoid(0.2, 0.5)". An RNN has one; a GRU those of the gates z and r, and of h; an
// LSTM those of the gates i, o and f, of the gate c, and of the cell that is shown. "" = sigmoid for gates, tanh for
// the rest. Every activation may be listed; softplus has no parameters here.
#pragma once

#include <optional>
#include <span>

#include "ops/attributes.h"

namespace lathe {

std::optional<ActivationOp> gate_op_from_name(std::string_view name);
size_t gate_parameters(ActivationOp op);  // 0, 1 (alpha) or 2 (alpha, beta)

struct GateFunction {
  ActivationOp op = ActivationOp::sigmoid;
  double alpha = 1, beta = 1;
  bool operator==(const GateFunction&) const = default;
};
double apply(const GateFunction& function, double x);

int64_t gates_of(CellKind cell);
int64_t directions_of(SequenceDirection direction);
std::vector<GateFunction> default_functions(CellKind cell);  // of one direction
// Of each direction in turn.
Result<std::vector<GateFunction>> functions_of(const RecurrenceAttrs& attributes);
std::string to_text(std::span<const GateFunction> functions);

}  // namespace lathe
