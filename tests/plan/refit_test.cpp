// SPDX-License-Identifier: Apache-2.0
// What plans say of weights that can be replaced: written and read back, and each rule of it.
#include <gtest/gtest.h>

#include <functional>

#include "plan/flatten.h"
#include "plan/header.h"
#include "plan/limits.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/validate.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

OwnedPlan refittable_plan() {
  for (uint32_t seed = 1;; ++seed) {
    OwnedPlan owned = PlanGenerator(seed).make(20, 128);
    if (owned.plan.constants.size() < 3) continue;
    add_refit(owned.plan, RefitKind::all);
    return owned;
  }
}

TEST(RefitPlans, AreWrittenAndReadBack) {
  for (const RefitKind kind : {RefitKind::all, RefitKind::individual, RefitKind::identical}) {
    OwnedPlan owned = refittable_plan();
    owned.plan.refit.kind = kind;
    owned.plan.refit.code = static_cast<uint32_t>(owned.plan.codes.size());
    const auto bytes = write_plan(owned.plan);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    const auto loaded = read_plan(*bytes, nullptr);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_EQ(Flatten::plan(owned.plan), Flatten::plan(loaded->plan));
    EXPECT_EQ(loaded->plan.refit.kind, kind);
    EXPECT_EQ(loaded->plan.refit.code, owned.plan.codes.size());
    EXPECT_TRUE(loaded->plan.is_stripped());
    EXPECT_EQ(loaded->plan.stripped_bytes(), owned.plan.constants[2].bytes);
    EXPECT_EQ(read_header(*bytes)->flags, kLacksWeights);  // without which older readers would run it
    const auto again = write_plan(loaded->plan);
    ASSERT_TRUE(again);
    EXPECT_EQ(*bytes, *again);
  }
}

TEST(RefitPlans, EachRuleRefuses) {
  struct Damage {
    const char* name;
    const char* expected;
    std::function<void(Plan&)> apply;
  };
  const Damage all[] = {
      {"no such code", "code module 99 packs them", [](Plan& p) { p.refit.code = 99; }},
      {"no kind", "has none", [](Plan& p) { p.refit.kind = RefitKind::none; }},
      {"negative dimension", "no size", [](Plan& p) { p.refit.weights[0].dims[0] = -1; }},
      {"overflow", "no size",
       [](Plan& p) {
         p.refit.weights[0].dims = {INT64_MAX, 3};
       }},
      {"rank", "no size", [](Plan& p) { p.refit.weights[0].dims.assign(9, 1); }},
      {"type", "no size", [](Plan& p) { p.refit.weights[0].dtype = static_cast<DType>(99); }},
      {"roles", "2 layers and 1 roles", [](Plan& p) { p.refit.weights[0].roles.pop_back(); }},
      {"one name", "two are called 'w'", [](Plan& p) { p.refit.weights[1] = p.refit.weights[0]; }},
      {"derived operand", "does not stay", [](Plan& p) { p.refit.operands[0].constant = 1; }},
      {"no such operand", "does not stay", [](Plan& p) { p.refit.operands[0].constant = 9999; }},
      {"large operand", "larger than constant 0", [](Plan& p) { p.refit.operands[0].dims = {1 << 20}; }},
      {"fixed weights", "reads value 1", [](Plan& p) { p.refit.steps[0].inputs[0] = 1; }},
      {"own output", "reads value 3", [](Plan& p) { p.refit.steps[0].inputs[0] = 3; }},
      {"no outputs", "0 outputs", [](Plan& p) { p.refit.steps[0].outputs = 0; }},
      {"neither", "neither", [](Plan& p) { p.refit.steps[0].op.clear(); }},
      {"both", "neither",
       [](Plan& p) {
         p.refit.steps[0].packing = {1, 1};
       }},
      {"packing of two", "2 inputs", [](Plan& p) { p.refit.steps[1].inputs.push_back(0); }},
      {"packing of none", "1 inputs", [](Plan& p) { p.refit.steps[1].inputs[0] = kNoTensor; }},
      {"no such value", "not there", [](Plan& p) { p.constants[1].derived = 8; }},
      {"derived from fixed ones", "stay", [](Plan& p) { p.constants[1].derived = 2; }},
      {"lost", "nothing gives it back", [](Plan& p) { p.constants[2].derived = 0; }},
      {"stripped, with an offset", "nothing gives it back", [](Plan& p) { p.constants[2].offset = 64; }},
      {"too large", "too large", [](Plan& p) { p.constants[2].bytes = UINT64_MAX; }},
  };
  for (const Damage& damage : all) {
    OwnedPlan owned = refittable_plan();
    ASSERT_TRUE(validate(owned.plan)) << validate(owned.plan).error().to_string();
    damage.apply(owned.plan);
    const auto result = validate(owned.plan);
    ASSERT_FALSE(result) << damage.name;
    EXPECT_NE(result.error().message.find(damage.expected), std::string::npos)
        << damage.name << ": " << result.error().to_string();
    EXPECT_FALSE(write_plan(owned.plan)) << damage.name;
  }
}

}  // namespace
}  // namespace lathe::plan
