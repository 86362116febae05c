// SPDX-License-Identifier: Apache-2.0
// How long convolutions take by each algorithm, as far as that can be told without measuring.
#pragma once

#include "device/target.h"
#include "kernels/cpu/conv/conv.h"

namespace lathe::cpu::conv {

// Of weights of `element_size` bytes.
double predicted_us(const Target& target, const ConvProblem& problem, const ConvConfig& config,
                    int64_t element_size = sizeof(float));

}  // namespace lathe::cpu::conv
