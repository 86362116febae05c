// SPDX-License-Identifier: Apache-2.0
// Sizes that depend on data, through chains such as detectors have, against the plain evaluation.
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

void expect_as_interpreted(const std::string& text, const std::vector<std::vector<Tensor>>& runs) {
  for (const bool native : {false, true}) {
    SCOPED_TRACE(native ? "kernels" : "plain evaluations");
    const auto engine = build_engine(text, native ? native_options() : plain_options());
    ASSERT_TRUE(engine);
    const auto context = *Context::create(engine);
    for (const std::vector<Tensor>& inputs : runs) {
      const auto expected = *ir::interpret(*ir::parse_graph(text), inputs);
      const auto outputs = run_engine(*context, inputs);
      ASSERT_EQ(outputs.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) expect_close(outputs[i], expected[i], 1e-6);
    }
  }
}

Tensor scores(std::initializer_list<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

// Two lists of the candidates above a threshold, the best of each, joined: what is joined is an output, too.
TEST(DataDependent, CandidatesOfTwoListsAreJoined) {
  expect_as_interpreted(R"(graph "g" {
    symbol n in [1, 64]
    input %x: f32[n]
    input %boxes: f32[n, 4]
    %zero = constant{value=f32[]{0}}()
    %two = constant{value=i64[1]{2}}()
    %axis = constant{value=i64[1]{0}}()
    %is_above = elementwise{op=greater}(%x, %zero)
    %is_below = elementwise{op=less}(%x, %zero)
    %above = nonzero(%is_above)
    %below = nonzero(%is_below)
    %flat_above = squeeze(%above, %axis)
    %flat_below = squeeze(%below, %axis)
    %x_above = gather(%x, %flat_above)
    %x_below = gather(%x, %flat_below)
    %count = shape(%x_above)
    %pair = concat{axis=0}(%count, %two)
    %least = reduce{op=min, keepdims=false}(%pair)
    %best, %places = topk(%x_above, %least)
    %chosen = gather(%flat_above, %places)
    %boxes_above = gather(%boxes, %chosen)
    %boxes_below = gather(%boxes, %flat_below)
    %all = concat{axis=0}(%boxes_above, %boxes_below, %boxes)
    %values = concat{axis=0}(%best, %x_below)
    %twice = elementwise{op=add}(%values, %values)
    output %all
    output %values
    output %twice
  })",
                        {{scores({1, -2, 3, 2}), random_tensor(DType::f32, {4, 4}, 1)},
                         {scores({-1, -2, -3}), random_tensor(DType::f32, {3, 4}, 2)},
                         {scores({5, 4, 3, 2, 1, -7}), random_tensor(DType::f32, {6, 4}, 3)},
                         {scores({0}), random_tensor(DType::f32, {1, 4}, 4)}});
}

TEST(DataDependent, BoxesThatRemainAreGathered) {
  expect_as_interpreted(R"(graph "g" {
    symbol n in [1, 64]
    input %scores: f32[n]
    input %boxes: f32[n, 4]
    %lead = constant{value=i64[1]{0}}()
    %leads = constant{value=i64[2]{0, 1}}()
    %most = constant{value=i64[1]{9223372036854775807}}()
    %iou = constant{value=f32[1]{0.2}}()
    %two = constant{value=i64[]{2}}()
    %b = unsqueeze(%boxes, %lead)
    %s = unsqueeze(%scores, %leads)
    %found = non_max_suppression{center_point_box=true}(%b, %s, %most, %iou)
    %column = gather{axis=1}(%found, %two)
    %kept = gather(%boxes, %column)
    %kept_scores = gather(%scores, %column)
    output %found
    output %kept
    output %kept_scores
  })",
                        {{scores({1, -2, 3, 2}), random_tensor(DType::f32, {4, 4}, 1)},
                         {random_tensor(DType::f32, {60}, 5), random_tensor(DType::f32, {60, 4}, 6)},
                         {scores({NAN}), random_tensor(DType::f32, {1, 4}, 2)}});
}

// The step that finds boxes sorts them in its workspace; the plain evaluation needs none.
TEST(DataDependent, CountedStepsKeepToTheWorkspaceLimit) {
  const ir::Graph graph = *ir::parse_graph(R"(graph "g" {
    symbol n in [1, 64]
    input %boxes: f32[1, n, 4]
    input %scores: f32[1, 1, n]
    %most = constant{value=i64[1]{8}}()
    %found = non_max_suppression{}(%boxes, %scores, %most)
    output %found
  })");
  for (const bool limited : {false, true}) {
    BuildOptions options = native_options();
    options.tuner.device = test_device();
    if (limited) options.tuner.most_workspace = 0;
    const auto built = build_plan(graph.clone(), options);
    ASSERT_TRUE(built) << built.error().to_string();
    const std::vector<RegionReport>& regions = (*built)->report.regions;
    EXPECT_EQ((*built)->plan.steps[0].kernel(), limited ? "eval" : "non_max_suppression");
    if (!limited) continue;
    ASSERT_FALSE(regions.empty());
    EXPECT_NE(fmt::format("{}", fmt::join(regions[0].refusals, "; ")).find("bytes of workspace, 0 are allowed"),
              std::string::npos);
  }
}

// A condition on the data chooses between an empty tensor and one whose size the data decide.
TEST(DataDependent, OneOfTwoSizesIsChosen) {
  expect_as_interpreted(R"(graph "g" {
    symbol n in [1, 64]
    input %x: f32[n]
    %empty = constant{value=i64[1, 0]{}}()
    %none = constant{value=i64[]{0}}()
    %at = nonzero(%x)
    %size = size(%at)
    %is_empty = elementwise{op=equal}(%size, %none)
    %y = choose(%is_empty, %empty, %at)
    %z = elementwise{op=add}(%y, %none)
    output %y
    output %z
  })",
                        {{scores({1, 0, 3, 2})}, {scores({0, 0})}, {scores({7})}});
}

TEST(DataDependent, AnOutputsMemoryIsAskedForOnce) {
  const auto engine = build_engine(R"(graph "g" {
    input %x: f32[4]
    %a = nonzero(%x)
    %y = concat{axis=1}(%a, %a, %a)
    output %y
  })",
                                   native_options());
  ASSERT_TRUE(engine);
  const auto context = *Context::create(engine);
  const Tensor x = Tensor::of<float>({4}, {1, 0, 2, 3});
  std::vector<int64_t> memory(16);
  int asked = 0;
  ASSERT_TRUE(context->set_address(0, const_cast<void*>(x.data())));
  ASSERT_TRUE(context->set_output_allocator(1, [&](size_t bytes, const Dims& dims) {
    ++asked;
    EXPECT_EQ(bytes, 72u);
    EXPECT_EQ(dims, (Dims{1, 9}));
    return static_cast<void*>(memory.data());
  }));
  for (int run = 1; run <= 2; ++run) {
    const Result<> ran = context->run();
    ASSERT_TRUE(ran) << ran.error().to_string();
    EXPECT_EQ(asked, run);
    EXPECT_EQ(std::vector<int64_t>(memory.begin(), memory.begin() + 9),
              (std::vector<int64_t>{0, 2, 3, 0, 2, 3, 0, 2, 3}));
  }
}

TEST(DataDependent, RegionsOfOtherCountsEachRun) {
  expect_as_interpreted(
      R"(graph "g" {
    symbol n in [0, 64]
    input %x: f32[2, 5, 8, 9]
    input %regions: f32[n, 4]
    input %images: i64[n]
    %y = roi_align{height=3, width=2, spatial_scale=2}(%x, %regions, %images)
    %z = roi_align{mode=max, height=2, width=2, sampling_ratio=2, half_pixel=false}(%x, %regions, %images)
    output %y
    output %z
  })",
      {{random_tensor(DType::f32, {2, 5, 8, 9}, 1), random_tensor(DType::f32, {3, 4}, 2),
        Tensor::of<int64_t>({3}, {1, 0, 1})},
       {random_tensor(DType::f32, {2, 5, 8, 9}, 1), Tensor::of<float>({1, 4}, {-1, 0.5, 4, 3}),
        Tensor::of<int64_t>({1}, {1})},
       {random_tensor(DType::f32, {2, 5, 8, 9}, 1), Tensor::of<float>({0, 4}, {}), Tensor::of<int64_t>({0}, {})}});
}

// A plan is believed in nothing: what an evaluation makes must be what the plan says, and lie where there is room.
TEST(DataDependent, EvaluationsThatDoNotFitTheirPlanAreRefused) {
  struct Damage {
    const char* expected;
    std::function<void(plan::Plan&, plan::TensorDesc&)> apply;  // to the list that the first step makes
  };
  for (const Damage& damage : std::vector<Damage>{{"came out as i64 of rank 2",
                                                   [](plan::Plan&, plan::TensorDesc&list) { list.dtype = DType::i8; }},
                                                  {"expects i64 of rank 1",
                                                   [](plan::Plan&, plan::TensorDesc&list) {
                                                     list.dims.erase(list.dims.begin());
                                                   }},
                                                  {"not dense",
                                                   [](plan::Plan&, plan::TensorDesc&list) {
                                                     list.strides = {0, 0};
                                                   }},
                                                  {"that no step has computed",
                                                   [](plan::Plan&plan, plan::TensorDesc&list) {
                                                     list.offset =
                                                         Expr::symbol(static_cast<SymbolId>(plan.symbols.size()));
                                                     plan.symbols.push_back(
                                                         {"never", SymbolSource::computed, 0, 0, {0, 8}});
                                                     plan.profiles[0].symbols.push_back({0, 0, 8});
                                                   }},
                                                  {"needs 24 bytes of a storage of 8",
                                                   [](plan::Plan&plan, plan::TensorDesc&list) {
                                                     list.storage = plan::StorageKind::arena;
                                                     list.index = static_cast<uint32_t>(plan.buffers.size());
                                                     plan.buffers.push_back(
                                                         {8, 0, static_cast<uint32_t>(plan.steps.size() - 1)});
                                                   }}}) {
    SCOPED_TRACE(damage.expected);
    const auto built = build_plan(*ir::parse_graph(R"(graph "g" {
      input %x: f32[4]
      %a = nonzero(%x)
      %y = elementwise{op=add}(%a, %a)
      output %y
    })"),
                                  plain_options());
    ASSERT_TRUE(built) << built.error().to_string();
    plan::Plan& plan = (*built)->plan;
    damage.apply(plan, plan.tensors[plan.steps[0].outputs[0]]);
    const auto bytes = plan::write_plan(plan);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    const auto engine = Engine::load(*bytes, nullptr, {test_device(1), {}});
    std::vector<std::byte> memory(64);
    const Tensor x = Tensor::of<float>({4}, {1, 0, 2, 3});
    const auto run = [&]() -> Result<> {
      if (!engine) return fail(engine.error());
      LATHE_ASSIGN(const auto context, Context::create(*engine));
      LATHE_TRY(context->set_address(0, const_cast<void*>(x.data())));
      LATHE_TRY(context->set_output_allocator(1, [&](size_t, const Dims&) { return memory.data(); }));
      return context->run();
    };
    const Result<> ran = run();
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, ErrorCode::plan_malformed);
    EXPECT_NE(ran.error().message.find(damage.expected), std::string::npos) << ran.error().message;
  }
}

// Weights are packed for the rows that they have, though how many columns meet them is found out only while running.
TEST(DataDependent, WeightsMeetColumnsOfComputedNumber) {
  const auto network = [](std::string_view product) {
    return fmt::format(R"(graph "g" {{
    symbol n in [1, 8]
    input %x: f32[n, 2, 3, 4]
    %dims = shape{{end=3}}(%x)
    %numbers = cast{{to=f32}}(%dims)
    %leading = cast{{to=i64}}(%numbers)
    %columns = constant{{value=i64[1]{{4}}}}()
    %sizes = concat{{axis=0}}(%leading, %columns)
    %a = reshape(%x, %sizes)
    {}
    output %y
  }})",
                       product);
  };
  const std::string_view rows = "{0.5, 1, -2, 3, -1, 0.25, 4, -3, 2, 1, -0.5, 0}";
  for (const std::string& product :
       {fmt::format("%w = constant{{value=f32[4, 3]{}}}()\n%y = matmul(%a, %w)", rows),
        fmt::format("%w = constant{{value=f32[3, 4]{}}}()\n%y = matmul{{transpose_b=true}}(%a, %w)", rows),
        fmt::format("%w = constant{{value=f32[3, 4]{}}}()\n%y = matmul{{transpose_a=true}}(%a, %w)", rows),
        fmt::format("%w = constant{{value=f32[6, 2, 1, 1]{}}}()\n%y = convolution{{stride=[1, 1], pads_begin=[0, 0], "
                    "pads_end=[0, 0], dilation=[1, 1]}}(%a, %w)",
                    rows)}) {
    SCOPED_TRACE(product);
    expect_as_interpreted(network(product),
                          {{random_tensor(DType::f32, {2, 2, 3, 4}, 1)}, {random_tensor(DType::f32, {5, 2, 3, 4}, 2)}});
  }
}

// Nodes without a seed are neither computed while building nor merged; with one they are constants.
TEST(DataDependent, RandomNumbersWithoutSeedDifferFromRunToRun) {
  const auto engine = build_engine(R"(graph "g" {
    %shape = constant{value=i64[1]{8}}()
    %a = fresh_seed{stream=1}()
    %b = fresh_seed{stream=1}()
    %seed = constant{value=i64[1]{3}}()
    %x = random(%shape, %a)
    %y = random(%shape, %b)
    %z = random{op=normal, b=1}(%shape, %seed)
    output %x
    output %y
    output %z
  })",
                                   native_options());
  ASSERT_TRUE(engine);
  const auto context = *Context::create(engine);
  const auto first = run_engine(*context, {}), second = run_engine(*context, {});
  EXPECT_FALSE(identical(first[0], second[0]));
  EXPECT_FALSE(identical(first[0], first[1]));
  EXPECT_TRUE(identical(first[2], second[2]));
}

}  // namespace
}  // namespace lathe
