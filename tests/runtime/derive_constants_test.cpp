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

Result<Tensor> derive(const plan::Plan& plan, double value) {
  Tensor weights = *Tensor::allocate(plan.refit.weights[0].dtype, {1});
  from_doubles(std::vector<double>{value}, weights);
  const auto none = [](const plan::RefitOperand&) -> Result<Tensor> { return Tensor(); };
  return ConstantDeriver(plan, std::span(&weights, 1), none, RangeCheck::on).derive(0);
}

TEST(DeriveConstants, EvaluatesAStepOnceHoweverOftenItIsRead) {
  const plan::Plan plan =
      plan_of(DType::f32, std::vector<plan::RefitStep>(60, {"elementwise", "{op=add}", {}, {0, 0}, 1}), 4);
  const Result<Tensor> constant = derive(plan, 3);
  ASSERT_TRUE(constant) << constant.error().to_string();
  EXPECT_EQ(constant->at_double(0), std::ldexp(3.0, 60));
  EXPECT_EQ(*find_sources(plan), std::vector<std::vector<uint32_t>>{{0}});
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
    const Result<Tensor> constant = derive(plan, cast.number);
    EXPECT_EQ(constant.has_value(), cast.fits) << cast.to << " " << cast.number;
    if (!cast.fits && !constant) {
      EXPECT_EQ(constant.error().code, ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace lathe
