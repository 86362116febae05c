// SPDX-License-Identifier: Apache-2.0
#include "tuning/tactic.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

Matched match_copies(const Problem& problem) {
  if (!problem.is_copy()) return refuse("not a copy");
  return match_one({}, 2.5);
}

TEST(Tactic, AsksItsMatch) {
  const FunctionTactic tactic("mover", match_copies);
  Problem copy;
  copy.operands.resize(1);
  copy.program = *parse_program("in=1; out r0");
  EXPECT_EQ(tactic.refuse(copy), std::nullopt);
  const std::vector<Config> configs = tactic.configs(copy);
  ASSERT_EQ(configs.size(), 1u);
  EXPECT_EQ(configs[0].predicted_us, 2.5);
  const Result<Emission> emission = tactic.emit(copy, configs[0]);
  ASSERT_TRUE(emission);
  EXPECT_EQ(emission->kernel, "mover") << "a step that names no kernel is its tactic's";
}

TEST(Tactic, GivesTheReasonOfARefusal) {
  const FunctionTactic tactic("mover", match_copies);
  const Problem nothing;
  EXPECT_EQ(tactic.refuse(nothing), "not a copy");
  EXPECT_TRUE(tactic.configs(nothing).empty());
  const Result<Emission> emission = tactic.emit(nothing, Config{});
  ASSERT_FALSE(emission);
  EXPECT_NE(emission.error().message.find("mover: not a copy"), std::string::npos);
}

}  // namespace
}  // namespace lathe
