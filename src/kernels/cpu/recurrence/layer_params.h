// SPDX-License-Identifier: Apache-2.0
// A recurrent layer as the params of the kernels for it hold it.
#pragma once

#include <tuple>
#include <vector>

#include "device/params.h"
#include "device/program.h"

namespace lathe::cpu::recurrence {

// In the order of the op's enumerations.
enum class Cell : int { rnn, gru, lstm };
enum class Direction : int { forward, reverse, bidirectional };

struct LayerParams {
  struct Function {
    Opcode op = Opcode::sigmoid;  // an activation
    double alpha = 1, beta = 1;
    static constexpr auto members() { return std::tuple(&Function::op, &Function::alpha, &Function::beta); }
  };

  Cell cell = Cell::lstm;
  Direction direction = Direction::forward;
  bool linear_before_reset = false, input_forget = false;
  double clip = 0;                  // 0 = none
  std::vector<Function> functions;  // of each direction in turn
  static constexpr auto members() {
    using P = LayerParams;
    return std::tuple(&P::cell, &P::direction, &P::linear_before_reset, &P::input_forget, &P::clip, &P::functions);
  }

  int64_t directions() const { return direction == Direction::bidirectional ? 2 : 1; }
  int64_t gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  size_t functions_of_direction() const { return cell == Cell::lstm ? 3 : cell == Cell::gru ? 2 : 1; }
};
bool is_valid(const LayerParams& params);

}  // namespace lathe::cpu::recurrence
