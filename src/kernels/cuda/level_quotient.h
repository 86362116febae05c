// SPDX-License-Identifier: Apache-2.0
// Divisions by a number that is known, of what is rounded to levels next.
#pragma once

#include <string>
#include <string_view>

namespace lathe::cuda {

// The expression of x / scale, where |x| is no more than `most` times the scale, a positive normal number whose
// reciprocal is one, too: the nearest integer is that of the quotient as floats round it.
std::string level_quotient(std::string_view x, float scale, float most);

// Whether |x| may be larger than that, and infinite: the expression is then larger than `most`, too, as the store that
// bounds it needs it to be.
bool divides_any(float scale, float most);

}  // namespace lathe::cuda
