// SPDX-License-Identifier: Apache-2.0
// What tactics of products of 8-bit integers share.
#pragma once

#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/panels.h"
#include "tuning/tactic.h"

namespace lathe::cpu {

// Why no kernel takes the problem's types and program, beside its shapes. `column_dim` is the output's dimension along
// which weights have columns; those before `first_shared` have weights, and what goes with them, of their own. Weights
// that are no constants of i8 are packed while running.
std::optional<std::string> refuse_integers(const Problem& problem, size_t column_dim, size_t first_shared = 0);

gemm::IntegerTypes types_of(const Problem& problem);

// The step, its weights packed: each column's are contiguous.
Result<Emission> emit_integers(const Problem& problem, std::vector<int64_t> params, const gemm::Panels& fours,
                               int64_t groups, const int8_t* columns);

}  // namespace lathe::cpu
