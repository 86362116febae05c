// SPDX-License-Identifier: Apache-2.0
#include "tuning/expected.h"

#include <algorithm>
#include <cmath>

namespace lathe {

bool rounds(const Program& program) {
  std::vector<bool> is_read(program.num_inputs + program.code.size());
  for (const uint16_t output : program.outputs) is_read[output] = true;
  for (size_t i = program.code.size(); i-- > 0;) {
    const Instruction& instruction = program.code[i];
    if (!is_read[program.num_inputs + i]) continue;
    if (is_rounding(instruction.op)) return true;
    for (int k = 0; k < opcode_info(static_cast<int>(instruction.op))->operands; ++k)
      is_read[instruction.operands[static_cast<size_t>(k)]] = true;
  }
  return false;
}

bool Expected::explains(int64_t i, float value, double error) const {
  if (registers.empty()) return false;
  std::vector<float> in(registers.size());
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(registers[k].at_double(i));
  double low = values.as<float>()[i], high = low;
  for (size_t k = 0; k < in.size(); ++k) {
    const float center = in[k];
    for (const float shift : {-errors[k], errors[k]}) {
      in[k] = center + shift;
      float result = 0;
      evaluate(program, in, {&result, 1});
      low = std::min<double>(low, result);
      high = std::max<double>(high, result);
    }
    in[k] = center;
  }
  return value >= low - error && value <= high + error;
}

}  // namespace lathe
