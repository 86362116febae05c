// SPDX-License-Identifier: Apache-2.0
// Weights that variants have in several orders: the file has one, and nothing that it says of the others is believed.
#include "plan/derived_weights.h"

#include <gtest/gtest.h>

#include "plan/amend.h"
#include "plan/packed_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/variants.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int64_t kRows = 50, kColumns = 60;
const Packing kTransposed{{kColumns, kRows}, {{0, 0, {kRows, kColumns}, {kColumns, 1}, {1, kRows}}}};
// Rows of 64 columns, of which 4 are zeros.
const Packing kPadded{{kRows, 64}, {{0, 0, {kRows, kColumns}, {kColumns, 1}, {64, 1}}}};

// The same network for one target, its weights packed or as they are.
Bytes plan_for(const char* target, const std::optional<Packing>& packing, Orders orders = Orders::named) {
  OwnedPlan owned = PlanGenerator(31).make(6, kRows * kColumns * sizeof(float));
  owned.plan.target = target;
  if (packing) pack_weights(owned, *packing, orders);
  return *write_plan(owned.plan);
}

Bytes merge(const std::vector<Bytes>& plans, Sharing sharing = Sharing::derived) {
  const std::vector<std::span<const std::byte>> spans(plans.begin(), plans.end());
  Result<Bytes> merged = merge_plans(spans, sharing);
  EXPECT_TRUE(merged) << merged.error().to_string();
  return merged ? *std::move(merged) : Bytes();
}

uint64_t weights_of(const Bytes& plan) { return read_header(plan)->find(kWeights)->bytes; }

void expect_variants(const Bytes& merged, const std::vector<Bytes>& plans) {
  for (size_t i = 0; i < plans.size(); ++i)
    for (const int threads : {1, 3}) {
      const Result<Bytes> taken = take_variant(merged, i, threads);
      ASSERT_TRUE(taken) << taken.error().to_string();
      EXPECT_EQ(*taken, plans[i]) << i;
      EXPECT_TRUE(read_plan(*taken, nullptr));
    }
}

TEST(DerivedWeights, AreStoredInOneOrder) {
  const std::vector<Bytes> plans = {plan_for("a", kPadded), plan_for("b", kPadded), plan_for("c", kTransposed),
                                    plan_for("d", std::nullopt)};
  const Bytes merged = merge(plans);
  EXPECT_EQ(weights_of(merged), weights_of(plans[0]));  // the order of which most plans have it
  expect_variants(merged, plans);
  uint64_t derived = 0;
  const auto pieces = derived_weights_of(merged, 2);
  for (const WeightsWindow& piece : *pieces) derived += piece.bytes;
  EXPECT_GT(derived, weights_of(plans[2]) - 1000);
  EXPECT_TRUE(derived_weights_of(merged, 0)->empty());
  EXPECT_FALSE(derived_weights_of(merged, 4));
  EXPECT_TRUE(derived_weights_of(plans[0], 0)->empty());
  EXPECT_EQ(merge({merged}), merged);  // taken apart, and merged again
  EXPECT_EQ(merge({merge({plans[0], plans[1], plans[2]}), plans[3]}), merged);
}

TEST(DerivedWeights, AreStoredWhereTheUserWantsItSo) {
  const std::vector<Bytes> plans = {plan_for("a", kPadded), plan_for("b", kTransposed)};
  const Bytes merged = merge(plans, Sharing::equal);
  EXPECT_GE(weights_of(merged), weights_of(plans[0]) + weights_of(plans[1]));
  EXPECT_EQ(read_header(merged)->find(kDerivedWeights), nullptr);  // which older versions do not know
  expect_variants(merged, plans);
}

// Which the plan does not say, or says wrongly.
TEST(DerivedWeights, AreStoredWhereNothingGivesThem) {
  const std::vector<Bytes> unknown = {plan_for("a", kPadded), plan_for("b", kTransposed, Orders::unnamed)};
  EXPECT_GE(weights_of(merge(unknown)), weights_of(unknown[0]) + weights_of(unknown[1]));
  OwnedPlan other = PlanGenerator(31).make(6, kRows * kColumns * sizeof(float));
  other.plan.target = "b";
  std::vector<ConstantOrder> orders;
  for (uint32_t i = 0; i < other.plan.constants.size(); ++i)
    orders.push_back({i, other.plan.constants[i].digest, no_packing(kRows * kColumns)});
  for (std::byte& byte : other.weights) byte ^= std::byte{1};
  other.plan.weights = other.weights;
  for (Constant& constant : other.plan.constants)
    constant.digest = digest_of(other.plan.weights.subspan(constant.offset, constant.bytes));
  other.plan.metadata.emplace_back(kOrdersKey, orders_text(orders));
  const std::vector<Bytes> wrong = {plan_for("a", kPadded), *write_plan(other.plan)};
  const Bytes merged = merge(wrong);
  EXPECT_GE(weights_of(merged), weights_of(wrong[0]) + weights_of(wrong[1]));
  expect_variants(merged, wrong);
}

TEST(DerivedWeights, OrdersAreReadWithCare) {
  for (const char* text : {"x", "0", "99 00", "-1 00", "0 zz 1 2", "0 1"}) {
    OwnedPlan owned = PlanGenerator(31).make(6, 300);
    owned.plan.metadata.emplace_back(kOrdersKey, text);
    EXPECT_FALSE(orders_of(owned.plan)) << text;
    owned.plan.target = "b";
    EXPECT_FALSE(
        merge_plans(std::array<std::span<const std::byte>, 2>{plan_for("a", kPadded), *write_plan(owned.plan)}));
  }
}

// The section holds for each piece its bytes, its source's place and bytes, the bytes of an element, and how many
// numbers its packing has.
TEST(DerivedWeights, WhatIsWrongIsRefused) {
  struct Change {
    size_t word;
    uint64_t value;
    const char* words;
  };
  const std::vector<Bytes> plans = {plan_for("a", kPadded), plan_for("b", kTransposed)};
  const Bytes good = merge(plans);
  const Section section = *read_header(good)->find(kDerivedWeights);
  const uint64_t weights = weights_of(good);
  for (const auto& [word, value, words] :
       {Change{0, 0, "their number"}, Change{0, UINT64_MAX, "their number"}, Change{0, 1 << 20, "their number"},
        Change{1, 4, "is made of"}, Change{1, 0, "is made of"}, Change{1, UINT64_MAX - 3, "is made of"},
        Change{2, weights + 4, "not there"}, Change{2, UINT64_MAX, "not there"}, Change{3, weights + 4, "not there"},
        Change{3, 64, "more than 2 times"}, Change{3, kRows * 64 * 4 - 64, "do not fit"},
        Change{4, 3, "elements of 3 bytes"}, Change{4, 0, "elements of 0 bytes"}, Change{4, 8, "is made of"},
        Change{5, 2, ""}, Change{5, UINT64_MAX, "the packing"}, Change{5, 1 << 20, "the packing"}}) {
    Bytes bytes = good;
    for (size_t i = 0; i < 8; ++i) bytes[section.offset + 8 * word + i] = static_cast<std::byte>(value >> (8 * i));
    repair_digests(bytes);
    const Result<Bytes> taken = take_variant(bytes, 1);
    ASSERT_FALSE(taken) << word << " " << value;
    EXPECT_EQ(taken.error().code, ErrorCode::plan_malformed);
    EXPECT_NE(taken.error().message.find(words), std::string::npos) << taken.error().message;
  }
}

// S68: any answer but a crash, or memory without end.
TEST(DerivedWeights, RepairedDigestsDoNotHelp) {
  const Bytes original = merge({plan_for("a", kPadded), plan_for("b", kTransposed)});
  const PlanHeader header = *read_header(original);
  ASSERT_NE(header.find(kDerivedWeights), nullptr);
  size_t refused = 0, all = 0;
  for (const std::string_view name : {kDerivedWeights, kVariants}) {
    const Section& section = *header.find(name);
    for (uint64_t i = 0; i < std::min<uint64_t>(section.bytes, 1024); ++i) {
      Bytes bytes = original;
      bytes[section.offset + i] ^= static_cast<std::byte>(i % 3 == 0 ? 0x80 : 0x05);
      repair_digests(bytes);
      const Result<Bytes> taken = take_variant(bytes, 1);
      refused += !taken || !read_plan(*taken, nullptr), ++all;
      EXPECT_TRUE(!taken || taken->size() <= 3 * original.size());
    }
  }
  EXPECT_GT(refused, all / 2);
}

// A reader that does not know the section says that a newer version wrote the plan.
TEST(DerivedWeights, OlderReadersRefuseThem) {
  Bytes bytes = merge({plan_for("a", kPadded), plan_for("b", kTransposed)});
  EXPECT_EQ(read_header(bytes)->find(kDerivedWeights)->skippable, false);
  Bytes later = bytes;
  later[kTableOffset + kEntryBytes] = std::byte{'x'};  // the name of the second section
  repair_digests(later);
  EXPECT_EQ(read_header(later).error().code, ErrorCode::plan_version);
  // Nor are they anything in a plan of one target.
  Bytes single = plan_for("a", kPadded);
  ASSERT_TRUE(put_section(single, kDerivedWeights, Bytes(8)));
  EXPECT_EQ(read_header(single).error().code, ErrorCode::plan_malformed);
}

}  // namespace
}  // namespace lathe::plan
