// SPDX-License-Identifier: Apache-2.0
// The fusion program as text of device code.
#pragma once

#include <string>
#include <string_view>

#include "device/program.h"

namespace lathe::cuda {

// How exact an instruction has to be: to the last bits of a float, enough for results of 16 bits at the most, for those
// of f16, or for those that are rounded to 8-bit floats next.
enum class Exactness { full, bits16, half, float8 };
// One line per instruction of the program; register i is the variable r<i> of `type` (float or double).
std::string program_lines(const Program& program, std::string_view type, std::string_view indent,
                          Exactness exactness = Exactness::full);
std::string literal(float value);

}  // namespace lathe::cuda
