// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace lathe {
namespace {

namespace fs = std::filesystem;

TEST(File, IsThereOnceItIsCommitted) {
  char name[] = "/tmp/lathe_file_XXXXXX";
  const fs::path folder = ::mkdtemp(name), path = folder / "plan";
  const auto entries = [&] { return std::distance(fs::directory_iterator(folder), {}); };
  const std::string text = "some";
  {
    Result<AtomicFile> given_up = AtomicFile::create(path);
    ASSERT_TRUE(given_up);
    ASSERT_TRUE(given_up->write(std::as_bytes(std::span(text))));
    EXPECT_EQ(entries(), 1);
  }
  EXPECT_EQ(entries(), 0);
  Result<AtomicFile> file = AtomicFile::create(path);
  ASSERT_TRUE(file);
  AtomicFile moved = *std::move(file);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(moved.write(std::as_bytes(std::span(text))));
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(moved.commit());
  EXPECT_EQ(fs::file_size(path), 2 * text.size());
  fs::create_directory(folder / "taken");
  Result<AtomicFile> refused = AtomicFile::create(folder / "taken");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->commit().error().code, ErrorCode::file_read) << "a folder";
  EXPECT_EQ(entries(), 2);
  fs::remove_all(folder);
}

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
