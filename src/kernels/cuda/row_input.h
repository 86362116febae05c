// SPDX-License-Identifier: Apache-2.0
// What kernels of rows read as X: tensor 0 of their index space, as it is or computed by a program before it. The
// program's operands are the last tensors of the space and the last inputs of the step.
#pragma once

#include "kernels/cuda/index_space.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {

void add_prologue_operands(const Problem& problem, IndexSpace& space);  // before it is simplified
// Declares X and gives the expression that kernels read it by.
std::string declare_row_input(Source& source, const Problem& problem, const IndexSpace& space);
// Why a kernel of rows does not take the problem: it reads tensor 0 through any strides, so in another order of
// dimensions, too, but each dimension at one stride. `further`: what the kernel supports beside that.
std::optional<std::string> refuse_row_problem(const Problem& problem, Features further = {});
// Why it cannot be read; nullopt = it is of a type that programs compute with.
std::optional<std::string> refuse_row_input(const Problem& problem);

}  // namespace lathe::cuda
