// SPDX-License-Identifier: Apache-2.0
// Kernel "recurrence": a layer of an RNN, GRU or LSTM over a sequence, as the op of that name says.
//   program  none
//   params   RecurrenceParams
//   inputs   0: x[steps, batch, directions * gates * hidden], rows contiguous
//            1: r; with `packed` as pack() leaves it, else [directions, gates * hidden, hidden] of any strides,
//               which is packed at each run
//            2: bias  3: lengths (i32 or i64)  4: initial h  5: initial c  6: peepholes
//            2 and 6 have contiguous rows. 2 to 6 are optional: one that is omitted has rank 0, or the list ends
//            before it.
//   outputs  y, rows contiguous; the last h; the last c (LSTM only, optional)
// All but the lengths are f32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/recurrence/layer_params.h"

namespace lathe::cpu::recurrence {

struct RecurrenceParams {
  LayerParams layer;
  int64_t hidden = 1;
  bool packed = false;
  static constexpr auto members() {
    using P = RecurrenceParams;
    return std::tuple(&P::layer, &P::hidden, &P::packed);
  }
};

struct CellFunction {
  Opcode op = Opcode::sigmoid;  // an activation
  float alpha = 1, beta = 1;
};

// What all steps of a direction have in common.
struct CellType {
  Cell cell = Cell::lstm;
  bool linear_before_reset = false;
  bool input_forget = false;
  float clip = 0;  // 0 = none
  CellFunction functions[3];

  int gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  int functions_count() const { return cell == Cell::lstm ? 3 : cell == Cell::gru ? 2 : 1; }
  // Gate h of such a GRU multiplies its weights with r * h, so its products are a second phase, after gates z and r of
  // all units.
  bool has_two_phases() const { return cell == Cell::gru && !linear_before_reset; }
};

// ---- weights

// The weights of one direction as the tiles of kernel "gemm" read them. A panel holds some hidden units: for each k,
// its units' weights of the first gate, then those of the second, and so on, so that one product gives all gates of its
// units. Example: an LSTM has panels of 16 units and 4 * 16 columns. A GRU of two phases has the panels of gates z and
// r first, then those of gate h.
struct Panel {
  int64_t offset;   // of its weights in those of the direction, in floats
  int64_t unit;     // its first unit
  int units;        // how many it has
  int gate_stride;  // columns from gate to gate: units rounded up to whole vectors; the others are zero
  int gates;
  int columns() const { return gates * gate_stride; }  // floats from one k to the next
};
inline constexpr int kPanelColumns = 64;  // at most

class CellPanels {
 public:
  CellPanels(const CellType& type, int64_t hidden);
  int64_t count(int phase) const { return phases_[phase].panels; }
  Panel panel(int phase, int64_t index) const;
  int64_t floats() const;  // of one direction

 private:
  struct Phase {
    int gates = 0, first_gate = 0, units = 0;  // of a panel
    int64_t panels = 0, offset = 0;
  };
  friend void pack(const CellPanels& panels, const float* r, int64_t row_stride, int64_t column_stride, float* packed);
  int64_t hidden_;
  Phase phases_[2];
};

// Packs one direction's r[gates * hidden, hidden], whose strides are in floats. `packed` has panels.floats() floats and
// is 64-byte aligned.
void pack(const CellPanels& panels, const float* r, int64_t row_stride, int64_t column_stride, float* packed);

// ---- the pointwise part of a step

// Some sequences at one step. The pointers are to the first sequence's values of a panel's first unit; the strides lead
// to the next sequences.
struct CellRows {
  int count;
  const bool* ended;  // whether the step is beyond each sequence's length: h and c stay, y is 0; null = none is
  const float* x;     // the input's part of the gates, gates `hidden` apart
  const float* sums;  // the state's part of the gates, gates `gate_stride` apart
  const float* h;     // before the step
  float* next;        // h after the step
  float* c;           // of an LSTM: before the step, then after it
  float* y;
  float *z, *reset;  // of a GRU of two phases: the gate z, and r * h; null otherwise
  // From one sequence to the next, in floats; state_stride is that of h, next, c, z and reset.
  int64_t x_stride, sums_stride, y_stride, state_stride;
};
struct CellStep {
  const CellType* type;
  int phase, phases;
  int units;
  int64_t hidden;
  int64_t gate_stride;
  const float* bias;       // from the panel's first unit; null = none
  const float* peepholes;  // likewise, gates `hidden` apart
};

}  // namespace lathe::cpu::recurrence

namespace lathe::cpu {
LATHE_ISA_DECLARE(void cell_step(const recurrence::CellStep& step, recurrence::CellRows rows))
}  // namespace lathe::cpu
