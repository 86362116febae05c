// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/recurrence/layer_params_tactic.h"

#include "ops/gate_functions.h"
#include "tuning/opcode_of.h"

namespace lathe::cpu::recurrence {

static_assert(static_cast<int>(Cell::rnn) == static_cast<int>(CellKind::rnn));
static_assert(static_cast<int>(Cell::lstm) == static_cast<int>(CellKind::lstm));
static_assert(static_cast<int>(Direction::reverse) == static_cast<int>(SequenceDirection::reverse));

Result<LayerParams> layer_params(const RecurrenceAttrs& attrs) {
  LATHE_ASSIGN(const std::vector<GateFunction> functions, functions_of(attrs));
  LayerParams params;
  params.cell = static_cast<Cell>(attrs.cell);
  params.direction = static_cast<Direction>(attrs.direction);
  params.linear_before_reset = attrs.linear_before_reset;
  params.input_forget = attrs.input_forget;
  params.clip = attrs.clip;
  for (const GateFunction& f : functions) params.functions.push_back({*opcode_of(f.op), f.alpha, f.beta});
  return params;
}

}  // namespace lathe::cpu::recurrence
