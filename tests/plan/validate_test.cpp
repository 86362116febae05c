// SPDX-License-Identifier: Apache-2.0
// Each rule of validate(): a valid plan, one change, a refusal that names the cause.
#include "plan/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/limits.h"
#include "plan/random_plan.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

struct Damage {
  const char* name;
  const char* expected;  // part of the message
  std::function<void(Plan&)> apply;
};

TensorDesc& first_in(Plan& plan, StorageKind kind) {
  for (TensorDesc& t : plan.tensors)
    if (t.storage == kind) return t;
  return plan.tensors[0];
}

// The first step that is a T.
template <class T>
Step& step_of(Plan& plan) {
  for (Step& s : plan.steps)
    if (s.is<T>()) return s;
  ADD_FAILURE() << "the plan has no such step";
  return plan.steps[0];
}
template <class T>
T& work_of(Plan& plan) {
  return std::get<T>(step_of<T>(plan).work);
}

Step& launching_step(Plan& plan) { return step_of<DeviceLaunches>(plan); }
DeviceLaunches& device(Plan& plan) { return work_of<DeviceLaunches>(plan); }
Launch& first_launch(Plan& plan) { return device(plan).launches[0]; }

// The order of the rules in docs/plan_format.md.
const std::vector<Damage>& damages_of_plans() {
  static const std::vector<Damage> all = {
      {"target too long", "target", [](Plan& p) { p.target.assign(kMaxTarget + 1, 'x'); }},
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
         TensorDesc& t = first_in(p, StorageKind::constant);
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
      {"constant without a name", "no name", [](Plan& p) { p.constants[0].name.clear(); }},
      {"constants of one name", "that of another", [](Plan& p) { p.constants[0].name = p.constants[1].name; }},
      {"detached weights of another size", "bytes of weights",
       [](Plan& p) {
         p.detached = DetachedWeights{p.weights.size() + 64, 0, {}};
       }},
      {"weights here and there", "in its file and in", [](Plan& p) { p.weights_file = "w"; }},
      {"sequence in the arena", "dynamic slot",
       [](Plan& p) { first_in(p, StorageKind::arena).kind = ValueKind::sequence; }},
      {"sequence for a kernel", "cannot take",
       [](Plan& p) {
         p.dynamic_slots = 1;
         TensorDesc& t = p.tensors[step_of<HostKernel>(p).outputs[0]];
         t.storage = StorageKind::dynamic, t.index = 0, t.kind = ValueKind::optional_tensor;
       }},
  };
  return all;
}

const std::vector<Damage>& damages_of_maps() {
  static const std::vector<Damage> all = {
      {"no such tensor map", "refers to nothing",
       [](Plan& p) {
         first_launch(p).maps.clear();
         first_launch(p).args[0] = {LaunchArg::tensor_map, 0, 0};
       }},
      {"tensor map of no input", "describes nothing",
       [](Plan& p) {
         first_launch(p).maps = {{99, DType::f16, false, {64, 8}, {64}, {64, 8}, {}}};
       }},
      {"tensor map without strides", "describes nothing",
       [](Plan& p) {
         first_launch(p).maps = {{0, DType::f16, false, {64, 8}, {}, {64, 8}, {}}};
       }},
      {"tensor map of windows by a block of three", "describes nothing",
       [](Plan& p) {
         first_launch(p).maps = {
             {0, DType::f16, false, {64, 8, 8, 2}, {64, 512, 4096}, {64, 8, 8}, {0, 0, 0, 0, 1, 1}}};
       }},
      {"tensor map's symbol", "symbol 77",
       [](Plan& p) {
         first_launch(p).maps = {{0, DType::f16, false, {64, Expr::symbol(77)}, {64}, {64, 8}, {}}};
       }},
      {"too many tensor maps", "5 tensor maps",
       [](Plan& p) {
         first_launch(p).maps.assign(kMaxTensorMaps + 1, {0, DType::f16, false, {64}, {}, {64}, {}});
       }},
  };
  return all;
}

const std::vector<Damage>& damages_of_steps() {
  static const std::vector<Damage> all = {
      {"module without images", "0 images", [](Plan& p) { p.codes[0].images.clear(); }},
      {"too many images", "images", [](Plan& p) { p.codes[0].images.resize(kMaxImages + 1, p.codes[0].images[0]); }},
      {"same images", "two images", [](Plan& p) { p.codes[0].images.push_back(p.codes[0].images[0]); }},
      {"image for no target", "no target", [](Plan& p) { p.codes[0].images[0].target.clear(); }},
      {"empty image", "empty", [](Plan& p) { p.codes[0].images[0].bytes = {}; }},
      {"header without a name", "no name", [](Plan& p) { p.headers[0].name.clear(); }},
      {"empty header", "empty", [](Plan& p) { p.headers[0].bytes = {}; }},
      {"two headers of a name", "two of the name", [](Plan& p) { p.headers.push_back(p.headers[0]); }},
      {"no kernel", "kernel", [](Plan& p) { work_of<HostKernel>(p).kernel.clear(); }},
      {"launches for no kernel", "kernel", [](Plan& p) { device(p).kernel.clear(); }},
      {"evaluation of no op", "operation", [](Plan& p) { p.steps[0].work = Evaluation(), p.steps[0].op.clear(); }},
      {"op of a kernel", "operation",
       [](Plan& p) {
         p.steps[0].work = HostKernel{"conv", {}, ""}, p.steps[0].op = "relu";
       }},
      {"op of a copy", "operation", [](Plan& p) { p.steps[0].work = Copy(), p.steps[0].op = "relu"; }},
      {"copy of two", "copies other than", [](Plan& p) { step_of<HostKernel>(p).work = Copy(); }},
      {"too many parameters", "too many", [](Plan& p) { work_of<HostKernel>(p).params.assign(kMaxOperands + 1, 0); }},
      {"operand", "does not exist", [](Plan& p) { p.steps[0].inputs[0] = 100000; }},
      {"too many operands", "too many", [](Plan& p) { p.steps[0].inputs.assign(5000, kNoTensor); }},
      {"reads before written", "before anything", [](Plan& p) { p.steps[0].inputs[1] = p.steps[0].outputs[0]; }},
      {"writes an input", "input or a constant", [](Plan& p) { p.steps[0].outputs.push_back(p.bindings[0].tensor); }},
      {"writes a constant", "input or a constant", [](Plan& p) { p.steps[0].outputs.push_back(p.steps[0].inputs[2]); }},
      {"output not written", "no step writes", [](Plan& p) { p.steps.back().outputs.clear(); }},
      {"program text", "", [](Plan& p) { work_of<HostKernel>(p).program = "in=2; r2=frobnicate r0 r1; out r2"; }},
      {"program inputs", "program takes",
       [](Plan& p) { work_of<HostKernel>(p).program = "in=9; r9=add r0 r8; out r9"; }},
      {"time", "time", [](Plan& p) { p.steps[0].milliseconds = -1; }},
      {"time not a number", "time", [](Plan& p) { p.steps[0].milliseconds = std::numeric_limits<float>::quiet_NaN(); }},
      {"code module", "code module 2 of 2", [](Plan& p) { first_launch(p).code = 2; }},
      {"library's code", "code module", [](Plan& p) { first_launch(p).library = "cudnn", first_launch(p).code = 1; }},
      {"no entry", "no entry", [](Plan& p) { first_launch(p).entry.clear(); }},
      {"entry with zero", "no entry", [](Plan& p) { first_launch(p).entry = std::string("a\0b", 3); }},
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
       [](Plan& p) { device(p).launches.resize(kMaxLaunches + 1, first_launch(p)); }},
      {"no launches", "0 launches", [](Plan& p) { device(p).launches.clear(); }},
      {"device program", "program takes", [](Plan& p) { device(p).program = "in=9; r9=add r0 r8; out r9"; }},
      {"count's symbol", "symbol 0", [](Plan& p) { launching_step(p).counts[0].symbol = 0; }},
      {"count's missing symbol", "symbol 77", [](Plan& p) { launching_step(p).counts[0].symbol = 77; }},
      {"count's input", "does not exist", [](Plan& p) { launching_step(p).counts[0].input = 99; }},
      {"count's list", "no dense list", [](Plan& p) { launching_step(p).counts[0].input = 0; }},
      {"count's element", "invalid", [](Plan& p) { launching_step(p).counts[0].element = Expr::invalid(); }},
      {"workspace's symbol", "symbol 77", [](Plan& p) { device(p).workspace = Expr::symbol(77); }},
      {"section's end", "a section", [](Plan& p) { p.sections[0].end = 99; }},
      {"section of no steps", "a section", [](Plan& p) { p.sections[0].end = p.sections[0].first; }},
      {"section twice", "a section", [](Plan& p) { p.sections.push_back(p.sections[0]); }},
      {"section of the host", "cannot run beside",
       [](Plan& p) {
         const auto count = static_cast<uint32_t>(p.steps.size());
         p.sections.push_back({count - 1, count});
       }},
      {"section's stream", "the limit is 16", [](Plan& p) { p.steps[p.sections[0].first].stream = 17; }},
      {"stream of a single step", "outside of a section", [](Plan& p) { p.steps.back().stream = 1; }},
      {"stream before a section", "outside of a section", [](Plan& p) { p.sections[0].first += 1; }},
  };
  return all;
}

// Some kernels of the library, launches that read a size, and a section.
uint32_t seed_of_many_kinds() {
  for (uint32_t seed = 11; seed < 100000; ++seed) {
    OwnedPlan owned = PlanGenerator(seed).make(8, 128, 2);
    const auto is_some = [&](const auto& is) {
      return std::any_of(owned.plan.steps.begin(), owned.plan.steps.end(), is);
    };
    if (is_some([](const Step& s) { return s.is<HostKernel>(); }) && !launching_step(owned.plan).counts.empty() &&
        !owned.plan.steps[0].is<Evaluation>() && !owned.plan.sections.empty() &&
        owned.plan.sections[0].end - owned.plan.sections[0].first > 1 &&
        !owned.plan.steps.back().is<DeviceLaunches>() && owned.plan.steps.back().program().empty())
      return seed;
  }
  ADD_FAILURE() << "no seed makes such a plan";
  return 11;
}

OwnedPlan plan_of_many_kinds() {
  static const uint32_t seed = seed_of_many_kinds();
  return PlanGenerator(seed).make(8, 128, 2);
}

TEST(PlanValidate, EachRuleRefuses) {
  std::vector<Damage> all = damages_of_plans();
  all.insert(all.end(), damages_of_steps().begin(), damages_of_steps().end());
  all.insert(all.end(), damages_of_maps().begin(), damages_of_maps().end());
  for (const Damage& damage : all) {
    OwnedPlan owned = plan_of_many_kinds();
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

TEST(PlanValidate, PackedElementsAreTensorsByThemselves) {
  OwnedPlan owned = PlanGenerator(11).make(6, 128);
  TensorDesc& t = first_in(owned.plan, StorageKind::constant);
  const auto bytes = static_cast<int64_t>(owned.plan.constants[t.index].bytes);
  t.dtype = DType::i4;
  t.strides.clear();
  t.offset = 0;
  t.dims = {2 * bytes};
  EXPECT_TRUE(validate(owned.plan)) << validate(owned.plan).error().to_string();
  t.dims = {2 * bytes + 1};
  EXPECT_NE(validate(owned.plan).error().message.find("leaves its storage"), std::string::npos);
  t.dims = {2};
  t.offset = 2;
  EXPECT_NE(validate(owned.plan).error().message.find("part of a larger tensor"), std::string::npos);
  t.offset = 0;
  t.strides = {2};
  EXPECT_NE(validate(owned.plan).error().message.find("part of a larger tensor"), std::string::npos);
}

TEST(PlanValidate, NegativeStridesAreWindowsToo) {
  OwnedPlan owned = PlanGenerator(11).make(6, 128);
  TensorDesc& t = first_in(owned.plan, StorageKind::constant);
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
  TensorDesc& t = first_in(plan, StorageKind::constant);
  t.dims = {Expr::symbol(2)};
  EXPECT_TRUE(validate(plan));
  EXPECT_TRUE(check_windows(plan, std::array<int64_t, 3>{1, 10, Expr::kUnbound}));
  EXPECT_TRUE(check_windows(plan, std::array<int64_t, 3>{1, 10, 128}));
  EXPECT_FALSE(check_windows(plan, std::array<int64_t, 3>{1, 10, 129}));
}

}  // namespace
}  // namespace lathe::plan
