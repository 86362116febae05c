// SPDX-License-Identifier: Apache-2.0
// The sizes besides the optimum that steps are tuned for, and which of them a step may have a form for.
#include "lowering/choices_by_size.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

using Sizes = std::vector<std::vector<int64_t>>;

plan::Plan plan_of(std::vector<plan::SymbolProfile> ranges) {
  plan::Plan plan;
  for (size_t i = 0; i < ranges.size(); ++i)
    plan.symbols.push_back({"s", SymbolSource::input_dim, 0, static_cast<uint32_t>(i), {0, Range::kUnbounded}});
  plan.profiles = {{std::move(ranges)}};
  return plan;
}

TEST(ChoicesBySize, SizesDoubleAroundTheOptimum) {
  EXPECT_EQ(sizes_besides_optimum(plan_of({{16, 128, 512}})), (Sizes{{64}, {32}, {256}, {512}}));
  EXPECT_EQ(sizes_besides_optimum(plan_of({{100, 128, 128}})), (Sizes{{100}}));
  EXPECT_EQ(sizes_besides_optimum(plan_of({{128, 128, 128}})), Sizes());
  EXPECT_EQ(sizes_besides_optimum(plan_of({{0, 0, 0}})), Sizes());
}

TEST(ChoicesBySize, TheLargestIsOneOfThem) {
  EXPECT_EQ(sizes_besides_optimum(plan_of({{1, 1, 1000}})), (Sizes{{10}, {100}, {1000}}));
  EXPECT_EQ(sizes_besides_optimum(plan_of({{1, 1, Range::kUnbounded}})), (Sizes{{2}, {4}, {8}}));
}

TEST(ChoicesBySize, SizesOfAllProfilesCount) {
  plan::Plan plan = plan_of({{8, 8, 8}});
  plan.profiles.push_back({{{8, 16, 32}}});
  EXPECT_EQ(sizes_besides_optimum(plan), (Sizes{{16}, {32}}));
}

TEST(ChoicesBySize, SeveralSizesChangeTogether) {
  const Sizes sizes = sizes_besides_optimum(plan_of({{1, 2, 4}, {64, 64, 256}}));
  ASSERT_EQ(sizes.size(), 4u);
  EXPECT_EQ(sizes[0], (std::vector<int64_t>{1, 64}));
  EXPECT_EQ(sizes.back(), (std::vector<int64_t>{4, 256}));
}

TEST(ChoicesBySize, SizesThatTheNetworkForbidsAreLeftOut) {
  plan::Plan plan = plan_of({{16, 128, 512}});
  plan.constraints = {{Relation::at_most, Expr::symbol(0), Expr(300), "a test"}};
  EXPECT_EQ(sizes_besides_optimum(plan), (Sizes{{64}, {32}, {256}}));
}

TEST(ChoicesBySize, WhatDependsOnDataStaysAsItIs) {
  plan::Plan plan = plan_of({{16, 128, 512}});
  plan.symbols.push_back({"found", SymbolSource::computed, 0, 0, {0, 100}});
  plan.profiles[0].symbols.push_back({0, 50, 100});
  EXPECT_EQ(sizes_besides_optimum(plan).front(), (std::vector<int64_t>{64, 50}));

  Problem problem;
  problem.symbols = {128, 50};
  Operand operand;
  operand.dims = {Expr::symbol(0), 3};
  operand.strides = {3, 1};
  operand.opt_dims = {128, 3}, operand.opt_strides = {3, 1};
  problem.outputs = {operand};
  const auto other = at_sizes(problem, std::array<int64_t, 2>{64, 50}, plan.symbols);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->outputs[0].opt_dims, (Dims{64, 3}));
  EXPECT_EQ(other->outputs[0].dims, operand.dims);
  EXPECT_EQ(other->symbols, (std::vector<int64_t>{64, 50}));
  EXPECT_FALSE(at_sizes(problem, std::array<int64_t, 2>{128, 40}, plan.symbols)) << "it has these sizes";
  problem.outputs[0].dims[1] = Expr::symbol(1);
  EXPECT_FALSE(at_sizes(problem, std::array<int64_t, 2>{64, 50}, plan.symbols)) << "running tells its size";
}

SourceLaunch launch_reading(uint32_t input) {
  SourceLaunch launch{"source", {}};
  launch.launch.args = {{LaunchArg::input, input, {}}, {LaunchArg::output, 0, {}}};
  return launch;
}

TEST(ChoicesBySize, AFormReadsWhatTheStepReads) {
  const float values[] = {1, 2};
  const auto weights = [&] { return Packed(Tensor::from<float>({2}, values)); };
  Emission first, other;
  first.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
  first.packed.push_back(weights());
  first.launches = {launch_reading(1)};
  other.inputs = {{StepInput::packed, 0}, {StepInput::input, 0}};
  other.packed.push_back(weights());
  other.launches = {launch_reading(0)};
  const auto form = form_like(first, other);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->launches[0].launch.args[0].index, 1u) << "the weights are the step's second input";
  other.packed[0] = Packed(Tensor::of<float>({2}, {1, 3}));
  EXPECT_FALSE(form_like(first, other)) << "weights in another order would be in the plan twice";
  other.inputs[0] = {StepInput::input, 1};
  EXPECT_FALSE(form_like(first, other));
}

TEST(ChoicesBySize, CallsOfLibrariesHaveNoForms) {
  Emission first;
  first.inputs = {{StepInput::input, 0}};
  first.launches = {launch_reading(0)};
  Emission library = first;
  library.launches[0].launch.library = kCublasLtName;
  EXPECT_FALSE(form_like(first, library));
  EXPECT_FALSE(form_like(library, first)) << "nothing would keep the step's own from running";
  EXPECT_FALSE(form_like(first, Emission{}));
}

}  // namespace
}  // namespace lathe
