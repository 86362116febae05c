// SPDX-License-Identifier: Apache-2.0
// Sizes that only running tells: what they are tuned for, and that each keeps its name while more becomes known.
#include "lowering/estimated_sizes.h"

#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

// Pads an image of n columns to a multiple of 32 columns, and adds a channel, in f32 as torchvision's detectors do: the
// channels are known once constants are folded, the columns while running.
constexpr const char* kPaddedImage = R"(graph "g" {
    symbol n in [1, 100]
    input %x: f32[1, 2, 3, n]
    input %w: f32[2, 3, 3, 3]
    %none = constant{value=i64[1]{0}}()
    %shape = shape(%x)
    %last = constant{value=i64[1]{3}}()
    %columns = gather(%shape, %last)
    %part = constant{value=f32[]{32}}()
    %float_columns = cast{to=f32}(%columns)
    %parts = elementwise{op=div}(%float_columns, %part)
    %whole = unary{op=ceil}(%parts)
    %float_wanted = elementwise{op=mul}(%whole, %part)
    %wanted = cast{to=i64}(%float_wanted)
    %more_columns = elementwise{op=sub}(%wanted, %columns)
    %float_channels = constant{value=f32[1]{1}}()
    %more_channels = cast{to=i64}(%float_channels)
    %pads = concat{axis=0}(%none, %none, %none, %none, %none, %more_channels, %none, %more_columns)
    %y = pad{mode=constant}(%x, %pads)
    %z = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%y, %w)
    output %z
  })";

std::vector<int64_t> estimated(const ir::Graph& graph, int64_t given) {
  std::vector<int64_t> sizes;
  for (const Symbol& symbol : graph.symbols())
    sizes.push_back(symbol.source == SymbolSource::computed ? Expr::kUnbound : given);
  return estimate_sizes(graph, std::move(sizes));
}

Dims dims_of(const Shape& shape, const std::vector<int64_t>& sizes) {
  Dims dims;
  for (const Expr& dim : shape) dims.push_back(dim.evaluate(sizes).value_or(-1));
  return dims;
}

TEST(EstimatedSizes, OfWhatFollowsFromTheInputsAreExact) {
  const ir::Graph graph = *ir::parse_graph(kPaddedImage);
  for (const int64_t n : {1, 32, 70}) {
    const Dims dims = dims_of(graph.find_value("z")->shape(), estimated(graph, n));
    EXPECT_EQ(dims, (Dims{1, 2, 1, (n + 31) / 32 * 32 - 2})) << n;
  }
}

TEST(EstimatedSizes, OfWhatDataDecidesAreTheMostUpToAThousand) {
  const ir::Graph graph = *ir::parse_graph(R"(graph "g" {
    symbol n in [0, 5000]
    input %x: f32[2, n]
    %found = nonzero(%x)
    %twice = elementwise{op=add}(%found, %found)
    output %twice
  })");
  const ir::Value* result = graph.find_value("twice");
  EXPECT_EQ(dims_of(result->shape(), estimated(graph, 10)), (Dims{2, 20}));
  EXPECT_EQ(dims_of(result->shape(), estimated(graph, 3000)), (Dims{2, 1000}));
  EXPECT_EQ(dims_of(result->shape(), estimated(graph, 0)), (Dims{2, 1}));
}

// The convolution needs a dimension of the padded image, which is known only after folding, to be 2; what running tells
// of the others is something else.
TEST(EstimatedSizes, DimensionsKeepTheirNamesWhenOthersBecomeKnown) {
  for (const bool native : {false, true}) {
    const auto engine = build_engine(kPaddedImage, native ? native_options() : plain_options());
    ASSERT_TRUE(engine);
    const auto context = *Context::create(engine);
    for (const int64_t n : {1, 32, 70}) {
      const std::vector<Tensor> inputs = {random_tensor(DType::f32, {1, 2, 3, n}, static_cast<uint32_t>(n)),
                                          random_tensor(DType::f32, {2, 3, 3, 3}, 7)};
      const auto expected = *ir::interpret(*ir::parse_graph(kPaddedImage), inputs);
      const auto outputs = run_engine(*context, inputs);
      ASSERT_EQ(outputs.size(), 1u);
      expect_close(outputs[0], expected[0], 1e-5);
    }
  }
}

// With the sizes that are estimated the window does not fit: nothing is there to measure, and the build ends.
TEST(EstimatedSizes, TooSmallForAWindowAreBuilt) {
  BuildOptions options = native_options();
  options.tuner.device = test_device();
  const auto engine = build_engine(R"(graph "g" {
    input %x: f32[1, 2, 8, 8]
    input %w: f32[2, 2, 3, 3]
    input %count: i64[]
    %axis = constant{value=i64[1]{0}}()
    %ends = unsqueeze(%count, %axis)
    %float_ends = cast{to=f32}(%ends)
    %again = cast{to=i64}(%float_ends)
    %zero = constant{value=i64[1]{0}}()
    %three = constant{value=i64[1]{3}}()
    %y = slice(%x, %zero, %again, %three)
    %z = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%y, %w)
    output %z
  })",
                                   options);
  ASSERT_TRUE(engine);
}

}  // namespace
}  // namespace lathe
