// SPDX-License-Identifier: Apache-2.0
// The CPU's tactics for ops whose result's size only its data tells.
#pragma once

#include "tuning/counted_tactic.h"

namespace lathe::cpu {

const CountedTacticList& counted_tactics();

}  // namespace lathe::cpu
