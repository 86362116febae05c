// SPDX-License-Identifier: Apache-2.0
// How the work of a recurrent layer is cut: which blocks compute which sequences and units, and where weights are kept.
#pragma once

#include <algorithm>
#include <vector>

#include "base/divide.h"
#include "ops/gate_functions.h"

namespace lathe::cuda::recurrence {

// What is chosen.
struct CutChoice {
  int64_t batch, team, threads;
  int64_t held = 0;       // rows of each warp, and of each phase, in registers
  bool in_shared = true;  // the others are in shared memory, not read from global memory at each step
  bool together = false;  // the team is a direction's blocks of a cooperative launch, not a cluster
};

inline constexpr int64_t kRecomputed = 11;  // registers that ptxas finds by computing addresses anew

// Cut and Rows of rows.cuh, computed while building. emit() asserts in the kernel that the sizes agree.
struct Cut : CutChoice {
  CellKind cell;
  bool two_phases;
  int64_t hidden, element_bytes;

  int64_t gates() const { return gates_of(cell); }
  int64_t units() const { return ceil_div(hidden, team); }
  int64_t warps() const { return threads / 32; }
  int64_t pieces() const { return ceil_div(hidden, 128); }
  int64_t batch_group() const { return std::min<int64_t>(batch, 8); }
  int64_t group(int64_t each) const {
    const int64_t wanted = std::min<int64_t>(32 / batch_group(), 8);
    return each >= wanted ? wanted : each > 2 ? 4 : each > 1 ? 2 : 1;
  }
  struct Rows {
    int64_t per_warp, group, held;
  };
  Rows rows(int64_t of_gates) const {
    const int64_t each = ceil_div(of_gates * units(), warps()), size = group(each);
    const int64_t per_warp = ceil_div(each, size) * size;
    return {per_warp, size, held < per_warp ? held / size * size : per_warp};
  }
  std::vector<Rows> phases() const { return two_phases ? std::vector{rows(2), rows(1)} : std::vector{rows(gates())}; }
  int64_t row_bytes() const { return pieces() * 128 * element_bytes; }
  int64_t elsewhere_bytes() const {
    int64_t bytes = 0;
    for (const Rows& r : phases()) bytes += (r.per_warp - r.held) * warps() * row_bytes();
    return bytes;
  }
  int64_t held_words() const {  // registers of a thread
    int64_t words = 0;
    for (const Rows& r : phases()) words += r.held * pieces() * element_bytes;
    return words;
  }
  // Of a thread.
  int64_t registers() const { return std::min<int64_t>(65536 / threads, 255); }
  // For a group's sums, the state that it multiplies, and cells.
  int64_t computing_registers() const {
    return (phases()[0].group + 4) * batch_group() + ceil_div(units() * batch, threads) * (8 + 2 * gates());
  }
  // An estimate, which is pessimistic, of what sums, state, cells and addresses leave a thread for weights.
  int64_t spare_registers() const { return registers() - 64 - computing_registers(); }
  // Whether the kernel needs no more registers than there are. Beside what it computes with, they hold weights: those
  // that are kept, and a group's that are read anew, with their addresses. The second phase has rows of its own, and
  // where rows end within a piece, lanes ask how far to read. Of 268 kernels that NVRTC compiled for sm_90 it is true
  // of one of the 8 that spilled, and of all but 15 of the others.
  bool fits_registers() const {
    const int64_t read_anew = elsewhere_bytes() > 0 ? phases()[0].group * (element_bytes + (in_shared ? 1 : 4)) : 0;
    const int64_t needed =
        computing_registers() + held_words() + read_anew + (two_phases ? 20 : 0) + (hidden % 128 != 0 ? 16 : 0);
    return needed <= registers() + kRecomputed;
  }
  int64_t shared_bytes() const {
    const int64_t floats = (two_phases ? 3 : 2) * pieces() * 128 + gates() * units();
    return 4 * batch * floats + (in_shared ? elsewhere_bytes() : 0);
  }
  // Cycles of a step, estimated as the sum of its parts: barrier and exchange of state, products, sums over lanes,
  // weights that are not in registers, cells.
  double cycles() const {
    const int64_t taken = ceil_div(batch * hidden, threads);  // floats of state that a thread fetches
    double cycles = team == 1 ? 500 : together ? 3500 + 8 * static_cast<double>(taken) : 1500;
    if (two_phases && team > 1) cycles *= 2;
    const auto schedulers = static_cast<double>(warps()) / 4;
    const auto groups = static_cast<double>(batch) / static_cast<double>(batch_group());
    for (const Rows& r : phases()) {
      const int64_t times = r.per_warp / r.group;
      const auto elements = static_cast<double>(r.per_warp * pieces() * 4);
      const double reads = static_cast<double>(pieces() * batch * times * warps() * 4);
      cycles += schedulers * elements * (static_cast<double>(batch) + (element_bytes == 2 ? 2 * groups : 0)) + reads;
      cycles += schedulers * 70 * groups * static_cast<double>(times);
    }
    cycles += groups * static_cast<double>(elsewhere_bytes()) / (in_shared ? 128 : 30);
    return cycles + 200 * static_cast<double>(ceil_div(units() * batch, threads)) * schedulers;
  }
};

}  // namespace lathe::cuda::recurrence
