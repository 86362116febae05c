// SPDX-License-Identifier: Apache-2.0
// Floats of f32 rounded to f16 or bf16: the weights of a whole network are, where a build lowers its precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace lathe {

inline bool is_narrowed_to(DType to) { return to == DType::f16 || to == DType::bf16; }

// Each is rounded once. Whether any result is infinite or NaN: who refuses numbers out of range looks again then.
bool narrow(const float* from, int64_t count, DType to, std::byte* result);

}  // namespace lathe
