// SPDX-License-Identifier: Apache-2.0
// Division of counts that are not negative, rounded up: ceil_div(10, 4) = 3, round_up(10, 4) = 12.
#pragma once

#include <type_traits>

namespace lathe {

template <class T, class U>
constexpr std::common_type_t<T, U> ceil_div(T value, U unit) {
  return (value + unit - 1) / unit;
}

template <class T, class U>
constexpr std::common_type_t<T, U> round_up(T value, U unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace lathe
