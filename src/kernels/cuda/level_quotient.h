// SPDX-License-Identifier: Apache-2.0
// Divisions by a number that is known, of what is rounded to levels next.
#pragma once

#include <string>
#include <string_view>

namespace lathe::cuda {

// x / scale, where |x| is no more than `most` times the scale, a positive normal number whose reciprocal is one, too:
// the nearest integer is that of the quotient as floats round it.
class LevelQuotient {
 public:
  LevelQuotient(float scale, float most);
  // Whether |x| may be larger than that, and infinite: the expression is then larger than `most`, too, as the store
  // that bounds it needs it to be.
  bool divides_any() const { return divides_any_; }
  std::string of(std::string_view x) const;  // the expression

 private:
  float scale_;
  bool divides_any_;
};

}  // namespace lathe::cuda
