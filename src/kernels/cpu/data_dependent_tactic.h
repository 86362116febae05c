// SPDX-License-Identifier: Apache-2.0
// The CPU's tactics for ops with data-dependent shapes.
#pragma once

#include "tuning/data_dependent_tactic.h"

namespace lathe::cpu {

const DataDependentTacticList& data_dependent_tactics();

}  // namespace lathe::cpu
