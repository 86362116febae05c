// SPDX-License-Identifier: Apache-2.0
// What a recurrence applies to its gates. The attribute lists the functions of each direction in turn, or those of one
// for both: "sigmoid, tanh, hard_sigmoid(0.2, 0.5)". An RNN has one; a GRU those of the gates z and r, and of h; an
// LSTM those of the gates i, o and f, of the gate c, and of the cell that is shown. "" = sigmoid for gates, tanh for
// the rest.
#pragma once

#include <optional>
#include <span>

#include "ops/attributes.h"

namespace lathe {

enum class GateOp : uint8_t {
  sigmoid,
  tanh,
  relu,
  softsign,
  softplus,
  affine,  // alpha * x + beta
  leaky_relu,
  thresholded_relu,
  elu,
  hard_sigmoid,
  scaled_tanh,
};
std::string_view name_of(GateOp op);
std::optional<GateOp> gate_op_from_name(std::string_view name);
size_t parameters_of(GateOp op);  // 0, 1 (alpha) or 2 (alpha, beta)

struct GateFunction {
  GateOp op = GateOp::sigmoid;
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
