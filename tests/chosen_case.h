// SPDX-License-Identifier: Apache-2.0
// One case of a file of text cases: LATHE_CASE=<line> in the environment leaves the others out.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace lathe {

// The cases that start at the chosen line, or all. Choosing a line at which none starts fails the test.
template <class Case>
std::vector<Case> chosen_cases(std::vector<Case> cases) {
  const char* line = std::getenv("LATHE_CASE");
  if (!line) return cases;
  std::erase_if(cases, [&](const Case& one) { return std::to_string(one.line) != line; });
  EXPECT_FALSE(cases.empty()) << "no case starts at line " << line;
  return cases;
}

}  // namespace lathe
