// SPDX-License-Identifier: Apache-2.0
// S99: builds look at the host's memory before they take it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/runtime/memory_log.h"

namespace lathe::api {
namespace {

struct Warnings final : Log {
  void write(Severity severity, std::string_view line) override {
    EXPECT_EQ(severity, Severity::warning);
    lines.emplace_back(line);
  }
  std::vector<std::string> lines;
};

TEST(HostMemory, IsAskedFor) {
  const std::optional<size_t> available = available_bytes();
  ASSERT_TRUE(available);
  EXPECT_GT(*available, size_t{1} << 20);
  EXPECT_GT(resident_bytes(), size_t{1} << 20);
}

// S99.
TEST(HostMemory, TooLittleGetsOneWarning) {
  Warnings log;
  warn_of_host_memory(1 << 20, 1 << 20, log);
  warn_of_host_memory(SIZE_MAX, std::nullopt, log);
  EXPECT_TRUE(log.lines.empty());
  warn_of_host_memory(size_t{3} << 30, size_t{2} << 30, log);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].find("about 3072 MiB of the host's memory for its weights, and the system has 2048 MiB"),
            std::string::npos)
      << log.lines[0];
}

}  // namespace
}  // namespace lathe::api
