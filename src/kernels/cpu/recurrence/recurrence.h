// SPDX-License-Identifier: Apache-2.0
// Kernel "recurrence": a layer of an RNN, GRU or LSTM over a sequence, as the op of that name says.
//   program  none
//   params   {cell (CellKind), direction (SequenceDirection), hidden, linear_before_reset, input_forget, packed, clip},
//            then for each function of each direction {op (GateOp), alpha, beta}; reals are the bits of a float
//   inputs   0: x[steps, batch, directions * gates * hidden], rows contiguous. 1: r, packed by pack(), or,
//   with
//            `packed` 0, [directions, gates * hidden, hidden] of any strides, packed while running. 2: bias, 3: lengths
//            (i32 or i64), 4: initial h, 5: initial c, 6: peepholes; what is omitted has rank 0, or is left
//            out at the end.
//            2 and 6 have contiguous rows.
//   outputs  y, rows contiguous; the last h; the last c (LSTM only, may be left out)
// All are f32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/isa.h"

namespace lathe::cpu::recurrence {

// In the order of the op's enumerations.
enum class Cell : int { rnn, gru, lstm };
enum class Direction : int { forward, reverse, bidirectional };
enum class FunctionOp : int {
  sigmoid,
  tanh,
  relu,
  softsign,
  softplus,
  affine,
  leaky_relu,
  thresholded_relu,
  elu,
  hard_sigmoid,
  scaled_tanh,
};
inline constexpr int kFunctionOps = 11;

struct Function {
  FunctionOp op = FunctionOp::sigmoid;
  float alpha = 1, beta = 1;
};

// What all steps of a direction have in common.
struct CellType {
  Cell cell = Cell::lstm;
  bool linear_before_reset = false;
  bool input_forget = false;
  float clip = 0;  // 0 = none
  Function functions[3];

  int gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  int functions_count() const { return cell == Cell::lstm ? 3 : cell == Cell::gru ? 2 : 1; }
  // The gate h of a GRU reads the state that the gate r has scaled: it comes after the others.
  bool has_two_phases() const { return cell == Cell::gru && !linear_before_reset; }
};

// ---- weights

// The weights of one direction as the tiles of kernel "gemm" read them: panels of some units, in which the columns of
// each gate lie side by side, so that a tile's sums hold all gates of its units. A GRU of two phases has the panels of
// its gates z and r first, then those of gate h.
struct Panel {
  int64_t offset;   // floats from the direction's first
  int64_t unit;     // the first
  int units;        // that exist
  int gate_stride;  // columns from gate to gate: units rounded up
  int gates;
  int columns() const { return gates * gate_stride; }  // floats from one k to the next
};
inline constexpr int kPanelColumns = 64;  // at most

class Panels {
 public:
  Panels(const CellType& type, int64_t hidden);
  int64_t count(int phase) const { return phases_[phase].panels; }
  Panel panel(int phase, int64_t index) const;
  int64_t floats() const;  // of one direction

 private:
  struct Phase {
    int gates = 0, first_gate = 0, units = 0;  // of a panel
    int64_t panels = 0, offset = 0;
  };
  friend void pack(const Panels& panels, const float* r, int64_t row_stride, int64_t column_stride, float* packed);
  int64_t hidden_;
  Phase phases_[2];
};

// One direction's r[gates * hidden, hidden] of these strides. `packed` is 64-byte aligned.
void pack(const Panels& panels, const float* r, int64_t row_stride, int64_t column_stride, float* packed);

// ---- the pointwise part of a step

// Sequences at one step: of the first of them, what belongs to the units of a panel, from its first unit on.
struct CellRows {
  int count;
  const bool* ended;  // whether each keeps its state; null = none does
  const float* x;     // what the input adds to the gates, `hidden` from gate to gate
  const float* sums;  // the products of the panel's gates, gate_stride from gate to gate
  const float* h;     // before
  float* next;        // h after
  float* c;           // of an LSTM, in and out
  float* y;
  float *z, *reset;  // of a GRU of two phases: the gate z, and r * h
  // From one sequence to the next: x, sums, y, and all that is state.
  int64_t x_stride, sums_stride, y_stride, state_stride;
};
struct CellStep {
  const CellType* type;
  int phase, phases;
  int units;
  int64_t hidden;
  int64_t gate_stride;
  const float* bias;       // from the panel's first unit; null = none
  const float* peepholes;  // likewise, `hidden` from gate to gate
};

}  // namespace lathe::cpu::recurrence

namespace lathe::cpu {
LATHE_ISA_DECLARE(void cell_step(const recurrence::CellStep& step, recurrence::CellRows rows))
}  // namespace lathe::cpu
