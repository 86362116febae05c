// SPDX-License-Identifier: Apache-2.0
// Ops whose results' sizes the device computes.
#pragma once

#include "tuning/counted_tactic.h"

namespace lathe::cuda {

const CountedTactic& select_tactic();  // nonzero and compress: select.cuh
const CountedTactic& choose_tactic();  // choose: choose.cuh
const CountedTactic& box_tactic();     // non_max_suppression: boxes.cuh
const CountedTactic& sized_tactic();   // expand, reshape, resize...: the kernels of generic_tactic()

const CountedTacticList& counted_tactics();

// The list of that many int64 in which a find step leaves what it found.
Operand list_operand(const Expr& length);

}  // namespace lathe::cuda
