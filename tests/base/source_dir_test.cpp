// SPDX-License-Identifier: Apache-2.0
#include "source_dir.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(SourceDir, TheEnvironmentMayNameAnother) {
  const char* given = std::getenv("LATHE_SOURCE_DIR");
  const std::string before = given ? given : "";
  unsetenv("LATHE_SOURCE_DIR");
  EXPECT_EQ(source_path("/tests"), LATHE_SOURCE_DIR "/tests");
  setenv("LATHE_SOURCE_DIR", "/elsewhere", 1);
  EXPECT_EQ(source_path("/tests"), "/elsewhere/tests");
  if (given)
    setenv("LATHE_SOURCE_DIR", before.c_str(), 1);
  else
    unsetenv("LATHE_SOURCE_DIR");
}

}  // namespace
}  // namespace lathe
