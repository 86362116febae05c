// SPDX-License-Identifier: Apache-2.0
// What the matches of CUDA tactics share: what a step reads.
#pragma once

#include "kernels/match_tactic.h"

namespace lathe::cuda {

bool is_short_float(DType dtype);  // of 32 or 16 bits
// Whether matrix units multiply them: floats of 16 bits that the target's have.
bool is_matrix_half(const Target& target, DType dtype);

// The operands of the problem's program, or of a prologue from `first` on, become the emission's next inputs.
void add_operand_inputs(const Problem& problem, Emission& emission);
void add_prologue_inputs(const Problem& problem, size_t input, Emission& emission, size_t first = 0);

// The step of a kernel whose code has the program, and which reads input 0 and, in place of input 1, packed weights.
// The program's operands come next.
Emission with_weights(Packed packed);
Operand packed_operand(const Packed& packed);  // what a source declares for them

}  // namespace lathe::cuda
