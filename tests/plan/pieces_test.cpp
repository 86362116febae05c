// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/limits.h"
#include "plan/random_plan.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

// Weights in pieces give the file that they give as a whole, and pieces that the writer may take are gone behind it.
TEST(PlanPieces, GiveTheSameFile) {
  OwnedPlan owned = PlanGenerator(7).make(5, 1000);
  ASSERT_GT(owned.plan.constants.size(), 2u);
  const std::vector<std::byte> whole = *write_plan(owned.plan);
  for (const Constant& c : owned.plan.constants) {
    const auto bytes = owned.plan.weights.subspan(c.offset, c.bytes);
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    owned.plan.pieces.push_back({*copy, copy});
  }
  owned.plan.pieces_bytes = owned.plan.weights.size();
  owned.plan.weights = {};
  EXPECT_EQ(owned.plan.weights_bytes(), owned.weights.size());
  EXPECT_EQ(*write_plan(owned.plan), whole);
  const std::weak_ptr<const void> first = owned.plan.pieces[0].owner;
  EXPECT_FALSE(first.expired());
  Plan missing = owned.plan;
  missing.pieces.pop_back();
  EXPECT_EQ(write_plan(missing).error().code, ErrorCode::plan_malformed);
  Plan moved = owned.plan;
  moved.constants.back().offset += kWeightsAlignment;
  EXPECT_EQ(write_plan(moved).error().code, ErrorCode::plan_malformed);
  missing.pieces.clear();
  moved.pieces.clear();
  EXPECT_EQ(*write_plan(std::move(owned.plan)), whole);
  EXPECT_TRUE(first.expired());
}

// Of weights of several megabytes, the digest of which is taken while they are written.
TEST(PlanPieces, GiveTheSameFileWhateverTheThreads) {
  const OwnedPlan owned = PlanGenerator(8).make(4, 3'000'000);
  const std::vector<std::byte> whole = *write_plan(owned.plan);
  ASSERT_GT(whole.size(), size_t{4} << 20);
  class Collector final : public ByteSink {
   public:
    Result<> write(std::span<const std::byte> part) override {
      bytes.insert(bytes.end(), part.begin(), part.end());
      return {};
    }
    std::vector<std::byte> bytes;
  } collector;
  ASSERT_TRUE(write_plan(owned.plan, collector));
  EXPECT_EQ(collector.bytes, whole);
  for (const size_t threads : {1, 2, 2, 2, 9}) EXPECT_EQ(*write_plan(Plan(owned.plan), {}, threads), whole);
}

}  // namespace
}  // namespace lathe::plan
