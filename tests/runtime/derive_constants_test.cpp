// SPDX-License-Identifier: Apache-2.0
#include "runtime/derive_constants.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/rules.h"

namespace lathe {
namespace {

// Weights of one element and a constant that follows from them by `steps`, each of which reads the value before it
// as often as it has inputs.
plan::Plan plan_of(DType weights, std::vector<plan::RefitStep> steps, uint64_t bytes) {
  plan::Plan plan;
  plan.refit.kind = plan::RefitKind::all;
  plan.refit.weights.push_back({"w", weights, {1}, {}, {}, {}, false, "", false});
  uint32_t last = 0;
  for (plan::RefitStep& step : steps) {
    for (uint32_t& input : step.inputs) input = last;
    ++last;
  }
  plan.constants.push_back({"c", 0, bytes, {}, 1 + last, true});
  plan.refit.steps = std::move(steps);
  return plan;
}

Result<Tensor> no_operand(const plan::RefitOperand&) { return Tensor(); }

// The first constant's content, but for its packing.
Result<ChannelArithmetic> derive(const plan::Plan& plan, double value) {
  Tensor weights = *Tensor::allocate(plan.refit.weights[0].dtype, {1});
  from_doubles(std::vector<double>{value}, weights);
  LATHE_ASSIGN(const std::vector<ConstantStep> steps, read_steps(plan.refit));
  LATHE_ASSIGN(const ConstantContent content,
               ConstantDeriver(plan, steps, std::span(&weights, 1), no_operand, RangeCheck::on).derive(0));
  return content.elements;
}

TEST(DeriveConstants, EvaluatesAStepOnceHoweverOftenItIsRead) {
  const plan::Plan plan =
      plan_of(DType::f32, std::vector<plan::RefitStep>(60, {"elementwise", "{op=add}", {}, {0, 0}, 1}), 4);
  const Result<ChannelArithmetic> constant = derive(plan, 3);
  ASSERT_TRUE(constant) << constant.error().to_string();
  EXPECT_EQ(constant->source().at_double(0), std::ldexp(3.0, 60));
  EXPECT_EQ(*find_sources(plan), std::vector<std::vector<uint32_t>>{{0}});
}

// Views and the last packing are left to who puts the content in place.
TEST(DeriveConstants, CopiesNothing) {
  const Tensor weights = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), dims = Tensor::of<int64_t>({2}, {3, 2});
  plan::Plan plan;
  plan.refit.kind = plan::RefitKind::all;
  plan.refit.weights.push_back({"w", DType::f32, {2, 3}, {}, {}, {}, false, "", false});
  plan.refit.operands.push_back({1, DType::i64, {2}});
  const Packing swapped{{3, 2}, {{0, 0, {3, 2}, {1, 3}, {2, 1}}}};
  plan.refit.steps.push_back({"reshape", "", {}, {0, 1}, 1});
  plan.refit.steps.push_back({"", "", to_numbers(swapped), {2}, 1});
  plan.constants.push_back({"packed", 0, 24, {}, 1 + 3, true});
  plan.constants.push_back({"dims", 0, 16, {}, 0, false});
  plan.constants.push_back({"reshaped", 0, 24, {}, 1 + 2, true});
  plan.constants.push_back({"itself", 0, 24, {}, 1, true});
  plan.constants.push_back({"of another size", 0, 28, {}, 1 + 3, true});
  const std::vector<ConstantStep> steps = *read_steps(plan.refit);
  const ConstantDeriver deriver(
      plan, steps, std::span(&weights, 1), [&](const plan::RefitOperand&) -> Result<Tensor> { return dims; },
      RangeCheck::on);
  for (const uint32_t index : {0, 2, 3}) {
    const Result<ConstantContent> content = deriver.derive(index);
    ASSERT_TRUE(content) << content.error().to_string();
    EXPECT_TRUE(content->elements.steps().empty());
    EXPECT_EQ(content->elements.source().data(), weights.data());
    EXPECT_EQ(content->packing != nullptr, index == 0);
  }
  EXPECT_EQ(deriver.derive(0)->elements.source().dims(), (Dims{3, 2}));
  EXPECT_EQ(to_numbers(*deriver.derive(0)->packing), to_numbers(swapped));
  EXPECT_EQ(deriver.derive(4).error().code, ErrorCode::plan_malformed);
}

// A packing is checked before anything is touched.
TEST(DeriveConstants, RefusesPackingsThatLeaveTheWeights) {
  const Packing beyond{{1}, {{1, 0, {1}, {1}, {1}}}};
  EXPECT_EQ(derive(plan_of(DType::f32, {{"", "", to_numbers(beyond), {0}, 1}}, 4), 1).error().code,
            ErrorCode::plan_malformed);
}

TEST(DeriveConstants, RefusesNumbersThatTheNewTypeCannotHold) {
  struct Cast {
    DType from;
    const char* to;
    double number;
    bool fits;
  };
  for (const Cast& cast : {Cast{DType::bf16, "f16", 1e6, false},
                           {DType::f32, "f16", 1e6, false},
                           {DType::f32, "bf16", 3.4e38, false},
                           {DType::f16, "bf16", 60000, true},
                           {DType::bf16, "f16", 100, true},
                           {DType::bf16, "f32", 1e38, true}}) {
    const plan::Plan plan = plan_of(cast.from, {{"cast", fmt::format("{{to={}}}", cast.to), {}, {0}, 1}},
                                    std::string_view(cast.to) == "f32" ? 4 : 2);
    const Result<ChannelArithmetic> constant = derive(plan, cast.number);
    EXPECT_EQ(constant.has_value(), cast.fits) << cast.to << " " << cast.number;
    if (!cast.fits && !constant) {
      EXPECT_EQ(constant.error().code, ErrorCode::invalid_argument);
    }
  }
}

// A product of weights is as wide as they are, and what it makes of them is what a build would.
TEST(DeriveConstants, LooksAtProductsOnlyWhereTheResultIsNarrower) {
  const Tensor weights = Tensor::from<float>({64, 64}, std::vector<float>(4096, 3e38F)),
               factor = Tensor::from<double>({64, 1}, std::vector<double>(64, 2));
  for (const bool is_narrower : {false, true}) {
    plan::Plan plan;
    plan.refit.kind = plan::RefitKind::all;
    plan.refit.weights.push_back({"w", DType::f32, {64, 64}, {}, {}, {}, false, "", false});
    plan.refit.operands.push_back({1, DType::f64, {64, 1}});
    plan.refit.steps.push_back({"cast", "{to=f64}", {}, {0}, 1});
    plan.refit.steps.push_back({"elementwise", "{op=mul}", {}, {2, 1}, 1});
    plan.refit.steps.push_back({"cast", is_narrower ? "{to=bf16}" : "{to=f32}", {}, {3}, 1});
    plan.constants.push_back({"c", 0, is_narrower ? 8192U : 16384U, {}, 1 + 4, true});
    plan.constants.push_back({"factor", 0, 512, {}, 0, false});
    const auto read = [&](const plan::RefitOperand&) -> Result<Tensor> { return factor; };
    const std::vector<ConstantStep> steps = *read_steps(plan.refit);
    const Result<ConstantContent> content =
        ConstantDeriver(plan, steps, std::span(&weights, 1), read, RangeCheck::on).derive(0);
    ASSERT_TRUE(content);
    EXPECT_EQ(content->elements.holds_range(), !is_narrower);
    EXPECT_TRUE(content->elements.find_out_of_range());
    if (is_narrower) continue;
    std::vector<float> made(4096);
    content->elements.run(0, 4096, reinterpret_cast<std::byte*>(made.data()));
    EXPECT_EQ(made, std::vector<float>(4096, INFINITY));
  }
}

// What is evaluated again with other weights is what they would have been derived to: small chains of several ops,
// large products with what comes of these, operands that are weights themselves and of types that are widened, and
// views.
TEST(DeriveConstants, RepeatsWithOtherWeights) {
  constexpr int64_t kChannels = 70, kInner = 100;
  const DType f32 = DType::f32;
  plan::Plan plan;
  plan.refit.kind = plan::RefitKind::all;
  const auto weights_of = [&](Dims dims, DType type = DType::f32) {
    plan.refit.weights.push_back({"", type, std::move(dims), {}, {}, {}, false, "", false});
  };
  weights_of({kChannels, kInner});                               // 0: of a convolution
  for (int i = 1; i <= 3; ++i) weights_of({kChannels});          // scale, bias, variance
  weights_of({kChannels}, DType::f64);                           // 4
  plan.refit.operands = {{10, f32, {}}, {11, DType::i64, {2}}};  // 5, 6: epsilon, dims
  plan.refit.steps = {
      {"elementwise", "", {}, {3, 5}, 1},            // 7: of f32
      {"unary", "{op=sqrt}", {}, {7}, 1},            // 8
      {"elementwise", "{op=div}", {}, {1, 8}, 1},    // 9
      {"reshape", "", {}, {9, 6}, 1},                // 10
      {"cast", "{to=f64}", {}, {0}, 1},              // 11
      {"cast", "{to=f64}", {}, {10}, 1},             // 12
      {"elementwise", "{op=mul}", {}, {11, 12}, 1},  // 13
      {"cast", "{to=f32}", {}, {13}, 1},             // 14
      {"elementwise", "{op=mul}", {}, {2, 9}, 1},    // 15
      {"cast", "{to=f64}", {}, {15}, 1},             // 16
      {"elementwise", "{op=add}", {}, {16, 4}, 1},   // 17: of weights that are f64
      {"cast", "{to=f16}", {}, {17}, 1},             // 18
      {"reshape", "", {}, {1, 6}, 1},                // 19
      {"elementwise", "{op=sub}", {}, {0, 19}, 1},   // 20: of weights seen otherwise
      {"elementwise", "{op=max}", {}, {1, 2}, 1},    // 21: no arithmetic of channels
  };
  const std::vector<uint64_t> sizes = {4 * kChannels * kInner, 2 * kChannels, 4 * kChannels * kInner, 4 * kChannels,
                                       4 * kChannels,          4 * kChannels, 4 * kChannels * kInner};
  const std::vector<uint32_t> values = {14, 18, 20, 21, 19, 2, 0};
  for (size_t i = 0; i < values.size(); ++i) plan.constants.push_back({"c", 0, sizes[i], {}, 1 + values[i], true});
  const Tensor epsilon = Tensor::of<float>({}, {0.25f}), dims = Tensor::of<int64_t>({2}, {kChannels, 1});
  const auto read = [&](const plan::RefitOperand& operand) -> Result<Tensor> {
    return operand.constant == 10 ? epsilon : dims;
  };
  const std::vector<ConstantStep> steps = *read_steps(plan.refit);
  const auto random_weights = [&](uint32_t seed, double bias) {
    std::vector<Tensor> weights;
    for (const plan::RefitWeights& each : plan.refit.weights) {
      weights.push_back(*Tensor::allocate(each.dtype, each.dims));
      std::vector<double> numbers(static_cast<size_t>(weights.back().volume()));
      for (double& number : numbers)
        number = (seed = seed * 1103515245u % 30011) / 30011.0 * (weights.size() == 3 ? bias : 1);
      from_doubles(numbers, weights.back());
    }
    return weights;
  };
  const auto derive_all = [&](const ConstantDeriver& deriver) {
    std::vector<ConstantContent> contents;
    for (uint32_t i = 0; i < values.size(); ++i) contents.push_back(*deriver.derive(i));
    return contents;
  };
  const auto bits = [](const ConstantContent& content) {
    std::vector<std::byte> bytes(static_cast<size_t>(content.elements.volume()) * size_of(content.elements.type()));
    if (!content.elements.steps().empty())
      content.elements.run(0, content.elements.volume(), bytes.data());
    else
      std::ranges::copy(content.elements.source().raw(), bytes.begin());
    return bytes;
  };
  const std::vector<Tensor> first = random_weights(7, 1), second = random_weights(11, -2),
                            large = random_weights(13, 1e9);
  ConstantDeriver deriver(plan, steps, first, read, RangeCheck::on);
  std::vector<ConstantContent> contents = derive_all(deriver);
  ASSERT_TRUE(deriver.is_repeatable());
  for (const std::vector<Tensor>& weights : {second, first}) {
    ASSERT_TRUE(deriver.repeat(weights, RangeCheck::on, contents));
    const ConstantDeriver anew(plan, steps, weights, read, RangeCheck::on);
    const std::vector<ConstantContent> wanted = derive_all(anew);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(bits(contents[i]), bits(wanted[i])) << i;
  }
  EXPECT_NE(bits(contents[0]), bits(derive_all({plan, steps, second, read, RangeCheck::on})[0]));
  const Result<> refused = deriver.repeat(large, RangeCheck::on, contents);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(deriver.repeat(large, RangeCheck::off, contents));
}

// What is large is not kept for the next refit.
TEST(DeriveConstants, KeepsNothingLarge) {
  plan::Plan plan;
  plan.refit.kind = plan::RefitKind::all;
  plan.refit.weights.push_back({"w", DType::f32, {100, 200}, {}, {}, {}, false, "", false});
  plan.refit.steps.push_back({"transpose", "", {}, {0}, 1});
  plan.constants.push_back({"c", 0, 80'000, {}, 1 + 1, true});
  const Tensor weights = Tensor::from<float>({100, 200}, std::vector<float>(20'000, 1));
  const std::vector<ConstantStep> steps = *read_steps(plan.refit);
  const ConstantDeriver deriver(plan, steps, std::span(&weights, 1), no_operand, RangeCheck::on);
  ASSERT_TRUE(deriver.derive(0));
  EXPECT_FALSE(deriver.is_repeatable());
}

}  // namespace
}  // namespace lathe
