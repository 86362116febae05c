// SPDX-License-Identifier: Apache-2.0
// Upper and lower case: of ASCII and of the letters of compose/letter_case.def.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

// Text, which is UTF-8, in the other case. It stays as long as it is.
std::string in_case(std::string_view text, bool to_lower);

// What bytes become, in tables that kernels look up. A byte has a row by itself, if it begins a character of two bytes,
// or with the byte before it, if it is the second of three that begin with kFirstOfThree; else its row is 0.
struct CaseTables {
  static constexpr int64_t kFirstOfThree = 0xe1;
  std::vector<int64_t> row_of_first, row_of_second;  // [256], 0 where it has none of this kind
  std::vector<uint8_t> bytes;                        // [rows, 256]: a byte by the row of the one before it
  std::vector<uint8_t> firsts;                       // [rows, 256]: the byte of this row, by the one behind it
};
CaseTables case_tables(bool to_lower);

}  // namespace lathe
