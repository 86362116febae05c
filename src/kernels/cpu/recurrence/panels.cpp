// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/recurrence/recurrence.h"

namespace lathe::cpu::recurrence {
namespace {

constexpr int kQuantum = 16;  // units are padded to multiples of it: the lanes of an AVX-512 vector

}  // namespace

CellPanels::CellPanels(const CellType& type, int64_t hidden) : hidden_(hidden) {
  const auto phase = [&](int gates, int first_gate, int64_t offset) {
    const int units = kPanelColumns / gates / kQuantum * kQuantum;
    return Phase{gates, first_gate, units, ceil_div(hidden, units), offset};
  };
  if (!type.has_two_phases()) {
    phases_[0] = phase(type.gates(), 0, 0);
    return;
  }
  phases_[0] = phase(2, 0, 0);
  phases_[1] = phase(1, 2, 2 * round_up(hidden, kQuantum) * hidden);
}

Panel CellPanels::panel(int phase, int64_t index) const {
  const Phase& of = phases_[phase];
  const int64_t unit = index * of.units;
  const int units = static_cast<int>(std::min<int64_t>(of.units, hidden_ - unit));
  return {of.offset + unit * of.gates * hidden_, unit, units, static_cast<int>(round_up(units, kQuantum)), of.gates};
}

int64_t CellPanels::floats() const {
  return (phases_[0].gates + phases_[1].gates) * round_up(hidden_, kQuantum) * hidden_;
}

void pack(const CellPanels& panels, const float* r, int64_t row_stride, int64_t column_stride, float* packed) {
  const int64_t hidden = panels.hidden_;
  for (int phase = 0; phase < 2; ++phase)
    for (int64_t p = 0; p < panels.count(phase); ++p) {
      const Panel panel = panels.panel(phase, p);
      float* to = packed + panel.offset;
      std::fill_n(to, hidden * panel.columns(), 0.0f);
      for (int g = 0; g < panel.gates; ++g)
        for (int u = 0; u < panel.units; ++u) {
          const int64_t row = (panels.phases_[phase].first_gate + g) * hidden + panel.unit + u;
          const float* from = r + row * row_stride;
          float* column = to + g * panel.gate_stride + u;
          for (int64_t k = 0; k < hidden; ++k) column[k * panel.columns()] = from[k * column_stride];
        }
    }
}

}  // namespace lathe::cpu::recurrence
