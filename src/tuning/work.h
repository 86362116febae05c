// SPDX-License-Identifier: Apache-2.0
// What a problem asks for at the sizes that are tuned for, whatever runs it.
#pragma once

#include "tuning/problem.h"

namespace lathe {

double volume_of(const Dims& dims);

// Multiplications with an addition of the root, or what is computed in their place: elements in windows, and
// instructions of programs.
double products_of(const Problem& problem);

// Of the root and of all programs: a multiplication with its addition counts as two, an instruction as one for each
// element. Of copies: 0.
double operations_of(const Problem& problem);

double moved_bytes(const Problem& problem);  // that are read and written, each once

}  // namespace lathe
