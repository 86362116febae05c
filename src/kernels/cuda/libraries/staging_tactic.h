// SPDX-License-Identifier: Apache-2.0
// What tactics that call a library share: results that it leaves in the workspace, for a pointwise launch to finish.
#pragma once

#include <string_view>

#include "tuning/tactic.h"

namespace lathe::cuda {

// Results of a library in the step's workspace.
struct Staged {
  Operand operand;  // dense, of the dims of the problem's output
  Expr bytes;       // from the workspace's start, a multiple of 256: where the library's own memory begins
};
Staged stage(const Problem& problem, DType dtype = DType::f32, Layout layout = Layout::linear);

// Why the program and the way to the output cannot be a launch of their own.
std::optional<std::string> refuse_pointwise(const Problem& problem, const Staged& staged);
// Adds that launch. `problem`: output, operands and program of the region; its operands are the step's inputs from
// `first_operand` on.
Result<> add_pointwise(const Problem& problem, const Staged& staged, size_t first_operand, Emission& emission);
double pointwise_us(const Problem& problem, const Staged& staged);  // by the cost model

// The bytes that the first element's address is surely a multiple of; 16 at most.
int64_t alignment_of(const Operand& operand);

LaunchArg number_arg(Expr value);
LaunchArg float_arg(float value);  // its bits

}  // namespace lathe::cuda
