// SPDX-License-Identifier: Apache-2.0
// Graphs become plans that compute what the plain evaluation computes.
#include "lowering/engine_fixture.h"
#include "lowering/placement.h"

namespace lathe {
namespace {

// As when none of its kernels compiles.
Matched match_nothing(const Problem&) { return refuse("it takes nothing"); }

// Copies between strided tensors, too: parts of a concatenation, a transposition, a broadcast.
TEST(Build, WithoutAnyKernelEverythingIsEvaluated) {
  const FunctionTactic none("none", match_nothing);
  BuildOptions options = native_options();
  options.tactics = {&none};
  const std::string text = R"(graph "g" {
    input %x: f32[2, 3, s]
    input %y: f32[2, 1, s]
    %shape = constant{value=i64[3]{2, 3, 1}}()
    %e = expand(%y, %shape)
    %c = concat{axis=1}(%x, %y, %e)
    %t = transpose{perm=[2, 0, 1]}(%c)
    %r = activation{op=relu}(%t)
    output %c
    output %t
    output %r
  })";
  BuildReport report;
  const auto engine = build_engine(text, options, 2, &report);
  ASSERT_TRUE(engine);
  for (const RegionReport& region : report.regions) EXPECT_EQ(region.kind, "eval") << region.name;
  const auto strided = [&](const plan::Step& step) {
    return !engine->plan().tensors[step.inputs[0]].strides.empty() ||
           !engine->plan().tensors[step.outputs[0]].strides.empty();
  };
  const std::vector<plan::Step>& steps = engine->plan().steps;
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), strided));
  const auto context = Context::create(engine);
  ASSERT_TRUE(context) << context.error().to_string();
  for (const int64_t s : {5, 0, 1}) {
    const std::vector<Tensor> inputs = {random_tensor(DType::f32, {2, 3, s}, 1),
                                        random_tensor(DType::f32, {2, 1, s}, 2)};
    const auto expected = ir::interpret(*ir::parse_graph(text), inputs);
    ASSERT_TRUE(expected) << expected.error().to_string();
    const std::vector<Tensor> outputs = run_engine(**context, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], 0);
  }
}

TEST(Build, PointwiseChain) {
  check_build(R"(graph "g" {
    input %x: f32[2, 3, 5]
    %c = constant{value=f32[5]{~1}}()
    %a = elementwise{op=mul}(%x, %c)
    %b = activation{op=sigmoid}(%a)
    %d = elementwise{op=add}(%b, %x)
    output %d
  })",
              {{2, 3, 5}});
}

TEST(Build, ConvolutionWithEpilogueAndResidual) {
  check_build(R"(graph "g" {
    input %x: f32[1, 16, 9, 11]
    %w = constant{value=f32[16, 16, 3, 3]{~1}}()
    %bias = constant{value=f32[16]{~2}}()
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w, %bias)
    %s = elementwise{op=add}(%y, %x)
    %r = activation{op=relu}(%s)
    output %r
  })",
              {{1, 16, 9, 11}});
}

TEST(Build, StemThenDepthwiseThenPool) {
  check_build(R"(graph "g" {
    input %x: f32[1, 3, 17, 19]
    %w = constant{value=f32[24, 3, 3, 3]{~1}}()
    %y = convolution{stride=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %a = activation{op=clip, alpha=0, beta=6}(%y)
    %w2 = constant{value=f32[24, 1, 3, 3]{~2}}()
    %z = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=24}(%a, %w2)
    %p = pooling{op=max, window=[3, 3], stride=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%z)
    %g = reduce{op=mean, axes=[2, 3]}(%p)
    %f = flatten(%g)
    output %f
    output %z
  })",
              {{1, 3, 17, 19}});
}

TEST(Build, MatmulOfOperandsOfDifferentRank) {
  check_build(R"(graph "g" {
    input %a: f32[2, 3, 4]
    input %b: f32[4, 5]
    %m = matmul(%a, %b)
    output %m
  })",
              {{2, 3, 4}, {4, 5}});
}

TEST(Build, MatmulReshapeTranspose) {
  check_build(R"(graph "g" {
    input %x: f32[2, 6, 8]
    %w = constant{value=f32[8, 24]{~1}}()
    %b = constant{value=f32[24]{~2}}()
    %m = matmul(%x, %w)
    %a = elementwise{op=add}(%m, %b)
    %shape = constant{value=i64[4]{2, 6, 3, 8}}()
    %r = reshape(%a, %shape)
    %t = transpose{perm=[0, 2, 1, 3]}(%r)
    %k = transpose{perm=[0, 1, 3, 2]}(%t)
    %s = matmul(%t, %k)
    %p = softmax(%s)
    output %p
  })",
              {{2, 6, 8}});
}

// After a convolution the channels are contiguous, before it they are not.
TEST(Build, Normalizations) {
  check_build(R"(graph "g" {
    input %x: f32[2, 12, 5, 7]
    %scale = constant{value=f32[12]{~1}}()
    %bias = constant{value=f32[12]{~2}}()
    %a = instance_normalization{epsilon=1e-3}(%x, %scale, %bias)
    %w = constant{value=f32[12, 12, 1, 1]{~3}}()
    %c = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%a, %w)
    %g = group_normalization{groups=3}(%c, %scale, %bias)
    %r = activation{op=silu}(%g)
    %i = instance_normalization(%r, %scale, %bias)
    %one = group_normalization{groups=1}(%i, %scale, %bias)
    %w2 = constant{value=f32[12, 12, 1, 1]{~4}}()
    %d = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%one, %w2)
    %s = softmax{axis=1}(%d)
    %ls = constant{value=f32[7]{~5}}()
    %l = layer_normalization(%s, %ls)
    %m = rms_normalization{axis=2}(%l, %ls)
    output %r
    output %m
  })",
              {{2, 12, 5, 7}}, 5e-4);
}

TEST(Build, DynamicBatch) {
  const std::string text = R"(graph "g" {
    symbol n in [1, 8]
    input %x: f32[n, 4, 5, 5]
    %w = constant{value=f32[8, 4, 3, 3]{~1}}()
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %a = activation{op=relu}(%y)
    %f = flatten(%a)
    %w2 = constant{value=f32[200, 10]{~2}}()
    %o = matmul(%f, %w2)
    output %o
  })";
  for (int64_t n : {1, 3, 8}) check_build(text, {{n, 4, 5, 5}});
}

TEST(Build, OutputsThatAreInputsConstantsAndTwins) {
  check_build(R"(graph "g" {
    input %x: f32[3, 4]
    %c = constant{value=f32[2]{1, 2}}()
    %y = activation{op=relu}(%x)
    output %x "same"
    output %c "constant"
    output %y "a"
    output %y "b"
  })",
              {{3, 4}});
}

TEST(Build, ConstantsThatHoldNothing) {
  check_build(R"(graph "g" {
    input %x: f32[2]
    %none = constant{value=i64[0]{}}()
    %empty = constant{value=f32[3, 0]{}}()
    %y = activation{op=relu}(%x)
    output %none
    output %empty
    output %y
  })",
              {{2}});
}

// What moves elements by indices, seeks the best ones or makes sequences runs by kernels when sizes are open.
TEST(Build, IndexOpsOfOpenSizesHaveKernels) {
  const std::string text = R"(graph "g" {
    symbol n in [1, 64]
    input %x: f32[n, 8]
    %zero = constant{value=i64[]{0}}()
    %one = constant{value=i64[]{1}}()
    %k = constant{value=i64[1]{3}}()
    %eight = constant{value=i64[]{8}}()
    %values = constant{value=f32[2]{0, 1}}()
    %tuples = constant{value=i64[2, 1]{0, -1}}()
    %columns = constant{value=i64[1, 2]{5, -1}}()
    %sums = cumulative(%x, %one)
    %lower = trilu{upper=false}(%sums, %zero)
    %best, %places = topk(%lower, %k)
    %largest = arg_reduce{axis=1, keepdims=false}(%x)
    %hot = one_hot(%largest, %eight, %values)
    %rows = gather_nd(%hot, %tuples)
    %written = scatter_nd{reduction=add}(%x, %tuples, %rows)
    %pair = constant{value=f32[1, 2]{4, 5}}()
    %all = scatter_elements{axis=1}(%written, %columns, %pair)
    %where = nonzero(%all)
    %shape = shape{end=1}(%x)
    %flat = constant{value=i64[0]{}}()
    %length = reshape(%shape, %flat)
    %numbers = range(%zero, %length, %one)
    output %best
    output %places
    output %all
    output %where
    output %numbers
  })";
  BuildReport report;
  build_engine(text, native_options(), 2, &report);
  for (const RegionReport& region : report.regions) EXPECT_NE(region.kind, "eval") << region.name;
  for (const int64_t n : {1, 5, 40}) check_build(text, {{n, 8}});
}

TEST(Build, ShapesComputedFromValues) {
  const std::string text = R"(graph "g" {
    input %x: f32[3, 4]
    input %shape: i64[2]
    %y = reshape(%x, %shape)
    %z = activation{op=relu}(%y)
    %n = nonzero(%z)
    output %z
    output %n
  })";
  for (const bool native : {false, true}) {
    const auto engine = build_engine(text, native ? native_options() : plain_options());
    ASSERT_TRUE(engine);
    const auto context = *Context::create(engine);
    for (const Dims& dims : {Dims{2, 6}, Dims{12, 1}, Dims{-1, 3}}) {
      const std::vector<Tensor> inputs = {random_tensor(DType::f32, {3, 4}, 5), Tensor::from<int64_t>({2}, dims)};
      const auto expected = *ir::interpret(*ir::parse_graph(text), inputs);
      const auto outputs = run_engine(*context, inputs);
      for (size_t i = 0; i < 2; ++i) expect_close(outputs[i], expected[i], 0);
    }
  }
}

TEST(Build, RefusesBadShapesAndMissingAddresses) {
  const auto engine = build_engine(R"(graph "g" {
    symbol n in [2, 4]
    input %x: f32[n, 3]
    %y = activation{op=relu}(%x)
    output %y
  })",
                                   plain_options());
  ASSERT_TRUE(engine);
  const auto context = *Context::create(engine);
  EXPECT_EQ(context->run().error().code, ErrorCode::binding_missing);
  EXPECT_EQ(context->set_input_dims(0, Dims{5, 3}).error().code, ErrorCode::profile_range);
  EXPECT_EQ(context->set_input_dims(0, Dims{2, 4}).error().code, ErrorCode::binding_invalid);
  EXPECT_EQ(context->set_input_dims(0, Dims{2}).error().code, ErrorCode::binding_invalid);
  ASSERT_TRUE(context->set_input_dims(0, Dims{2, 3}));
  EXPECT_EQ(context->run().error().code, ErrorCode::binding_missing);
}

TEST(Build, SameInputsGiveTheSamePlan) {
  const std::string text = R"(graph "g" {
    input %x: f32[1, 8, 6, 6]
    %w = constant{value=f32[8, 8, 3, 3]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    output %a
  })";
  const auto first = build_engine(text, native_options());
  const auto second = build_engine(text, native_options());
  ASSERT_EQ(first->bytes().size(), second->bytes().size());
  for (size_t i = 0; i < first->bytes().size(); ++i) ASSERT_EQ(first->bytes()[i], second->bytes()[i]) << "byte " << i;
}

TEST(Build, ATimingCacheReproducesThePlan) {
  const std::string text = R"(graph "g" {
    input %x: f32[1, 32, 14, 14]
    %w = constant{value=f32[48, 32, 3, 3]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    output %a
  })";
  TimingCache cache;
  BuildOptions options = native_options(1);
  options.tuner.budget_seconds = 5;
  options.tuner.device = test_device(1);
  options.tuner.cache = &cache;
  BuildReport first, second;
  const auto measured = build_engine(text, options, 1, &first);
  const auto cached = build_engine(text, options, 1, &second);
  EXPECT_GT(first.tuned, 0);
  EXPECT_EQ(second.tuned, 0);
  EXPECT_GT(second.from_cache, 0);
  EXPECT_TRUE(std::ranges::equal(measured->bytes(), cached->bytes()));
  options.tuner.timing_key = "another machine";  // nothing stale may match
  BuildReport other;
  build_engine(text, options, 1, &other);
  EXPECT_EQ(other.from_cache, 0);
}

}  // namespace
}  // namespace lathe
