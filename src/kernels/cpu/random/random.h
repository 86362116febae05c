// SPDX-License-Identifier: Apache-2.0
// Kernel `random`: numbers that depend on a seed and their position alone.
//   program  none
//   params   RandomParams
//   inputs   last: the seed, one i64; one before it is not read
//   outputs  0: of any floating type, any strides; rounded once from f64
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct RandomParams {
  bool normal = false;
  double a = 0, b = 1;  // the range [a, b), or mean and standard deviation
  double last = 0;      // uniform: no number is above it
  int digits = 24;      // uniform: binary digits before they are scaled
  static constexpr auto members() {
    return std::tuple(&RandomParams::normal, &RandomParams::a, &RandomParams::b, &RandomParams::last,
                      &RandomParams::digits);
  }
};

}  // namespace lathe::cpu
