// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "kernels/cpu/level_sums.h"
#include "tuning/problem.h"

namespace lathe::cpu {

// What the levels of an input are worth that its kernel dequantises as it reads them; nullopt where it is to compute
// something else, or the input is none of 8-bit integers.
std::optional<ByteScale> byte_scale_of(const Operand& input);

}  // namespace lathe::cpu
