// SPDX-License-Identifier: Apache-2.0
// Kernel `recurrence_elements`: a layer of an RNN, GRU or LSTM over a sequence, of f32 or f64, computed in doubles.
// What kernel `recurrence` does not take.
//   program  none
//   params   RecurrenceElementsParams
//   inputs   those of the op, in its order: x [steps, batch, directions * gates * hidden],
//            r [directions, gates * hidden, hidden], bias?, lengths? (integers), initial h?, initial c?, peepholes?;
//            omitted ones have rank 0 or lie beyond the list's end
//   outputs  y; the last h; the last c (LSTM only, optional)
// All of any strides.
#pragma once

#include <vector>

#include "device/params.h"
#include "kernels/cpu/recurrence/recurrence.h"

namespace lathe::cpu {

struct RecurrenceElementsParams {
  struct Function {
    Opcode op = Opcode::sigmoid;  // an activation
    double alpha = 1, beta = 1;
    static constexpr auto members() { return std::tuple(&Function::op, &Function::alpha, &Function::beta); }
  };

  recurrence::Cell cell = recurrence::Cell::lstm;
  recurrence::Direction direction = recurrence::Direction::forward;
  bool linear_before_reset = false, input_forget = false;
  double clip = 0;                  // 0 = none
  std::vector<Function> functions;  // of each direction in turn
  static constexpr auto members() {
    using P = RecurrenceElementsParams;
    return std::tuple(&P::cell, &P::direction, &P::linear_before_reset, &P::input_forget, &P::clip, &P::functions);
  }

  int64_t directions() const { return direction == recurrence::Direction::bidirectional ? 2 : 1; }
  int64_t gates() const { return cell == recurrence::Cell::lstm ? 4 : cell == recurrence::Cell::gru ? 3 : 1; }
};

}  // namespace lathe::cpu
