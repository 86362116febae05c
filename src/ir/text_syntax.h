// SPDX-License-Identifier: Apache-2.0
// What the reader and the writer of graphs' text agree on; text.cpp describes it.
#pragma once

#include <cctype>

namespace lathe::ir {

inline bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' || c == ':';
}

}  // namespace lathe::ir
