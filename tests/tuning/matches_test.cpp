// SPDX-License-Identifier: Apache-2.0
#include "tuning/matches.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

Matched match_copies(const Problem& problem) {
  if (!problem.is_copy()) return refuse("not a copy");
  return match_one({}, 2.5);
}

// Counts how often it is asked.
class Counting final : public Tactic {
 public:
  std::string_view name() const override { return "counting"; }
  Matched match(const Problem& problem) const override {
    ++asked;
    return match_copies(problem);
  }
  mutable int asked = 0;
};

Problem copy() {
  Problem copy;
  copy.operands.resize(1);
  copy.program = *parse_program("in=1; out r0");
  return copy;
}

TEST(Matches, AskTheirTactics) {
  const FunctionTactic tactic("mover", match_copies);
  const TacticList tactics = {&tactic};
  Matches matches(copy(), tactics);
  EXPECT_TRUE(matches.any());
  EXPECT_TRUE(matches.refusals().empty());
  const std::vector<Config> configs = (*matches.of(tactic))->configs();
  ASSERT_EQ(configs.size(), 1u);
  EXPECT_EQ(configs[0].predicted_us, 2.5);
  const Result<Emission> emission = matches.emit(tactic, configs[0]);
  ASSERT_TRUE(emission);
  EXPECT_EQ(emission->kernel, "mover") << "a step that names no kernel is its tactic's";
}

TEST(Matches, GiveTheReasonOfARefusal) {
  const FunctionTactic tactic("mover", match_copies);
  const TacticList tactics = {&tactic};
  Matches matches(Problem(), tactics);
  EXPECT_FALSE(matches.any());
  EXPECT_EQ(matches.refusals(), std::vector<std::string>{"mover: not a copy"});
  const Result<Emission> emission = matches.emit(tactic, Config{});
  ASSERT_FALSE(emission);
  EXPECT_NE(emission.error().message.find("mover: not a copy"), std::string::npos);
}

TEST(Matches, AskEachTacticOnce) {
  const Counting first, second;
  const TacticList tactics = {&first, &second};
  Matches matches(copy(), tactics);
  EXPECT_TRUE(matches.any());
  EXPECT_EQ(second.asked, 0) << "the first takes it";
  for (int i = 0; i < 2; ++i)
    for (const Tactic* tactic : tactics) EXPECT_TRUE(matches.emit(*tactic, {}));
  EXPECT_EQ(first.asked, 1);
  EXPECT_EQ(second.asked, 1);
}

}  // namespace
}  // namespace lathe
