// SPDX-License-Identifier: Apache-2.0
// About how long CPU kernels take, from what the target says of its cores.
#pragma once

#include "tuning/tactic.h"

namespace lathe::cpu {

// What a kernel spends on an op. Numbers other than the defaults are measured (AVX-512, two threads).
struct Effort {
  // Multiplications by vectors for each that the op asks for, or what takes as long: 16 where tiles of 16 columns have
  // one output channel of a group each.
  double vectors = 1;
  double clocks = 0;    // of a core for each besides: of kernels that compute one element at a time
  double passes = 1;    // over the operands' memory: 2 where they are copied before they are read
  double elements = 0;  // clocks of a core for each element that is read or written one by one
};

// Microseconds: the longer of computing and of moving the operands, and a fork.
double predicted_us(const Problem& problem, const Effort& effort = {});

// Microseconds to pack weights, input 1, while running.
double packing_us(const Problem& problem);

}  // namespace lathe::cpu
