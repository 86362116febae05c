// SPDX-License-Identifier: Apache-2.0
// What the bits of storage types mean: floats of 4 and 8 bits, integers of 2 and 4, powers of two (the scales of MX
// formats). Every value of theirs is exact in double.
#pragma once

#include "base/dtype.h"

namespace lathe {

// The number that the low bits of `code` stand for. Of storage types only, like encode().
double decode(DType type, uint8_t code);

// The code of the nearest number that the type has, ties to the even code. `saturate` says what becomes of numbers, and
// infinities, beyond the type's largest: that one with its sign, or else the type's infinity, or where it has none NaN.
// - f4e2m1 always saturates; NaN, which it lacks, becomes 0. The types with `uz` have one zero: -0 becomes it.
// - f8e8m0 takes the magnitude, rounded up to a power of two. Below its least number it gives that one, or NaN.
// - Integers truncate and keep the low bits, as casts of wider integers do.
uint8_t encode(DType type, double value, bool saturate = true);

// Element i of a tensor that lies row-major from `data` on. Of a byte that holds several, the first is in the low bits.
uint8_t load_code(DType type, const void* data, int64_t i);
void store_code(DType type, void* data, int64_t i, uint8_t code);

// Between codes that lie packed and codes that have a byte each.
void unpack(DType type, const void* packed, int64_t count, uint8_t* codes);
// Bits behind the last element are 0.
void pack(DType type, const uint8_t* codes, int64_t count, void* packed);

}  // namespace lathe
