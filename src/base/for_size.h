// SPDX-License-Identifier: Apache-2.0
// Elements as so many bytes: for code that moves them and does not look at them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lathe {

// Calls f with an unsigned value of `size` bytes (1, 2, 4 or 8), the storage that moves elements of any type, and gives
// what f gives.
template <class F>
decltype(auto) for_size(size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

}  // namespace lathe
