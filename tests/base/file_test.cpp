// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace lathe {
namespace {

namespace fs = std::filesystem;

// What killed writers of one file left goes, and nothing that another file's writers may be at.
TEST(File, LeftoversAreOfOneFile) {
  char name[] = "/tmp/lathe_file_XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  const std::set<std::string> others = {"net.engine",          "net.engine.json.12.3.tmp", "net.engine.tmp",
                                        "net.engine.12.3.tmq", "other.engine.12.3.tmp",    ".12.3.tmp"};
  for (const std::string& file : others) std::ofstream(folder / file) << "x";
  std::ofstream(folder / "net.engine.12.3.tmp") << "x";
  remove_leftovers((folder / "net.engine").string());
  std::set<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) left.insert(entry.path().filename().string());
  fs::remove_all(folder);
  EXPECT_EQ(left, others);
}

}  // namespace
}  // namespace lathe
