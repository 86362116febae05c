// SPDX-License-Identifier: Apache-2.0
// What exporters write for open sizes, small: chains of shape arithmetic that only hold, or only have bounded
// dimensions, within the sizes of a profile that is known after the graph is.
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

// Builds for these profiles, runs at these sizes of the only floating input, and compares with the plain evaluation.
void check_sizes(const std::string& text, const ProfileShapes& profile, const std::vector<Dims>& sizes) {
  BuildOptions options = native_options();
  options.profiles = {profile};
  const std::shared_ptr<const Engine> engine = build_engine(text, options);
  ASSERT_TRUE(engine);
  const Result<ir::Graph> graph = ir::parse_graph(text);
  for (const Dims& dims : sizes) {
    SCOPED_TRACE(testing::PrintToString(dims));
    const std::vector<Tensor> inputs = {random_tensor(graph->inputs()[0]->dtype(), dims, 1)};
    const Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
    ASSERT_TRUE(expected) << expected.error().to_string();
    Result<std::unique_ptr<Context>> context = Context::create(engine);
    ASSERT_TRUE(context);
    const std::vector<Tensor> outputs = run_engine(**context, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], 2e-5);
  }
}

// BERT, ALBERT, DistilBERT, ELECTRA: a table of 128 positions is cut to the length, which no profile lets be longer.
TEST(ExportedShapes, PositionsAreCutToTheLength) {
  check_sizes(R"(graph "g" {
    input %x: f32[n, s, 4]
    %positions = constant{value=f32[1, 128, 4]{~1}}()
    %shape = shape(%x)
    %one = constant{value=i64[1]{1}}()
    %zero = constant{value=i64[1]{0}}()
    %length = gather(%shape, %one)
    %cut = slice(%positions, %zero, %length, %one)
    %y = elementwise{op=add}(%x, %cut)
    output %y
  })",
              {{{"x", {{1, 1, 4}, {2, 16, 4}, {3, 128, 4}}}}}, {{1, 1, 4}, {3, 128, 4}, {2, 77, 4}});
}

// The logits of a decoder's last token, as exporters write it: all that one token alone is needed of has one row, from
// the last attention's queries on.
TEST(ExportedShapes, TheLastTokenIsScoredAlone) {
  const auto body = [](const std::string& last) {
    return R"(graph "g" {
    input %x: f32[n, s, 16]
    %w = constant{value=f32[16, 16]{~1}}()
    %g = constant{value=f32[16]{~2}}()
    %heads = constant{value=i64[4]{0, 0, 2, 8}}()
    %merged = constant{value=i64[3]{0, 0, 16}}()
    %q = matmul(%x, %w)
    %qh = reshape(%q, %heads)
    %qt = transpose{perm=[0, 2, 1, 3]}(%qh)
    %xh = reshape(%x, %heads)
    %xt = transpose{perm=[0, 2, 1, 3]}(%xh)
    %a = attention{scale=0.25, causal=true}(%qt, %xt, %xt)
    %at = transpose{perm=[0, 2, 1, 3]}(%a)
    %m = reshape(%at, %merged)
    %c = rms_normalization(%m, %g)
    %shape = shape(%c)
    %one = constant{value=i64[]{1}}()
    %ones = constant{value=i64[1]{1}}()
    %back = constant{value=i64[]{-1}}()
    %length = gather(%shape, %one)
    %lengths = gather(%shape, %ones)
    %number = elementwise{op=sub}(%length, %one)
    %numbers = elementwise{op=sub}(%lengths, %ones)
    )" + last +
           "\n    output %y\n  }";
  };
  for (const std::string last : {"%y = gather{axis=1}(%c, %number)", "%y = gather{axis=1}(%c, %back)",
                                 "%y = slice(%c, %numbers, %lengths, %ones)",
                                 "%l = slice(%c, %numbers, %lengths, %ones)\n    %y = squeeze(%l, %ones)"}) {
    SCOPED_TRACE(last);
    const ProfileShapes profile = {{{"x", {{1, 1, 16}, {2, 7, 16}, {3, 64, 16}}}}};
    check_sizes(body(last), profile, {{1, 1, 16}, {3, 64, 16}, {2, 33, 16}});
    BuildOptions options = native_options();
    options.profiles = {profile};
    const std::shared_ptr<const Engine> engine = build_engine(body(last), options);
    ASSERT_TRUE(engine);
    std::vector<std::string> of_all;  // steps that write a row for each token
    for (const plan::Step& step : engine->plan().steps)
      for (const plan::TensorId id : step.outputs)
        if (std::ranges::count(engine->plan().tensors[id].dims, Expr::symbol(1)) > 0) of_all.emplace_back(step.name);
    EXPECT_EQ(of_all, std::vector<std::string>{"xh + xt"}) << "the keys, and values";
  }
}

// Wav2Vec2, HuBERT: the length of what strided convolutions leave of the audio, computed anew for heads and masks.
TEST(ExportedShapes, LengthsOfStridedConvolutionsMeet) {
  check_sizes(R"(graph "g" {
    input %x: f32[n, 1, l]
    %w = constant{value=f32[8, 1, 10]{~1}}()
    %v = constant{value=f32[8, 8, 3]{~2}}()
    %c = convolution{groups=1, stride=[5], pads_begin=[0], pads_end=[0], dilation=[1]}(%x, %w)
    %d = convolution{groups=1, stride=[2], pads_begin=[0], pads_end=[0], dilation=[1]}(%c, %v)
    %h = transpose{perm=[0, 2, 1]}(%d)
    %shape = shape(%h)
    %first = constant{value=i64[1]{0}}()
    %second = constant{value=i64[1]{1}}()
    %two = constant{value=i64[1]{2}}()
    %four = constant{value=i64[1]{4}}()
    %batch = gather(%shape, %first)
    %length = gather(%shape, %second)
    %to_heads = concat{axis=0}(%batch, %length, %two, %four)
    %heads = reshape(%h, %to_heads)
    %moved = transpose{perm=[0, 2, 1, 3]}(%heads)
    %rows = elementwise{op=mul}(%batch, %two)
    %to_rows = concat{axis=0}(%rows, %length, %four)
    %q = reshape(%moved, %to_rows)
    %k = transpose{perm=[0, 2, 1]}(%q)
    %scores = matmul(%q, %k)
    %to_scores = concat{axis=0}(%batch, %two, %length, %length)
    %y = reshape(%scores, %to_scores)
    output %y
  })",
              {{{"x", {{1, 1, 40}, {2, 1, 160}, {3, 1, 400}}}}}, {{1, 1, 40}, {3, 1, 400}, {2, 1, 163}});
}

// Swin, SwinV2: the image is padded to whole windows, rolled (slices that end at the largest integer) and cut up.
TEST(ExportedShapes, WindowsAreShiftedOverOpenImages) {
  check_sizes(R"(graph "g" {
    input %x: f32[n, h, w, 3]
    %shape = shape(%x)
    %i0 = constant{value=i64[1]{0}}()
    %i1 = constant{value=i64[1]{1}}()
    %i2 = constant{value=i64[1]{2}}()
    %i3 = constant{value=i64[1]{3}}()
    %i4 = constant{value=i64[1]{4}}()
    %far = constant{value=i64[1]{9223372036854775807}}()
    %back = constant{value=i64[1]{-9223372036854775807}}()
    %batch = gather(%shape, %i0)
    %rows = gather(%shape, %i1)
    %columns = gather(%shape, %i2)
    %over_rows = elementwise{op=mod}(%rows, %i4)
    %left_rows = elementwise{op=sub}(%i4, %over_rows)
    %more_rows = elementwise{op=mod}(%left_rows, %i4)
    %over_columns = elementwise{op=mod}(%columns, %i4)
    %left_columns = elementwise{op=sub}(%i4, %over_columns)
    %more_columns = elementwise{op=mod}(%left_columns, %i4)
    %pads = concat{axis=0}(%i0, %i0, %i0, %i0, %i0, %more_rows, %more_columns, %i0)
    %padded = pad{mode=constant}(%x, %pads)
    %behind = slice(%padded, %i2, %far, %i1)
    %before = slice(%padded, %back, %i2, %i1)
    %rolled = concat{axis=1}(%behind, %before)
    %right = slice(%rolled, %i2, %far, %i2)
    %left = slice(%rolled, %back, %i2, %i2)
    %shifted = concat{axis=2}(%right, %left)
    %whole = shape(%shifted)
    %all_rows = gather(%whole, %i1)
    %all_columns = gather(%whole, %i2)
    %window_rows = elementwise{op=div}(%all_rows, %i4)
    %window_columns = elementwise{op=div}(%all_columns, %i4)
    %to_windows = concat{axis=0}(%batch, %window_rows, %i4, %window_columns, %i4, %i3)
    %cut = reshape(%shifted, %to_windows)
    %windows = transpose{perm=[0, 1, 3, 2, 4, 5]}(%cut)
    %bias = constant{value=f32[4, 4, 3]{~1}}()
    %y = elementwise{op=add}(%windows, %bias)
    output %y
  })",
              {{{"x", {{1, 4, 4, 3}, {1, 8, 8, 3}, {2, 32, 48, 3}}}}}, {{1, 4, 4, 3}, {2, 32, 48, 3}, {1, 7, 10, 3}});
}

// A size that only running tells stands in a list beside others, which stay known: of a view, a slice and a broadcast.
TEST(ExportedShapes, OneUnknownSizeLeavesTheOthersKnown) {
  const std::string text = R"(graph "g" {
    input %x: f32[n, 4, 6]
    %all = constant{value=i64[3]{0, 1, 2}}()
    %least = reduce{op=min, keepdims=false}(%x, %all)
    %none = constant{value=f32[]{0}}()
    %zero = elementwise{op=mul}(%least, %none)
    %unknown = cast{to=i64}(%zero)
    %axis0 = constant{value=i64[1]{0}}()
    %unknown1 = unsqueeze(%unknown, %axis0)
    %two = constant{value=i64[1]{2}}()
    %halves = elementwise{op=add}(%unknown1, %two)
    %shape = shape{end=2}(%x)
    %rest = constant{value=i64[1]{-1}}()
    %list = concat(%halves, %shape, %rest)
    %y = reshape(%x, %list)
    %i2 = constant{value=i64[1]{2}}()
    %fours = gather(%list, %i2)
    %one = constant{value=f32[1, 1]{1}}()
    %columns = concat(%halves, %fours)
    %z = expand(%one, %columns)
    %ends = concat(%shape, %halves)
    %starts = constant{value=i64[3]{0, 1, 0}}()
    %s = slice(%x, %starts, %ends)
    output %y
    output %z
    output %s
  })";
  const Result<ir::Graph> graph = ir::parse_graph(text);
  ASSERT_TRUE(graph) << graph.error().to_string();
  const Shape& x = graph->inputs()[0]->shape();
  EXPECT_EQ(graph->find_value("y")->shape()[1], x[0]);
  EXPECT_EQ(graph->find_value("y")->shape()[2], Expr(4));
  EXPECT_EQ(graph->find_value("z")->shape()[1], Expr(4));
  EXPECT_EQ(graph->find_value("s")->shape()[0], x[0]);
  EXPECT_EQ(graph->find_value("s")->shape()[1], Expr(3));
  EXPECT_EQ(graph->find_value("list")->elements(), nullptr);
  ASSERT_NE(graph->find_value("fours")->elements(), nullptr);
  EXPECT_EQ(graph->find_value("fours")->elements()->at(0), Expr(4));
  check_sizes(text, {{{"x", {{1, 4, 6}, {2, 4, 6}, {8, 4, 6}}}}}, {{1, 4, 6}, {8, 4, 6}, {3, 4, 6}});
}

// The batch is divided out of windows, whose number is 0 for images without pixels, and may be any integer for all that
// is known of what was subtracted.
TEST(ExportedShapes, SizesAreDividedByWhatMayBeZero) {
  const std::string text = R"(graph "g" {
    input %x: f32[n, h, 6]
    %shape = shape(%x)
    %i0 = constant{value=i64[1]{0}}()
    %i1 = constant{value=i64[1]{1}}()
    %five = constant{value=i64[1]{5}}()
    %six = constant{value=i64[1]{6}}()
    %batch = gather(%shape, %i0)
    %height = gather(%shape, %i1)
    %rows = elementwise{op=mul}(%batch, %height)
    %less = elementwise{op=sub}(%height, %five)
    %rows_of_less = elementwise{op=mul}(%batch, %less)
    %again = elementwise{op=div}(%rows, %height)
    %same = elementwise{op=div}(%rows_of_less, %less)
    %to = concat(%again, %six, %height)
    %y = reshape(%x, %to)
    %to2 = concat(%same, %height, %six)
    %z = reshape(%y, %to2)
    output %z
  })";
  const Result<ir::Graph> graph = ir::parse_graph(text);
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->find_value("y")->shape()[0], graph->inputs()[0]->shape()[0]);
  EXPECT_NE(graph->find_value("same")->elements(), nullptr);
  check_sizes(text, {{{"x", {{1, 6, 6}, {2, 8, 6}, {3, 9, 6}}}}}, {{1, 6, 6}, {3, 9, 6}, {2, 7, 6}});
  check_sizes(text, {{{"x", {{1, 1, 6}, {2, 8, 6}, {3, 9, 6}}}}}, {{1, 1, 6}, {3, 9, 6}, {2, 7, 6}});
}

// T5 of tf2onnx, whose masks may have more batches than texts for all that is known: of a view of what they made of the
// texts, added to the texts, the length is that of these, and the next layer is as the first.
TEST(ExportedShapes, SumsHaveTheSimplerLength) {
  const Result<ir::Graph> graph = ir::parse_graph(R"(graph "g" {
    symbol n in [1, 3]
    symbol s in [7, 33]
    symbol m in [1, 3]
    input %x: f32[n, s, 4]
    input %mask: f32[m, 1, 1]
    %masked = elementwise(%x, %mask)
    %texts = shape{end=1}(%x)
    %rest = constant{value=i64[2]{-1, 4}}()
    %list = concat(%texts, %rest)
    %view = reshape(%masked, %list)
    %y = elementwise(%x, %view)
    %z = elementwise(%view, %x)
    output %y
    output %z
  })");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_NE(graph->find_value("view")->shape(), graph->inputs()[0]->shape());
  for (const ir::Output& output : graph->outputs()) EXPECT_EQ(output.value->shape(), graph->inputs()[0]->shape());
}

// Squeezed without axes: what is not known to be 1 stays, and a run in which it is 1 is refused.
TEST(ExportedShapes, OpenSizesAreNotSqueezed) {
  const std::string text = R"(graph "g" {
    input %x: f32[n, 1, 3, 1]
    %y = squeeze(%x)
    output %y
  })";
  check_sizes(text, {{{"x", {{1, 1, 3, 1}, {2, 1, 3, 1}, {4, 1, 3, 1}}}}}, {{2, 1, 3, 1}, {4, 1, 3, 1}});
  const std::shared_ptr<const Engine> engine = build_engine(text, native_options());
  ASSERT_TRUE(engine);
  const Result<std::unique_ptr<Context>> context = Context::create(engine);
  ASSERT_TRUE(context);
  const Result<std::vector<Tensor>> refused =
      try_engine(**context, std::vector<Tensor>{random_tensor(DType::f32, {1, 1, 3, 1}, 1)});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("squeeze 'y'"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace lathe
