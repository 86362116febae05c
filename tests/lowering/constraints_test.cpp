// SPDX-License-Identifier: Apache-2.0
// What shape rules rely on is proven, narrows a symbol, or is checked when shapes are set; never taken on trust.
#include "lowering/checked_engine.h"

namespace lathe {
namespace {

constexpr const char* kBatchOfOne = R"(graph "g" {
  input %x: f32[batch, 8, 4]
  %to = constant{value=i64[4]{1, 2, 4, 4}}()
  %windows = reshape(%x, %to)
  %r = activation{op=relu}(%windows)
  output %r
})";

TEST(Constraints, ProfileThatTheNetworkDoesNotHoldForIsRefused) {
  const Error error = build_error(kBatchOfOne, {profile({{"x", {{1, 8, 4}, {1, 8, 4}, {2, 8, 4}}}})});
  EXPECT_EQ(error.code, ErrorCode::profile_invalid);
  for (const char* word : {"profile 0", "dimension 0 of input 'x'", "1 to 2", "reshape 'windows'", "32*batch = 32"})
    EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
}

TEST(Constraints, EveryProfileIsJudged) {
  const ProfileShapes one = profile({{"x", {{1, 8, 4}, {1, 8, 4}, {1, 8, 4}}}});
  const Error error = build_error(kBatchOfOne, {one, profile({{"x", {{2, 8, 4}, {2, 8, 4}, {2, 8, 4}}}})});
  EXPECT_NE(error.message.find("profile 1"), std::string::npos) << error.message;
}

TEST(Constraints, SizesThatContradictTheNetworkNameTheNode) {
  const Error error = build_error(kBatchOfOne, {profile({{"x", {{2, 8, 4}, {2, 8, 4}, {2, 8, 4}}}})});
  EXPECT_EQ(error.code, ErrorCode::shape_mismatch);
  EXPECT_NE(error.message.find("reshape 'windows'"), std::string::npos) << error.message;
}

TEST(Constraints, WithoutProfileTheSymbolIsNarrowed) {
  const Checked checked = build_checked(kBatchOfOne);
  EXPECT_EQ(checked.engine->plan().tensors[checked.engine->plan().bindings[0].tensor].dims[0], Expr(1));
  EXPECT_TRUE(checked.engine->plan().constraints.empty());
  EXPECT_EQ(*checked.run({{1, 8, 4}}), std::vector<Dims>({{1, 2, 4, 4}}));
  EXPECT_FALSE(checked.run({{2, 8, 4}}));
}

// An Add of 49 and 49 * batch holds for batch 1 only, for no profile lets 49 * batch be 1.
TEST(Constraints, BroadcastsNarrow) {
  const std::string text = R"(graph "g" {
    input %x: f32[batch, 49]
    %flat = constant{value=i64[1]{-1}}()
    %row = reshape(%x, %flat)
    %c = constant{value=f32[49]{~1}}()
    %sum = elementwise{op=add}(%row, %c)
    output %sum
  })";
  const Error error = build_error(text, {profile({{"x", {{1, 49}, {2, 49}, {4, 49}}}})});
  EXPECT_EQ(error.code, ErrorCode::profile_invalid);
  EXPECT_NE(error.message.find("elementwise 'sum' needs 49*batch = 49"), std::string::npos) << error.message;
  EXPECT_TRUE(build_checked(text, {profile({{"x", {{1, 49}, {1, 49}, {1, 49}}}})}).run({{1, 49}}));
}

TEST(Constraints, OperandsMustBroadcastWhenShapesAreSet) {
  const Checked checked = build_checked(R"(graph "g" {
    input %x: f32[2, s]
    input %y: f32[2, t]
    %sum = elementwise{op=add}(%x, %y)
    output %sum
  })",
                                        {profile({{"x", {{2, 1}, {2, 4}, {2, 9}}}, {"y", {{2, 1}, {2, 4}, {2, 9}}}})});
  EXPECT_EQ(*checked.run({{2, 5}, {2, 5}}), std::vector<Dims>({{2, 5}}));
  EXPECT_EQ(*checked.run({{2, 5}, {2, 1}}), std::vector<Dims>({{2, 5}}));
  EXPECT_EQ(*checked.run({{2, 1}, {2, 3}}), std::vector<Dims>({{2, 3}}));
  expect_refused(checked.run({{2, 5}, {2, 3}}), {"elementwise 'sum'", "s = t", "5 and 3"});
}

// With a profile of sizes that some rule does not hold for, either the build is refused or the run is.
TEST(Constraints, EachRuleStatesWhatItNeeds) {
  struct Row {
    const char* body;
    Dims good, bad;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"%r = matmul(%x, %w)", {2, 3, 4}, {2, 3, 5}, {"matmul 'r'", "u = 4"}},
      {"%r = concat{axis=1}(%x, %c)", {2, 3, 4}, {2, 3, 6}, {"concat 'r'", "s = 2"}},
      {"%to = constant{value=i64[2]{-1, 8}}() %r = reshape(%x, %to)", {2, 2, 4}, {1, 1, 4}, {"reshape 'r'", "mod("}},
      {"%k = constant{value=i64[1]{3}}() %r, %i = topk{axis=2}(%x, %k)", {2, 3, 4}, {2, 3, 2}, {"topk", "3 <= u"}},
      {"%axes = constant{value=i64[1]{0}}() %r = squeeze(%x, %axes)", {1, 3, 4}, {2, 3, 4}, {"squeeze 'r'", "s = 1"}},
      {"%sizes = constant{value=i64[2]{1, 3}}() %r, %q = split{axis=2}(%x, %sizes)",
       {2, 3, 4},
       {2, 3, 5},
       {"split", "4 = u"}},
      {"%r = pooling{window=[3], stride=[1], pads_begin=[0], pads_end=[0], dilation=[1]}(%x)",
       {2, 3, 4},
       {2, 3, 1},
       {"pooling 'r'", "1 <= u - 2"}},
      {"%r = elementwise{op=add}(%x, %c)", {2, 3, 4}, {3, 3, 4}, {"elementwise 'r'", "s = 2"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.body);
    BuildOptions options = native_options();
    options.profiles = {profile({{"x", {{1, 1, 1}, row.good, {9, 9, 9}}}})};
    Result<ir::Graph> graph = ir::parse_graph(fmt::format(R"(graph "g" {{
      input %x: f32[s, t, u]
      %w = constant{{value=f32[4, 5]{{~1}}}}()
      %c = constant{{value=f32[2, 1, 4]{{~1}}}}()
      {}
      output %r
    }})",
                                                          row.body));
    ASSERT_TRUE(graph) << graph.error().to_string();
    const Result<std::unique_ptr<BuiltPlan>> built = build_plan(std::move(*graph), options);
    std::string message = built ? "" : built.error().message;
    if (built) {
      const Checked checked{load_engine(*plan::write_plan((*built)->plan), test_device())};
      const Result<std::vector<Dims>> good = checked.run({row.good}), bad = checked.run({row.bad});
      EXPECT_TRUE(good) << good.error().to_string();
      ASSERT_FALSE(bad);
      EXPECT_EQ(bad.error().code, ErrorCode::shapes_inconsistent);
      message = bad.error().message;
    }
    for (const std::string& word : row.words) EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

// How many elements are not 0, only running can tell: the check comes with the number.
TEST(Constraints, ComputedSizesAreCheckedWhileRunning) {
  const std::string text = R"(graph "g" {
    input %x: f32[n]
    %found = nonzero(%x)
    %to = constant{value=i64[2]{2, -1}}()
    %pairs = reshape(%found, %to)
    output %pairs
  })";
  const Checked checked = build_checked(text);
  EXPECT_EQ(*checked.run({{4}}), std::vector<Dims>({{2, 2}}));
  const Result<std::vector<Dims>> odd = checked.run({{5}});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.error().message.find("pairs"), std::string::npos) << odd.error().message;
}

// How many starts there are is only known while running, but as many as there are ends.
TEST(Constraints, ListsOfASliceAreEquallyLong) {
  const Checked checked = build_checked(R"(graph "g" {
    input %x: f32[n]
    input %table: f32[8, 2]
    %found = nonzero(%x)
    %flat = constant{value=i64[1]{-1}}()
    %starts = reshape(%found, %flat)
    %ends = constant{value=i64[1]{8}}()
    %rows = slice(%table, %starts, %ends)
    output %rows
  })");
  EXPECT_EQ(*checked.run({{1}, {8, 2}}), std::vector<Dims>({{8, 2}}));
  const Result<std::vector<Dims>> several = checked.run({{5}, {8, 2}});
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message.find("slice 'rows'"), std::string::npos) << several.error().message;
}

TEST(Constraints, OptimumThatDoesNotFitIsRefused) {
  const Error error = build_error(R"(graph "g" {
    input %x: f32[1, 1, h, 4]
    %y = space_to_depth{block=2}(%x)
    output %y
  })",
                                  {profile({{"x", {{1, 1, 2, 4}, {1, 1, 5, 4}, {1, 1, 8, 4}}}})});
  EXPECT_EQ(error.code, ErrorCode::profile_invalid);
  EXPECT_NE(error.message.find("space_to_depth 'y' needs mod(h, 2) = 0"), std::string::npos) << error.message;
}

// A profile narrows s to at most 8: the slice's length, min(s, 8), becomes s, and what follows must hear of it.
TEST(Constraints, NarrowedRangesAreInferredAnew) {
  const Checked checked = build_checked(R"(graph "g" {
    input %x: f32[1, s, 4]
    %table = constant{value=f32[1, 8, 4]{~1}}()
    %dims = shape{start=1, end=2}(%x)
    %zero = constant{value=i64[1]{0}}()
    %one = constant{value=i64[1]{1}}()
    %rows = slice(%table, %zero, %dims, %one)
    %sum = elementwise{op=add}(%x, %rows)
    output %sum
  })",
                                        {profile({{"x", {{1, 1, 4}, {1, 4, 4}, {1, 8, 4}}}})});
  ASSERT_TRUE(checked.engine);
  EXPECT_TRUE(checked.engine->plan().constraints.empty());
  for (const int64_t s : {1, 3, 8}) EXPECT_EQ(*checked.run({{1, s, 4}}), std::vector<Dims>({{1, s, 4}}));
}

// Symbols name the input that gives their value by its place, which changes when an input before it is removed.
TEST(Constraints, SymbolsFollowTheirInputs) {
  ir::Graph graph = *ir::parse_graph(R"(graph "g" {
    input %unused: i64[2]
    input %none: f32[n]
    input %x: f32[n, m]
    %y = elementwise{op=add}(%x, %x)
    output %y
  })");
  graph.remove_input(graph.inputs()[0]);
  graph.remove_input(graph.inputs()[0]);
  BuildOptions options = native_options();
  options.profiles = {profile({{"x", {{1, 4}, {2, 4}, {8, 4}}}})};
  const auto built = build_plan(std::move(graph), options);
  ASSERT_TRUE(built) << built.error().to_string();
  ASSERT_EQ((*built)->plan.symbols.size(), 1u);
  EXPECT_EQ((*built)->plan.symbols[0].tensor, 0u);
  EXPECT_EQ((*built)->plan.profiles[0].symbols[0].max, 8);
}

// A symbol that several inputs have is defined by the first of them that has it still.
TEST(Constraints, SymbolsFollowInputsThatChangeTheirType) {
  ir::Graph graph = *ir::parse_graph(R"(graph "g" {
    input %x: f32[n]
    input %y: f32[n]
    %z = activation{op=relu}(%y)
    output %z
  })");
  ir::Value* x = graph.inputs()[0];
  const ValueType open = x->type();
  graph.set_input_type(x, {DType::f32, {Expr(5)}});
  ASSERT_TRUE(graph.infer_all());
  EXPECT_EQ(graph.symbols()[0].tensor, 1u);
  BuildOptions options = native_options();
  options.profiles = {profile({{"y", {{2}, {3}, {8}}}})};
  const auto built = build_plan(graph.clone(), options);
  ASSERT_TRUE(built) << built.error().to_string();
  ASSERT_EQ((*built)->plan.symbols.size(), 1u);
  EXPECT_EQ((*built)->plan.symbols[0].tensor, 1u);
  EXPECT_EQ((*built)->plan.profiles[0].symbols[0].max, 8);
  graph.set_input_type(x, open);
  EXPECT_EQ(graph.symbols()[0].tensor, 0u);
}

constexpr const char* kSharedSymbol = R"(graph "g" {
  input %x: f32[n, 4]
  input %y: f32[n, 4]
  %z = elementwise{op=add}(%x, %y)
  output %z
})";

Dims range_of_shared(std::map<std::string, ProfileShapes::Input> inputs) {
  const Checked checked = build_checked(kSharedSymbol, {profile(std::move(inputs))});
  if (!checked.engine) return {};
  const plan::SymbolProfile& range = checked.engine->plan().profiles[0].symbols[0];
  return {range.min, range.opt, range.max};
}

TEST(Constraints, ProfilesOfInputsWithTheSameSymbolMeet) {
  EXPECT_EQ(range_of_shared({{"x", {{1, 4}, {6, 4}, {8, 4}}}, {"y", {{2, 4}, {4, 4}, {5, 4}}}}), (Dims{2, 5, 5}));
  EXPECT_EQ(range_of_shared({{"y", {{2, 4}, {4, 4}, {16, 4}}}}), (Dims{2, 4, 16}));
}

TEST(Constraints, ProfilesOfInputsWithTheSameSymbolNeedACommonSize) {
  const Error error =
      build_error(kSharedSymbol, {profile({{"x", {{5, 4}, {6, 4}, {8, 4}}}, {"y", {{1, 4}, {2, 4}, {4, 4}}}})});
  EXPECT_EQ(error.code, ErrorCode::profile_invalid);
  for (const char* word : {"profile 0", "'n'", "input 'x'", "5 to 8", "input 'y'", "1 to 4"})
    EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
}

TEST(Constraints, ProfilesGiveSizesForEachOpenInput) {
  constexpr const char* kTwoInputs = R"(graph "g" {
    input %weights: f32[4, 2]
    input %x: f32[n, 4]
    input %y: f32[m, 2]
    %product = matmul(%x, %weights)
    %z = concat{axis=0}(%product, %y)
    output %z
  })";
  const ProfileShapes::Input x = {{1, 4}, {2, 4}, {8, 4}}, y = {{1, 2}, {2, 2}, {8, 2}};
  const std::pair<ProfileShapes, const char*> missing[] = {
      {profile({}), "'x'"}, {profile({{"y", y}}), "'x'"}, {profile({{"x", x}}), "'y'"}};
  for (const auto& [incomplete, input] : missing) {
    const Error error = build_error(kTwoInputs, {profile({{"x", x}, {"y", y}}), incomplete});
    EXPECT_EQ(error.code, ErrorCode::profile_invalid) << error.to_string();
    for (const char* word : {"profile 1", input, "min, opt and max"})
      EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
  }
  EXPECT_TRUE(build_checked(kTwoInputs, {profile({{"x", x}, {"y", y}})}).engine);
  EXPECT_TRUE(build_checked(kTwoInputs).engine);
}

// m rows cannot hold 12*n elements when m is 0.
TEST(Constraints, OptimumWithoutAValueIsRefused) {
  const Error error = build_error(R"(graph "g" {
    input %x: f32[n, 12]
    input %y: f32[m]
    %rows = shape{start=0, end=1}(%y)
    %rest = constant{value=i64[1]{-1}}()
    %to = concat{axis=0}(%rows, %rest)
    %z = reshape{allow_zero=true}(%x, %to)
    output %z
  })",
                                  {profile({{"x", {{1, 12}, {2, 12}, {4, 12}}}, {"y", {{0}, {0}, {4}}}})});
  EXPECT_EQ(error.code, ErrorCode::profile_invalid) << error.to_string();
  EXPECT_NE(error.message.find("no value"), std::string::npos) << error.message;
}

TEST(Constraints, ShapeInputsWithoutAddressAreMissed) {
  const auto engine = build_checked(R"(graph "g" {
    input %x: f32[8]
    input %dims: i64[2]
    %y = reshape(%x, %dims)
    output %y
  })",
                                    {profile({{"dims", {{1, 1}, {2, 4}, {8, 8}, true}}})})
                          .engine;
  ASSERT_TRUE(engine);
  ASSERT_TRUE(engine->plan().bindings[1].is_shape_tensor);
  const auto context = *Context::create(engine);
  const std::vector<Tensor> inputs = {random_tensor(DType::f32, {8}, 1), Tensor::of<int64_t>({2}, {4, 2})};
  EXPECT_EQ(run_engine(*context, inputs)[0].dims(), (Dims{4, 2}));
  ASSERT_TRUE(context->set_address(1, nullptr));
  const Result<> ran = context->run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::binding_missing);
}

}  // namespace
}  // namespace lathe
