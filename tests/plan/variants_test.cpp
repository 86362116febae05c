// SPDX-License-Identifier: Apache-2.0
// Plans of several variants: what goes in comes out, weights are shared, and nothing in the file is believed.
#include "plan/variants.h"

#include <gtest/gtest.h>

#include "plan/amend.h"
#include "plan/plugin_libraries.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/signing.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

using Bytes = std::vector<std::byte>;

Bytes plan_for(const char* target, size_t constant_bytes = 300) {
  OwnedPlan owned = PlanGenerator(31).make(6, constant_bytes);
  owned.plan.target = target;
  return *write_plan(owned.plan);
}

Result<Bytes> merge(const std::vector<Bytes>& plans) {
  const std::vector<std::span<const std::byte>> spans(plans.begin(), plans.end());
  return merge_plans(spans);
}

Bytes variant(const Bytes& plan, size_t index) {
  const Result<Bytes> taken = take_variant(plan, index);
  EXPECT_TRUE(taken) << taken.error().to_string();
  return taken ? *taken : Bytes();
}

TEST(PlanVariants, ComeOutAsTheyWentIn) {
  std::vector<Bytes> plans = {plan_for("cuda-sm_80"), plan_for("cuda-sm_90"), plan_for("cpu-x86_64-avx2")};
  ASSERT_TRUE(set_hardware(plans[1], HardwareCompatibility::same_compute_capability, {1, 2, 3, 4, 5, 6, true}));
  const Bytes merged = *merge(plans);
  const PlanHeader header = *read_header(merged);
  EXPECT_EQ(header.target, "cuda-sm_80,cuda-sm_90,cpu-x86_64-avx2");
  EXPECT_EQ(targets_of(header), (std::vector<std::string>{"cuda-sm_80", "cuda-sm_90", "cpu-x86_64-avx2"}));
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(variant(merged, i), plans[i]) << i;
    EXPECT_TRUE(read_plan(variant(merged, i), nullptr));
  }
  EXPECT_FALSE(take_variant(merged, 3));
  EXPECT_EQ(read_plan(merged, nullptr).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(*merge({merged}), merged);  // taken apart, and merged again
  EXPECT_EQ(*merge({plans[0]}), plans[0]);
  EXPECT_EQ(*merge({*merge({plans[0], plans[1]}), plans[2]}), merged);
}

TEST(PlanVariants, LargeWeightsAreInPieces) {
  const std::vector<Bytes> plans = {plan_for("a", 2'000'000), plan_for("b", 2'000'000)};
  Bytes merged = *merge(plans);
  const Section weights = *read_header(merged)->find(kWeights);
  ASSERT_GT(weights.bytes, kHashedPiece);
  EXPECT_TRUE(weights.in_pieces);
  EXPECT_FALSE(read_header(merged)->find(kVariants)->in_pieces);
  for (size_t i = 0; i < plans.size(); ++i) EXPECT_EQ(variant(merged, i), plans[i]) << i;
  merged[weights.offset + kHashedPiece] ^= std::byte{1};
  EXPECT_EQ(take_variant(merged, 0).error().code, ErrorCode::plan_digest);
}

TEST(PlanVariants, EqualWeightsAreThereOnce) {
  const std::vector<Bytes> plans = {plan_for("a", 20000), plan_for("b", 20000), plan_for("c", 20000)};
  const uint64_t weights = read_header(plans[0])->find(kWeights)->bytes;
  const Bytes merged = *merge(plans);
  EXPECT_EQ(read_header(merged)->find(kWeights)->bytes, weights);
  EXPECT_LT(merged.size(), plans[0].size() + 3 * (plans[0].size() - weights) + 4096);
}

// Weights of another order, or other ones, lie beside.
TEST(PlanVariants, OtherWeightsLieBeside) {
  OwnedPlan owned = PlanGenerator(31).make(6, 300);
  owned.plan.target = "b";
  for (std::byte& byte : owned.weights) byte ^= std::byte{0x5a};
  owned.plan.weights = owned.weights;
  for (Constant& constant : owned.plan.constants)
    constant.digest = digest_of(owned.plan.weights.subspan(constant.offset, constant.bytes));
  const std::vector<Bytes> plans = {plan_for("a"), *write_plan(owned.plan)};
  const Bytes merged = *merge(plans);
  EXPECT_GT(read_header(merged)->find(kWeights)->bytes, read_header(plans[0])->find(kWeights)->bytes);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(variant(merged, i), plans[i]);
}

TEST(PlanVariants, WhatCannotBeMergedIsRefused) {
  const Bytes a = plan_for("a");
  const auto expect_refused = [&](const Bytes& other, const char* words) {
    const Result<Bytes> merged = merge({a, other});
    ASSERT_FALSE(merged) << words;
    EXPECT_NE(merged.error().message.find(words), std::string::npos) << merged.error().message;
  };
  expect_refused(a, "two plans are for 'a'");
  Bytes later = plan_for("b");
  ASSERT_TRUE(make_version_compatible(later));
  expect_refused(later, "different versions");
  Bytes with_code = a;
  ASSERT_TRUE(put_section(with_code, kPluginLibraries, *pack_plugin_libraries({})));
  EXPECT_FALSE(merge({with_code, plan_for("b")}));
  OwnedPlan other = PlanGenerator(31).make(6, 300);
  other.plan.target = "b";
  other.plan.bindings[0].name = "another";
  expect_refused(*write_plan(other.plan), "other inputs");
  expect_refused(plan_for(std::string(182, 'x').c_str()), "cannot be merged");
  EXPECT_FALSE(merge({}));
  EXPECT_FALSE(merge({a, Bytes(100)}));
  OwnedPlan owned = PlanGenerator(31).make(6, 300);
  owned.plan.target = "b";
  owned.plan.detached = detach(owned.plan.weights);
  expect_refused(*write_plan(owned.plan), "in another file");
}

// S69: a signature is of the whole, and covers each variant.
TEST(PlanVariants, AreSignedTogether) {
  const SecretKey key = *SecretKey::make();
  const std::vector trusted = {key.public_key()};
  const std::vector<Bytes> plans = {plan_for("a"), plan_for("b")};
  Bytes merged = *sign_plan(*merge({*sign_plan(plans[0], key), plans[1]}), key);
  EXPECT_TRUE(authenticate(merged, *read_header(merged), trusted));
  EXPECT_EQ(variant(merged, 0), plans[0]);
  EXPECT_EQ(variant(merged, 1), plans[1]);
  ASSERT_TRUE(make_version_compatible(merged));
  EXPECT_EQ(read_header(merged)->find(kSignature), nullptr);
}

// S68, S71: of every variant, whichever is taken.
TEST(PlanVariants, EveryFlippedByteAndTruncationIsRefused) {
  Bytes bytes = *merge({plan_for("a", 60), plan_for("b", 60)});
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= static_cast<std::byte>(1u << (i % 8));
    ASSERT_FALSE(take_variant(bytes, i % 2)) << i;
    bytes[i] ^= static_cast<std::byte>(1u << (i % 8));
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(take_variant(std::span(bytes).first(size), 0)) << size;
  EXPECT_TRUE(take_variant(bytes, 0));
}

// S68: any answer but a crash, or memory without end.
TEST(PlanVariants, RepairedDigestsDoNotHelp) {
  const Bytes original = *merge({plan_for("a", 60), plan_for("b", 60)});
  const uint64_t section = read_header(original)->sections[0].bytes;
  size_t refused = 0;
  for (size_t i = 0; i < std::min<uint64_t>(section, 4096); ++i)
    for (const int flip : {0x01, 0x80, 0xff}) {
      Bytes bytes = original;
      bytes[kHeaderBytes + i] ^= static_cast<std::byte>(flip);
      repair_digests(bytes);
      for (size_t k = 0; k < 2; ++k) {
        const Result<Bytes> taken = take_variant(bytes, k);
        refused += !taken || !read_plan(*taken, nullptr);
        EXPECT_TRUE(!taken || taken->size() <= original.size() + 4096);
      }
    }
  EXPECT_GT(refused, 3000u);
}

}  // namespace
}  // namespace lathe::plan
