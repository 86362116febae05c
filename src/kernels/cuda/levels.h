// SPDX-License-Identifier: Apache-2.0
// Programs that end in levels: clip(round(x / scale) + zero, low, high), or 8-bit floats: round_e4m3(x / scale), which
// the largest of them bound. As rounding keeps the order, x may be clipped first, to what the bounds are worth; what is
// left is done as the result is stored: one instruction rounds, and makes an integer, or an 8-bit float, of it.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "device/program.h"
#include "kernels/cuda/program_lines.h"

namespace lathe::cuda {

struct Levels {
  size_t instructions = 0;     // of the program, before its end
  size_t x = 0;                // the register
  float low = 0, high = 0;     // of x
  std::optional<float> scale;  // none: x is in levels
  int zero = 0;
  std::optional<float> most;  // of integers: their largest magnitude before `zero` is added
  // Of integers to which nothing is added: what x is at the least and at the largest number of the type. The store
  // bounds by those itself, so that x needs no bounds that are the same.
  std::optional<float> least, largest;
  // x is a GELU, which needs this exactness alone. Neither does its quotient, which the store bounds, need more.
  std::optional<Exactness> gelu = {};
};

// Of the program's last result. Nothing where that is something else, or bytes of the type do not hold it, or another
// result is what such an end begins with.
std::optional<Levels> levels_of(const Program& program, DType output);
// Whether a result is an integer of the type already: what quantisation ends with.
bool is_quantized(const Program& program, size_t result, DType dtype);

// The expression of what is stored, before it is rounded: a variable of device code is r<i>.
std::string unrounded(const Levels& levels);

}  // namespace lathe::cuda
