// SPDX-License-Identifier: Apache-2.0
// Graphs become plans that compute what the plain evaluation computes.
#include "lowering/engine_fixture.h"
#include "lowering/placement.h"

namespace lathe {
namespace {

// Every graph runs plain (op by op) and native (fused, placed, tuned kernels), twice in one context.
void check(const std::string& text, const std::vector<Dims>& dims, double tolerance = 2e-5) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  ASSERT_TRUE(graph) << graph.error().to_string();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back(random_tensor(graph->inputs()[i]->dtype(), dims[i], static_cast<uint32_t>(i + 1)));
  Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
  ASSERT_TRUE(expected) << expected.error().to_string();
  for (const bool native : {false, true}) {
    SCOPED_TRACE(native ? "native" : "plain");
    const auto engine = build_engine(text, native ? native_options() : plain_options());
    ASSERT_TRUE(engine);
    Result<std::unique_ptr<Context>> context = Context::create(engine);
    ASSERT_TRUE(context);
    for (int run = 0; run < 2; ++run) {
      const std::vector<Tensor> outputs = run_engine(**context, inputs);
      ASSERT_EQ(outputs.size(), expected->size());
      for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], tolerance);
    }
  }
}

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

// Concatenations are written in place, by what makes their parts.
void expect_no_copied_parts(const std::string& text) {
  BuildReport report;
  build_engine(text, native_options(), 2, &report);
  for (const RegionReport& region : report.regions)
    EXPECT_EQ(region.name.find("part"), std::string::npos) << region.name;
}

TEST(Build, PointwiseChain) {
  check(R"(graph "g" {
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
  check(R"(graph "g" {
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
  check(R"(graph "g" {
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

TEST(Build, ConcatIsWrittenInPlace) {
  const std::string text = R"(graph "g" {
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[8, 8, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %w2 = constant{value=f32[16, 8, 3, 3]{~2}}()
    %b = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%a, %w2)
    %c = concat{axis=1}(%a, %b)
    %s, %t = split{axis=1}(%c)
    %u = activation{op=relu}(%t)
    %w3 = constant{value=f32[4, 12, 1, 1]{~3}}()
    %d = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%s, %w3)
    output %d
    output %u
  })";
  check(text, {{2, 8, 6, 6}});
  expect_no_copied_parts(text);
}

// A value of which all slices are joined with others lies in the whole from the start.
TEST(Build, SlicesThatAreJoinedAgainStayInPlace) {
  const std::string text = R"(graph "g" {
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[16, 8, 1, 1]{~1}}()
    %v = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %s, %t = split{axis=1}(%v)
    %w2 = constant{value=f32[8, 8, 3, 3]{~2}}()
    %m = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%t, %w2)
    %a = elementwise{op=add}(%m, %t)
    %c = concat{axis=1}(%s, %t, %a)
    %w3 = constant{value=f32[8, 24, 1, 1]{~3}}()
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%c, %w3)
    output %y
  })";
  check(text, {{2, 8, 6, 6}});
  expect_no_copied_parts(text);
}

// Slices in another order, of a part of the value, or twice, are copied.
TEST(Build, OtherSlicesAreCopied) {
  for (const char* parts : {"%t, %s, %x", "%t, %x, %s", "%s, %x, %x", "%s, %t, %v", "%s, %t, %t"}) {
    SCOPED_TRACE(parts);
    check(std::string(R"(graph "g" {
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[16, 8, 1, 1]{~1}}()
    %v = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %s, %t = split{axis=1}(%v)
    %c = concat{axis=1}()") +
              parts + R"()
    %r = activation{op=relu}(%c)
    output %r
  })",
          {{2, 8, 6, 6}});
  }
}

TEST(Build, ReshapesThatAreJoinedAreCopiedOnce) {
  const std::string text = R"(graph "g" {
    input %x: f32[2, 8, 6, 4]
    %w = constant{value=f32[12, 8, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %b = convolution{stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %shape = constant{value=i64[3]{2, 12, -1}}()
    %f = reshape(%a, %shape)
    %g = reshape(%b, %shape)
    %c = concat{axis=2}(%f, %g)
    %r = activation{op=sigmoid}(%c)
    output %r
  })";
  check(text, {{2, 8, 6, 4}});
  BuildReport report;
  build_engine(text, native_options(), 2, &report);
  EXPECT_EQ(std::count_if(report.regions.begin(), report.regions.end(),
                          [](const RegionReport& region) { return region.kind == "copy"; }),
            3);  // the input, for the convolutions, and the two reshapes
}

TEST(Build, SplitDims) {
  EXPECT_EQ(split_dims({2, 24, 30}, {900, 31, 1}, {2, 24, 5, 6}), (Shape{900, 31, 6, 1}));
  EXPECT_EQ(split_dims({2, 24}, {50, 2}, {1, 2, 4, 1, 6, 1}), (Shape{100, 50, 12, 12, 2, 1}));
  EXPECT_EQ(split_dims({2, 24}, {50, 2}, {48}), std::nullopt);
  EXPECT_EQ(split_dims({2, 24}, {50, 2}, {4, 12}), std::nullopt);
  EXPECT_EQ(split_dims({2}, {1}, {2, 3}), std::nullopt);
  const Expr n = Expr::symbol(0);
  EXPECT_EQ(split_dims({n, 6}, {9, 1}, {n, 2, 3}), (Shape{9, 3, 1}));
}

TEST(Build, ResultsAreWrittenOverDeadOperands) {
  const std::string text = R"(graph "g" {
    input %x: f32[1, 16, 12, 12]
    %w = constant{value=f32[16, 16, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %b = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%a, %w)
    %c = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%b, %w)
    %s = elementwise{op=add}(%c, %a)
    %m = reduce{op=mean, axes=[2, 3]}(%s)
    %g = elementwise{op=mul}(%s, %m)
    %d = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%g, %w)
    output %d
  })";
  check(text, {{1, 16, 12, 12}});
  const auto engine = build_engine(text, native_options());
  const auto context = *Context::create(engine);
  const size_t image = 16 * 12 * 12 * sizeof(float);
  size_t arena = 0;
  for (const plan::Buffer& buffer : engine->plan().buffers)
    arena += static_cast<size_t>(*buffer.bytes.as_constant()) >= image;
  EXPECT_EQ(arena, 4u) << "x and d channels-last, a (also the sum, also the product), b";
}

TEST(Build, MatmulOfOperandsOfDifferentRank) {
  check(R"(graph "g" {
    input %a: f32[2, 3, 4]
    input %b: f32[4, 5]
    %m = matmul(%a, %b)
    output %m
  })",
        {{2, 3, 4}, {4, 5}});
}

// Kernels that run their epilogue in a second pass must not write over its operands.
TEST(Build, VarianceByTwoReductions) {
  check(R"(graph "g" {
    input %x: f32[6, 40]
    %mean = reduce{op=mean, axes=[1]}(%x)
    %mean2 = elementwise{op=mul}(%mean, %mean)
    %square = elementwise{op=mul}(%x, %x)
    %ms = reduce{op=mean, axes=[1]}(%square)
    %var = elementwise{op=sub}(%ms, %mean2)
    output %var
  })",
        {{6, 40}});
}

// The sum must not be written over the row that it has yet to read for others.
TEST(Build, RowsPlusOneOfThem) {
  check(R"(graph "g" {
    input %x: f32[600, 40]
    %begin = constant{value=i64[1]{0}}()
    %end = constant{value=i64[1]{1}}()
    %r = softmax(%x)
    %first = slice(%r, %begin, %end)
    %y = elementwise{op=add}(%r, %first)
    %p = softmax(%y)
    output %p
  })",
        {{600, 40}}, 1e-6);
}

TEST(Build, MatmulReshapeTranspose) {
  check(R"(graph "g" {
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
  check(R"(graph "g" {
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
  for (int64_t n : {1, 3, 8}) check(text, {{n, 4, 5, 5}});
}

TEST(Build, OutputsThatAreInputsConstantsAndTwins) {
  check(R"(graph "g" {
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
  check(R"(graph "g" {
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
  for (const int64_t n : {1, 5, 40}) check(text, {{n, 8}});
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
