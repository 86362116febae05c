// SPDX-License-Identifier: Apache-2.0
// Enumerators between generations of the interface, which number them differently (generations.def): what code compiled
// for one of them passes to a library of the other.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace lathe::api {

enum class Generation { v10_16, v11 };

// The enumerations whose numbers differ.
enum class Renumbered {
#define LATHE_RENUMBERED(enumeration) enumeration,
#define LATHE_ENUMERATOR(enumeration, enumerator, in_10_16, in_11)
#include "api/generations.def"
#undef LATHE_RENUMBERED
#undef LATHE_ENUMERATOR
};

// The number in `to` of the enumerator with this number in `from`. Fails where `to` lacks it, or `from` has no such
// number.
Result<int32_t> convert_number(Renumbered enumeration, int32_t number, Generation from, Generation to);

// The same of a set, in which an enumerator is the bit of its number. The error has one cause for each that has no
// counterpart.
Result<uint32_t> convert_bits(Renumbered enumeration, uint32_t bits, Generation from, Generation to);

}  // namespace lathe::api
