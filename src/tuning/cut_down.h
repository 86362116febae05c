// SPDX-License-Identifier: Apache-2.0
// Smaller problems, which the plain evaluation checks tactics with.
#pragma once

#include "tuning/problem.h"

namespace lathe {

// The problem with its batch, image extents and rows cut down, where it can be, so that its plain evaluation is quick;
// channels, weights and the order of strides stay.
Problem cut_down(const Problem& problem);

}  // namespace lathe
