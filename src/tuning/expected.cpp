// SPDX-License-Identifier: Apache-2.0
#include "tuning/expected.h"

#include <algorithm>
#include <cmath>

namespace lathe {
namespace {

// How many elements may be off because a sum that differs in its last bits is rounded to the other side of a tie, as
// far as Expected::explains() that. Ties are rare: a wrong kernel errs in far more elements.
int64_t most_ties(int64_t elements) { return 1 + elements / 500; }

// Of the last place of a number of 16 bits; nothing of other types.
float half_place(float number, DType type) {
  if ((type != DType::f16 && type != DType::bf16) || !std::isfinite(number)) return 0;
  const bool is_half = type == DType::f16;
  const int least = is_half ? -14 : -126, digits = is_half ? 11 : 8;
  return std::ldexp(1.0f, (number == 0 ? least : std::max(std::ilogb(number), least)) - digits);
}

}  // namespace

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

// `shift` says how far each register is moved.
template <class Shift>
bool Expected::lies_among(int64_t i, float value, double error, const Shift& shift) const {
  std::vector<float> in(registers.size());
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(registers[k].at_double(i));
  double low = values.as<float>()[i], high = low;
  for (size_t k = 0; k < in.size(); ++k) {
    const float center = in[k], most = shift(k, center);
    for (const float by : {-most, most}) {
      in[k] = center + by;
      float result = 0;
      evaluate(program, in, {&result, 1});
      low = std::min<double>(low, result);
      high = std::max<double>(high, result);
    }
    in[k] = center;
  }
  return value >= low - error && value <= high + error;
}

bool Expected::explains(int64_t i, float value, double error) const {
  return !registers.empty() && lies_among(i, value, error, [&](size_t k, float) { return errors[k]; });
}

bool Expected::is_of_rounded(int64_t i, float value) const {
  return !registers.empty() &&
         lies_among(i, value, 0, [&](size_t k, float center) { return half_place(center, types[k]); });
}

bool agrees(const Tensor& got, const Expected& expected, double tolerance, double levels) {
  const Tensor& values = expected.values;
  double largest = 0;
  for (int64_t i = 0; i < values.volume(); ++i)
    if (std::isfinite(values.as<float>()[i])) largest = std::max<double>(largest, std::fabs(values.as<float>()[i]));
  const double error = std::max(tolerance * largest, levels);
  int64_t ties = most_ties(values.volume());
  for (int64_t i = 0; i < values.volume(); ++i) {
    const float want = values.as<float>()[i];
    const float have = got.as<float>()[i];
    if (std::isnan(want) && std::isnan(have)) continue;
    if (want == have || std::fabs(have - want) <= error || expected.is_of_rounded(i, have)) continue;
    if (ties-- == 0 || !expected.explains(i, have, error)) return false;
  }
  return true;
}

}  // namespace lathe
