// SPDX-License-Identifier: Apache-2.0
// Each rule of validate(): a valid plan, one change, a refusal that names the cause.
#include "plan/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/random_plan.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

struct Damage {
  const char* name;
  const char* expected;  // part of the message
  std::function<void(Plan&)> apply;
};

Tensor& first_in(Plan& plan, StorageKind kind) {
  for (Tensor& t : plan.tensors)
    if (t.storage == kind) return t;
  return plan.tensors[0];
}

Step& launching_step(Plan& plan) {
  for (Step& s : plan.steps)
    if (!s.launches.empty()) return s;
  return plan.steps[0];
}

Launch& first_launch(Plan& plan) { return launching_step(plan).launches[0]; }

// The order of the rules in docs/plan_format.md.
const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"target too long", "target", [](Plan& p) { p.target.assign(64, 'x'); }},
      {"target with zero", "target", [](Plan& p) { p.target = std::string("cpu\0x", 5); }},
      {"rank", "rank", [](Plan& p) { first_in(p, StorageKind::arena).dims.assign(9, 1); }},
      {"strides", "strides", [](Plan& p) { p.tensors[0].strides = {1}; }},
      {"dtype", "element type", [](Plan& p) { p.tensors[0].dtype = static_cast<DType>(99); }},
      {"unknown symbol", "symbol 77", [](Plan& p) { p.tensors.back().dims[0] = Expr::symbol(77); }},
      {"invalid expression", "invalid", [](Plan& p) { p.tensors.back().dims[0] = Expr::invalid(); }},
      {"buffer index", "does not exist", [](Plan& p) { first_in(p, StorageKind::arena).index = 999; }},
      {"constant index", "does not exist", [](Plan& p) { first_in(p, StorageKind::constant).index = 999; }},
      {"dynamic index", "does not exist",
       [](Plan& p) { first_in(p, StorageKind::arena).storage = StorageKind::dynamic; }},
      {"constant outside", "outside the weights", [](Plan& p) { p.constants.back().bytes += 1; }},
      {"constant overflow", "outside the weights", [](Plan& p) { p.constants[0].bytes = UINT64_MAX; }},
      {"constant offset", "outside the weights", [](Plan& p) { p.constants[0].offset = UINT64_MAX / 64 * 64; }},
      {"constant alignment", "aligned", [](Plan& p) { p.constants.back().offset += 1; }},
      {"window leaves constant", "leaves its storage", [](Plan& p) { first_in(p, StorageKind::constant).offset = 1; }},
      {"window before constant", "leaves its storage", [](Plan& p) { first_in(p, StorageKind::constant).offset = -1; }},
      {"negative dimension", "negative", [](Plan& p) { first_in(p, StorageKind::constant).dims[0] = -1; }},
      {"huge dimension", "leaves its storage", [](Plan& p) { first_in(p, StorageKind::constant).dims[0] = INT64_MAX; }},
      {"overflowing window", "overflows",
       [](Plan& p) {
         Tensor& t = first_in(p, StorageKind::constant);
         t.dims = {INT64_MAX, INT64_MAX, INT64_MAX};
       }},
      {"window leaves buffer", "leaves its storage", [](Plan& p) { first_in(p, StorageKind::arena).offset = 1 << 20; }},
      {"window before buffer", "before its storage", [](Plan& p) { first_in(p, StorageKind::arena).offset = -1; }},
      {"buffer too small", "leaves its storage", [](Plan& p) { p.buffers[0].bytes = 4; }},
      {"negative buffer", "negative size", [](Plan& p) { p.buffers[0].bytes = -4; }},
      {"buffer of computed size", "computed while running", [](Plan& p) { p.buffers[0].bytes = Expr::symbol(2); }},
      {"buffer after the end", "lives from",
       [](Plan& p) { p.buffers[0].last = static_cast<uint32_t>(p.steps.size()); }},
      {"buffer backwards", "lives from", [](Plan& p) { p.buffers.back().first = p.buffers.back().last + 1; }},
      {"buffer dies early", "lives from", [](Plan& p) { p.buffers[0].last = p.buffers[0].first; }},
      {"unnamed binding", "name", [](Plan& p) { p.bindings[0].name.clear(); }},
      {"binding name with zero", "name", [](Plan& p) { p.bindings[0].name = std::string("a\0b", 3); }},
      {"same names", "two bindings", [](Plan& p) { p.bindings[1].name = p.bindings[0].name; }},
      {"output first", "after an output",
       [](Plan& p) { p.bindings[0].is_input = false, p.bindings[1].is_input = true; }},
      {"binding tensor", "refers to tensor", [](Plan& p) { p.bindings[0].tensor = kNoTensor; }},
      {"binding of another", "not the binding itself", [](Plan& p) { p.bindings[0].tensor = p.bindings[1].tensor; }},
      {"dimension names", "dimension names", [](Plan& p) { p.bindings[0].dim_names.pop_back(); }},
      {"input of computed size", "computed while running",
       [](Plan& p) { p.tensors[p.bindings[0].tensor].dims[1] = Expr::symbol(2); }},
      {"symbol without source", "does not exist", [](Plan& p) { p.symbols[0].tensor = 1; }},
      {"symbol of another dimension", "is not this symbol", [](Plan& p) { p.symbols[0].index = 1; }},
      {"symbol beyond rank", "is not this symbol", [](Plan& p) { p.symbols[0].index = 8; }},
      {"symbol range", "empty",
       [](Plan& p) {
         p.symbols[2].range = {5, 4};
       }},
      {"negative dimension range", "negative", [](Plan& p) { p.symbols[0].range.min = -1; }},
      {"value of a plain input", "shape tensor", [](Plan& p) { p.symbols[0].source = SymbolSource::input_value; }},
      {"constraint on no symbol", "its right side uses symbol 9",
       [](Plan& p) { p.constraints[0].b = Expr::symbol(9); }},
      {"constraint without value", "its left side", [](Plan& p) { p.constraints[0].a = Expr::invalid(); }},
      {"no profile", "profile", [](Plan& p) { p.profiles.clear(); }},
      {"short profile", "covers", [](Plan& p) { p.profiles[0].symbols.pop_back(); }},
      {"profile order", "a profile gives",
       [](Plan& p) { p.profiles[0].symbols[0].opt = p.profiles[0].symbols[0].max + 1; }},
      {"profile beyond range", "a profile gives", [](Plan& p) { p.profiles[0].symbols[1].max = 4097; }},
      {"no kernel", "kernel", [](Plan& p) { p.steps[0].kernel.clear(); }},
      {"eval without op", "operation", [](Plan& p) { p.steps[0].kernel = "eval", p.steps[0].op.clear(); }},
      {"op without eval", "operation", [](Plan& p) { p.steps[0].kernel = "conv", p.steps[0].op = "relu"; }},
      {"operand", "does not exist", [](Plan& p) { p.steps[0].inputs[0] = 100000; }},
      {"too many operands", "too many", [](Plan& p) { p.steps[0].inputs.assign(5000, kNoTensor); }},
      {"reads before written", "before anything", [](Plan& p) { p.steps[0].inputs[1] = p.steps[0].outputs[0]; }},
      {"writes an input", "input or a constant", [](Plan& p) { p.steps[0].outputs.push_back(p.bindings[0].tensor); }},
      {"writes a constant", "input or a constant", [](Plan& p) { p.steps[0].outputs.push_back(p.steps[0].inputs[2]); }},
      {"output not written", "no step writes", [](Plan& p) { p.steps.back().outputs.clear(); }},
      {"program text", "", [](Plan& p) { p.steps[0].program = "in=2; r2=frobnicate r0 r1; out r2"; }},
      {"program inputs", "program takes", [](Plan& p) { p.steps[0].program = "in=9; r9=add r0 r8; out r9"; }},
      {"time", "time", [](Plan& p) { p.steps[0].milliseconds = -1; }},
      {"time not a number", "time", [](Plan& p) { p.steps[0].milliseconds = std::numeric_limits<float>::quiet_NaN(); }},
      {"code module", "code module 2 of 2", [](Plan& p) { first_launch(p).code = 2; }},
      {"library's code", "code module", [](Plan& p) { first_launch(p).library = "cudnn", first_launch(p).code = 1; }},
      {"library's long name", "limit", [](Plan& p) { first_launch(p).library.assign((16u << 20) + 1, 'x'); }},
      {"no entry", "no entry", [](Plan& p) { first_launch(p).entry.clear(); }},
      {"entry with zero", "no entry", [](Plan& p) { first_launch(p).entry = std::string("a\0b", 3); }},
      {"long entry", "limit", [](Plan& p) { first_launch(p).entry.assign((16u << 20) + 1, 'x'); }},
      {"no threads", "no threads", [](Plan& p) { first_launch(p).block = 0; }},
      {"no cluster", "no threads", [](Plan& p) { first_launch(p).cluster = 0; }},
      {"too many arguments", "arguments", [](Plan& p) { first_launch(p).args.resize(kMaxLaunchArgs + 1); }},
      {"grid's symbol", "symbol 77", [](Plan& p) { first_launch(p).grid[2] = Expr::symbol(77); }},
      {"argument's expression", "invalid", [](Plan& p) { first_launch(p).args[2].value = Expr::invalid(); }},
      {"argument's input", "refers to nothing",
       [](Plan& p) {
         first_launch(p).args[0] = {LaunchArg::input, static_cast<uint32_t>(launching_step(p).inputs.size()), 0};
       }},
      {"argument's output", "refers to nothing",
       [](Plan& p) {
         first_launch(p).args[0] = {LaunchArg::output, static_cast<uint32_t>(launching_step(p).outputs.size()), 0};
       }},
      {"too many launches", "9 launches",
       [](Plan& p) { launching_step(p).launches.resize(kMaxLaunches + 1, first_launch(p)); }},
      {"eval launches", "launches", [](Plan& p) { launching_step(p).kernel = "eval", launching_step(p).op = "relu"; }},
      {"workspace without launches", "launches nothing",
       [](Plan& p) { launching_step(p).workspace = 64, launching_step(p).launches.clear(); }},
      {"count's symbol", "symbol 0", [](Plan& p) { launching_step(p).counts[0].symbol = 0; }},
      {"count's missing symbol", "symbol 77", [](Plan& p) { launching_step(p).counts[0].symbol = 77; }},
      {"count's input", "does not exist", [](Plan& p) { launching_step(p).counts[0].input = 99; }},
      {"count's list", "no dense list", [](Plan& p) { launching_step(p).counts[0].input = 0; }},
      {"count's element", "invalid", [](Plan& p) { launching_step(p).counts[0].element = Expr::invalid(); }},
      {"workspace's symbol", "symbol 77", [](Plan& p) { launching_step(p).workspace = Expr::symbol(77); }},
      {"long string", "limit", [](Plan& p) { p.metadata[0].second.assign((16u << 20) + 1, 'x'); }},
  };
  return all;
}

TEST(PlanValidate, EachRuleRefuses) {
  for (const Damage& damage : damages()) {
    OwnedPlan owned = PlanGenerator(11).make(6, 128, 2);
    ASSERT_TRUE(validate(owned.plan)) << validate(owned.plan).error().to_string();
    damage.apply(owned.plan);
    const auto result = validate(owned.plan);
    ASSERT_FALSE(result) << damage.name;
    EXPECT_NE(result.error().message.find(damage.expected), std::string::npos)
        << damage.name << ": " << result.error().to_string();
    EXPECT_FALSE(write_plan(owned.plan)) << damage.name;
  }
}

TEST(PlanValidate, WindowsAreCheckedForTheShapesAtHand) {
  OwnedPlan owned = PlanGenerator(11).make(6, 128);
  Plan& plan = owned.plan;
  const std::array<int64_t, 3> values = {4, 100, Expr::kUnbound};
  EXPECT_TRUE(check_windows(plan, values)) << check_windows(plan, values).error().to_string();
  EXPECT_FALSE(check_windows(plan, std::span(values).first(2)));
  // Large enough for width 200 at batch 1, not at batch 4: no proof either way from the ranges.
  for (Buffer& b : plan.buffers) b.bytes = 4 * 3 * 200 + 64;
  EXPECT_TRUE(validate(plan)) << validate(plan).error().to_string();
  EXPECT_TRUE(check_windows(plan, std::array<int64_t, 3>{1, 200, 0}));
  const auto beyond = check_windows(plan, std::array<int64_t, 3>{4, 200, 0});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::plan_malformed);
  EXPECT_TRUE(check_windows(plan, std::array<int64_t, 3>{0, 4096, 0})) << "an empty window touches nothing";
  EXPECT_EQ(check_windows(plan, std::array<int64_t, 3>{-1, 10, 0}).error().code, ErrorCode::shape_mismatch);
  EXPECT_EQ(check_windows(plan, std::array<int64_t, 3>{INT64_MAX, INT64_MAX, 0}).error().code,
            ErrorCode::shape_mismatch);
}

TEST(PlanValidate, NegativeStridesAreWindowsToo) {
  OwnedPlan owned = PlanGenerator(11).make(6, 128);
  Tensor& t = first_in(owned.plan, StorageKind::constant);
  t.dims = {2, 8};
  t.strides = {-64, 1};
  t.offset = 64;
  EXPECT_TRUE(validate(owned.plan)) << validate(owned.plan).error().to_string();
  t.offset = 63;
  EXPECT_FALSE(validate(owned.plan));
}

TEST(PlanValidate, UnboundSymbolsPostponeTheCheck) {
  OwnedPlan owned = PlanGenerator(11).make(6, 128);
  Plan& plan = owned.plan;
  Tensor& t = first_in(plan, StorageKind::constant);
  t.dims = {Expr::symbol(2)};
  EXPECT_TRUE(validate(plan));
  EXPECT_TRUE(check_windows(plan, std::array<int64_t, 3>{1, 10, Expr::kUnbound}));
  EXPECT_TRUE(check_windows(plan, std::array<int64_t, 3>{1, 10, 128}));
  EXPECT_FALSE(check_windows(plan, std::array<int64_t, 3>{1, 10, 129}));
}

}  // namespace
}  // namespace lathe::plan
