// SPDX-License-Identifier: Apache-2.0
// The instructions of the fusion program in double, for tensors that float does not hold (see lib/math.cuh).
#pragma once

#include "lib/math.cuh"

namespace math {

#define LATHE_MATH LATHE_DEVICE
#include "base/scalar_math_f64.inc"
#undef LATHE_MATH

LATHE_DEVICE double nearest_f16(double a) { return nearest_f16(static_cast<float>(a)); }
LATHE_DEVICE double nearest_bf16(double a) { return nearest_bf16(static_cast<float>(a)); }
// The hardware library's errs by up to 2 ulp, which shows where a whole number is expected and truncated to.
LATHE_DEVICE double pow(double a, double b) {
  if (b == 0.5 && a >= 0) return ::sqrt(a);
  const double power = ::pow(a, b);
  return a == ::floor(a) && b == ::floor(b) && ::fabs(power) < 9007199254740992.0 && b >= 0 ? ::rint(power) : power;
}

}  // namespace math

namespace instruction {
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) \
  LATHE_INSTRUCTION_ON(double, name, operands, parameters, formula)
#include "base/scalars.def"
}  // namespace instruction
