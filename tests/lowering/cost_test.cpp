// SPDX-License-Identifier: Apache-2.0
// What work costs, and how decisions are made and told.
#include "lowering/cost.h"

#include "device/cuda/architecture.h"
#include "device/null/null_device.h"
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

std::vector<Target> targets() {
  std::vector<Target> targets = {native_options().tuner.target, null::NullDevice().describe()};
  for (const int number : {75, 80, 90, 100}) targets.push_back(cuda::describe(**cuda::find_architecture(number)));
  return targets;
}

Work random_work(std::mt19937& random) {
  const auto amount = [&] { return std::uniform_int_distribution(0, 3)(random) ? std::ldexp(1, random() % 40) : 0.0; };
  return {amount(), amount(), static_cast<double>(random() % 20)};
}

TEST(Cost, OfNothingIsNothing) {
  for (const Target& target : targets()) EXPECT_EQ(microseconds({}, target), 0) << target.name;
}

TEST(Cost, OneLaunchIsThatOfTheTarget) {
  for (const Target& target : targets()) EXPECT_EQ(microseconds({.steps = 1}, target), target.launch_us) << target.name;
}

// Never negative, more for more of anything, less on what is faster, and the sum of the parts.
TEST(Cost, GrowsWithWork) {
  std::mt19937 random(5);
  for (const Target& target : targets())
    for (int round = 0; round < 500; ++round) {
      const Work work = random_work(random), more = random_work(random);
      const double time = microseconds(work, target);
      SCOPED_TRACE(fmt::format("{}: {} {} {}", target.name, work.bytes, work.instructions, work.steps));
      EXPECT_GE(time, 0);
      for (double Work::*part : {&Work::bytes, &Work::instructions, &Work::steps}) {
        Work larger = work;
        larger.*part = 2 * larger.*part + 1;
        EXPECT_GE(microseconds(larger, target), time);
        Work alone;
        alone.*part = 1 + more.*part;
        EXPECT_GT(microseconds(alone, target), microseconds({}, target));
      }
      const Work both{work.bytes + more.bytes, work.instructions + more.instructions, work.steps + more.steps};
      EXPECT_NEAR(microseconds(both, target), time + microseconds(more, target), 1e-12 * microseconds(both, target));
      Target faster = target;
      for (double* rate : {&faster.memory_rate, &faster.clock_mhz}) *rate *= 2;
      faster.launch_us /= 2;
      EXPECT_NEAR(microseconds(work, faster), time / 2, 1e-12 * time);
    }
}

// What costs less is taken; of equal costs, what would be done otherwise.
TEST(Cost, DecisionsTakeTheLeast) {
  std::mt19937 random(7);
  const ir::Graph graph = *ir::parse_graph("graph \"g\" {\nsymbol n in [1, 8]\ninput %x: f16[n, 3]\noutput %x\n}");
  const ir::Value* x = graph.inputs()[0];
  for (const Target& target : targets()) {
    CostModel costs(target, {4});
    EXPECT_EQ(costs.bytes_of(x), 24);
    for (int round = 0; round < 100; ++round) {
      const Work work = random_work(random), other = random_work(random);
      EXPECT_FALSE(costs.pays(x, {"one", work}, {"the same", work}));
      EXPECT_EQ(costs.pays(x, {"one", work}, {"other", other}), costs.microseconds(work) < costs.microseconds(other));
    }
    EXPECT_EQ(costs.decisions().size(), 200u);
  }
}

TEST(Cost, DecisionsAreTold) {
  const ir::Graph graph = *ir::parse_graph("graph \"g\" {\ninput %x: f32[8]\noutput %x\n}");
  Target target;
  target.memory_rate = 1000;
  target.launch_us = 2;
  CostModel costs(target);
  costs.pays(graph.inputs()[0], {"one", {3500, 0, 0}}, {"other", {0, 0, 1}});
  costs.pays(graph.inputs()[0], {"one", {1500, 0, 0}}, {"other", {0, 0, 1}});
  ASSERT_EQ(costs.decisions().size(), 2u);
  EXPECT_EQ(costs.decisions()[0].text, "other: 2.000 us; one: 3.500 us");
  EXPECT_EQ(costs.decisions()[1].text, "one: 1.500 us; other: 2.000 us");
}

// Rolls whose parts are read in place, and the choice of the layout beside a convolution, with both numbers.
TEST(Cost, ReportsGiveBothNumbers) {
  BuildReport report;
  ASSERT_TRUE(build_engine(R"(graph "g" {
    input %x: f32[2, 8, 9, 5]
    %axis = constant{value=i64[1]{1}}()
    %zero = constant{value=i64[1]{0}}()
    %at = constant{value=i64[1]{3}}()
    %far = constant{value=i64[1]{9223372036854775807}}()
    %behind = slice(%x, %at, %far, %axis)
    %before = slice(%x, %zero, %at, %axis)
    %r = concat{axis=1}(%behind, %before)
    %z = unary{op=abs}(%r)
    %w = constant{value=f32[8, 8, 3, 3]{~1}}()
    %y = convolution(%z, %w)
    output %y
})",
                           native_options(), 2, &report));
  const auto why = [&](std::string_view name) {
    for (const TensorReport& tensor : report.tensors)
      if (tensor.name == name) return tensor.why;
    return std::string();
  };
  EXPECT_NE(why("z").find("parts are read in place, in boxes: "), std::string::npos) << why("z");
  EXPECT_NE(why("z").find(" us; parts are copied: "), std::string::npos) << why("z");
  EXPECT_NE(why("z").find("linear us  chan.-last us"), std::string::npos) << why("z");
}

}  // namespace
}  // namespace lathe
