// SPDX-License-Identifier: Apache-2.0
// What the kernels of a target compute in: passes spell a network for it.
#pragma once

#include <cstdint>

namespace lathe {

struct Arithmetic {
  bool narrow_floats = true;       // there are kernels for f16 and bf16; otherwise they are widened
  bool integer_products = false;   // there are kernels that multiply 8-bit integers
  bool float8_products = false;    // there are kernels that multiply 8-bit floats
  int64_t float8_block = 0;        // of those: blocks along K with scales of their own are whole ones of it; 0 = none
  bool weighted_products = false;  // of those, one takes u8 and i8 with any zero point, by constant weights only
  bool bf16_factors = false;       // products of f32 are faster where they may round their factors to bf16
  bool packed_weights = false;     // products, of experts too, dequantise constant weights of 4 and 8 bits themselves
  bool f32_rows = false;           // kernels for rows and windows take f32 alone, and some ops have none
  bool paired_columns = false;     // products may finish neighbouring columns together (Problem::pairs)
  bool separate_matmuls = false;   // a matrix is read faster than columns of a wider one
};

}  // namespace lathe
