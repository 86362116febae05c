// SPDX-License-Identifier: Apache-2.0
// Ops whose results' sizes kernels of the CPU find.
#pragma once

#include "tuning/counted_tactic.h"

namespace lathe::cpu {

const CountedTacticList& counted_tactics();

}  // namespace lathe::cpu
