// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/shown_keys.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace lathe::cpu::attention {
namespace {

// f(count), where compilers know the usual count.
template <class F>
bool for_count(int64_t count, F&& f) {
  return count == kKeyBlock ? f(std::integral_constant<int64_t, kKeyBlock>()) : f(count);
}

bool is_hidden(const uint8_t* mask, int64_t keys) {
  return for_count(keys, [mask](auto count) {
    uint64_t any = 0;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, mask + i, sizeof(eight));
      any |= eight;
    }
    for (; i < count; ++i) any |= mask[i];
    return any == 0;
  });
}

// Whether all numbers are up to `low`; NaNs are not.
bool are_low(const float* mask, int64_t keys, float low) {
  return for_count(keys, [mask, low](auto count) {
    int higher = 0;
    for (int64_t i = 0; i < count; ++i) higher |= mask[i] <= low ? 0 : 1;
    return higher == 0;
  });
}
bool is_hidden(const float* mask, int64_t keys) { return are_low(mask, keys, kLow); }

bool is_clear(const uint8_t*, int64_t) { return true; }
bool is_clear(const float* mask, int64_t count) { return !are_low(mask, count, kLow / 2); }

template <class T>
KeyRange shown_of(const T* mask, KeyRange keys) {
  if (keys.end <= keys.first / kKeyBlock * kKeyBlock + kKeyBlock) return keys;  // one block
  KeyRange shown = keys;
  int64_t last = 0;  // block
  for (; shown.count() > 0; shown.end = last) {
    last = std::max(shown.first, (shown.end - 1) / kKeyBlock * kKeyBlock);
    if (!is_hidden(mask + last, shown.end - last)) break;
  }
  if (shown.count() == 0 || !is_clear(mask + last, shown.end - last)) return keys;
  while (shown.first + kKeyBlock < shown.end && is_hidden(mask + shown.first, kKeyBlock)) shown.first += kKeyBlock;
  return shown;
}

}  // namespace

KeyRange shown_keys(const uint8_t* mask, KeyRange keys) { return shown_of(mask, keys); }
KeyRange shown_keys(const float* mask, KeyRange keys) { return shown_of(mask, keys); }

}  // namespace lathe::cpu::attention
