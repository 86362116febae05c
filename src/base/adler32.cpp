// SPDX-License-Identifier: Apache-2.0
#include "base/adler32.h"

#include <algorithm>
#include <array>

namespace lathe {

// Rows of 16 bytes, whose columns are summed at once.
void Adler32::add(std::span<const uint8_t> bytes) {
  constexpr uint32_t kModulus = 65521;
  constexpr size_t kColumns = 16, kMostRows = 5552 / kColumns;  // whose sums fit in 32 bits
  while (bytes.size() >= kColumns) {
    const size_t rows = std::min(bytes.size() / kColumns, kMostRows);
    std::array<uint32_t, kColumns> sums{}, sums_of_sums{};
    const uint8_t* row = bytes.data();
    for (size_t r = 0; r < rows; ++r, row += kColumns)
      for (size_t i = 0; i < kColumns; ++i) {
        sums[i] += row[i];
        sums_of_sums[i] += sums[i];
      }
    sum_of_sums_ += static_cast<uint32_t>(rows * kColumns) * sum_;
    for (uint32_t i = 0; i < kColumns; ++i) {
      sum_ += sums[i];
      sum_of_sums_ += static_cast<uint32_t>(kColumns) * sums_of_sums[i] - i * sums[i];
    }
    sum_ %= kModulus;
    sum_of_sums_ %= kModulus;
    bytes = bytes.subspan(rows * kColumns);
  }
  for (const uint8_t byte : bytes) sum_of_sums_ += sum_ += byte;
  sum_ %= kModulus;
  sum_of_sums_ %= kModulus;
}

}  // namespace lathe
