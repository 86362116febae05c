// SPDX-License-Identifier: Apache-2.0
// Where tests find files of the source tree.
#pragma once

#include <cstdlib>
#include <string>

namespace lathe {

// `inside` begins with '/'. The tree is the one that the program was built from unless LATHE_SOURCE_DIR in the
// environment names another, as for programs that run on a machine on which they were not built.
inline std::string source_path(const std::string& inside) {
  const char* given = std::getenv("LATHE_SOURCE_DIR");
  return (given && *given ? std::string(given) : std::string(LATHE_SOURCE_DIR)) + inside;
}

}  // namespace lathe
