// SPDX-License-Identifier: Apache-2.0
// What the rows of scalars.def say about their operations besides formulas.
#pragma once

#include <cstdint>

namespace lathe {

enum ScalarTrait : uint32_t {
  kReals = 1,  // element types that it takes
  kIntegers = 2,
  kBooleans = 4,
  kNumbers = kReals | kIntegers,
  kTruth = 8,   // its result is true or false, of type bool
  kExact = 16,  // of f32, computing in f32 gives what computing in f64 and rounding gives
};

}  // namespace lathe
