// SPDX-License-Identifier: Apache-2.0
// Ops with data-dependent shapes.
#pragma once

#include "tuning/data_dependent_tactic.h"

namespace lathe::cuda {

DataDependentMatched match_selection(const Problem& problem);    // nonzero and compress: select.cuh
DataDependentMatched match_choice(const Problem& problem);       // choose: choose.cuh
DataDependentMatched match_suppression(const Problem& problem);  // non_max_suppression: boxes.cuh
DataDependentMatched match_by_rule(const Problem& problem);  // expand, reshape, ...: the kernels of generic_tactic()

const DataDependentTacticList& data_dependent_tactics();

// The list of that many int64 in which a find step leaves what it found.
Operand list_operand(const Expr& length);

}  // namespace lathe::cuda
