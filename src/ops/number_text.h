// SPDX-License-Identifier: Apache-2.0
// Numbers as text, and text as numbers: what Cast from and to strings means.
//
// Floats have the fewest digits that tell them from every other number of their type, as Python's str() writes them:
// plain ("0.0001", "1.0", "123456789.0") from 1e-4 to below 1e16, "1e-05" and "1.5e+16" outside; NaN, INF, -INF.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace lathe {

// The longest text of a number of this type, in bytes.
int64_t text_width(DType type);

// `T`: what stores an element of a type that ops compute with.
template <class T>
std::string text_of(T value);

// The number that a text is, but for ASCII's white space around it: plain or scientific decimals, and in any case of
// letters INF, INFINITY, NAN, TRUE and FALSE. Integers are cut off at the point. Nothing where it is none of these or,
// for integers, is outside of the type.
template <class T>
std::optional<T> number_of(std::string_view text);

}  // namespace lathe
