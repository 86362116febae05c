// SPDX-License-Identifier: Apache-2.0
#include "tuning/all_cores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

namespace lathe {
namespace {

Result<> no_progress(double) { return {}; }

TEST(AllCores, EachPieceIsDoneOnce) {
  std::vector<std::atomic<int>> done(1000);
  double last = -1;
  const auto told = [&](double fraction) -> Result<> {
    last = fraction;
    return {};
  };
  ASSERT_TRUE(on_all_cores(
      done.size(), [&](size_t i) { ++done[i]; }, 60, told));
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  EXPECT_LT(last, 1);
}

TEST(AllCores, NoMoreThreadsThanAskedFor) {
  std::atomic<int> elsewhere = 0;
  const std::thread::id self = std::this_thread::get_id();
  ASSERT_TRUE(on_all_cores(
      100, [&](size_t) { elsewhere += std::this_thread::get_id() != self; }, 60, no_progress, 1));
  EXPECT_EQ(elsewhere, 0);
}

TEST(AllCores, NothingBeginsWhenTimeIsOver) {
  std::atomic<int> begun = 0;
  ASSERT_TRUE(on_all_cores(
      100, [&](size_t) { ++begun; }, 0, no_progress));
  EXPECT_EQ(begun, 0);
}

TEST(AllCores, ProgressEndsTheWork) {
  std::atomic<int> begun = 0;
  const Result<> ended = on_all_cores(
      1, [&](size_t) { ++begun; }, 60, [](double) -> Result<> { return fail(ErrorCode::cancelled, "enough"); });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  EXPECT_EQ(begun, 1);
}

TEST(AllCores, WantOfMemoryIsTheCallers) {
  const auto starve = [](size_t) { throw std::bad_alloc(); };
  EXPECT_THROW((void)on_all_cores(100, starve, 60, no_progress), std::bad_alloc);
}

}  // namespace
}  // namespace lathe
