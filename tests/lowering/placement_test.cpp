// SPDX-License-Identifier: Apache-2.0
// Which values lie in which layout, and which of them share memory.
#include "lowering/placement.h"

#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

constexpr int64_t kLeastPixel = 4;

// A line for each region's result: how it lies, and after "of" in whose memory when that is another's.
std::vector<std::string> placed(const std::string& body, bool movement = true, bool windows_keep_layout = false) {
  const Result<ir::Graph> graph = ir::parse_graph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph) << graph.error().to_string();
  std::vector<std::string> lines;
  if (!graph) return lines;
  const BackendTraits traits = {.fuses_narrow_types = true,
                                .fuses_movement = movement,
                                .windows_keep_layout = windows_keep_layout,
                                .least_pixel = kLeastPixel};
  CostModel costs(Target{});
  const std::vector<Region> regions = group_regions(*graph, {true, traits}, costs);
  const Placement placement(*graph, regions, false, traits, costs);
  for (const Region& region : regions) {
    const ir::Value* result = region.result();
    const Location location = placement.location(result);
    const auto lies = [&](Layout layout) { return is_dense(result->shape(), location.strides, layout); };
    std::string line = result->name() + (lies(Layout::linear)          ? ": rows"
                                         : lies(Layout::channels_last) ? ": image"
                                                                       : ": strided");
    if (location.root != result) line += " of " + location.root->name();
    if (placement.is_free(region)) line += ", free";
    lines.push_back(std::move(line));
  }
  return lines;
}

using Lines = std::vector<std::string>;

// %r: rows of 16 channels, with %t as an image.
std::string image(const std::string& rest) {
  return R"(
    symbol n in [1, 4]
    input %x: f16[n, 5, 6, 16]
    %g = constant{value=f16[16]{~1}}()
    %w = constant{value=f16[16, 16, 3, 3]{~3}}()
    %r = layer_normalization{axis=-1, epsilon=1e-5}(%x, %g)
    %t = transpose{perm=[0, 3, 1, 2]}(%r)
)" + rest;
}

constexpr const char* kConvolution =
    "    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%t, %w)\n"
    "    output %y\n";

TEST(Placement, RowsOfChannelsAreImages) {
  EXPECT_EQ(placed(image(kConvolution)), Lines({"r: rows", "t: image of r, free", "y: image"}));
  EXPECT_EQ(placed(image(kConvolution), false), Lines({"r: rows", "t: rows", "y: image"}));
  EXPECT_EQ(placed(image(std::string(kConvolution) + "    output %t")),
            Lines({"r: rows", "t: image of r, free", "y: image"}));
  EXPECT_EQ(placed(image("    output %t")), Lines({"r: rows", "t: rows"}));
}

// A reshape of an image is a copy: as good as the transposition, but not as two.
TEST(Placement, ReadersThatNeedRows) {
  const std::string reshape = R"(
    %s = constant{value=i64[2]{0, 480}}()
    %q = reshape(%t, %s)
    output %q
)";
  EXPECT_EQ(placed(image(reshape)), Lines({"r: rows", "t: rows", "q: rows of t, free"}));
  EXPECT_EQ(placed(image(kConvolution + reshape)), Lines({"r: rows", "t: image of r, free", "y: image", "q: rows"}));
  EXPECT_EQ(placed(image(kConvolution + reshape + "    output %t")),
            Lines({"r: rows", "t: rows", "y: image", "q: rows of t, free"}));
}

TEST(Placement, ViewsOfViews) {
  EXPECT_EQ(placed(image(R"(
    %v = constant{value=f16[4, 8, 1, 1]{~5}}()
    %a, %b = split{axis=1}(%t)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%b, %v)
    %z = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%a, %v)
    output %y
    output %z)")),
            Lines({"r: rows", "t: image of r, free", "a: strided of r, free", "y: image", "z: image"}));
}

TEST(Placement, ImagesAreRows) {
  const std::string body = R"(
    input %x: f16[2, 8, 5, 6]
    %w = constant{value=f16[16, 8, 3, 3]{~2}}()
    %v = constant{value=f16[8, 16, 1, 1]{~3}}()
    %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %t = transpose{perm=[0, 2, 3, 1]}(%c)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%c, %v)
    output %t
    output %y
)";
  EXPECT_EQ(placed(body), Lines({"c: image", "t: rows of c, free", "y: image"}));
  EXPECT_EQ(placed(body + R"(
    %s = constant{value=i64[3]{0, 30, 16}}()
    %q = reshape(%t, %s)
    output %q)"),
            Lines({"c: image", "t: rows of c, free", "y: image", "q: rows of c, free"}));
}

// What pools an image of the network's input writes it for its readers, where it can.
TEST(Placement, WindowsKeepLayouts) {
  const std::string body = R"(
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[16, 8, 3, 3]{~2}}()
    %p = pooling{op=max, window=[2, 2], stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x)
)";
  const std::string convolution =
      "%y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%p, %w)\n output %y\n";
  EXPECT_EQ(placed(body + "output %p", true, true), Lines({"p: rows"}));
  EXPECT_EQ(placed(body + "output %p", true, false), Lines({"p: image"}));
  EXPECT_EQ(placed(body + convolution, true, true), Lines({"p: image", "y: image"}));
}

// Tokens, which are pixels in one dimension, become an image, and the other way round.
TEST(Placement, TokensAreImages) {
  const auto body = [](const std::string& rest) {
    return R"(
    symbol n in [1, 4]
    input %x: f16[n, 30, 16]
    %g = constant{value=f16[16]{~1}}()
    %w = constant{value=f16[16, 16, 1, 1]{~2}}()
    %si = constant{value=i64[4]{0, 16, 5, 6}}()
    %st = constant{value=i64[3]{0, 16, 30}}()
    %r = layer_normalization{axis=-1, epsilon=1e-5}(%x, %g)
    %t = transpose{perm=[0, 2, 1]}(%r)
    %i = reshape(%t, %si)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%i, %w)
    output %y
)" + rest;
  };
  EXPECT_EQ(placed(body("")), Lines({"r: rows", "t: image of r, free", "i: image of r, free", "y: image"}));
  const std::string tokens = R"(
    %f = reshape(%y, %st)
    %o = transpose{perm=[0, 2, 1]}(%f)
)";
  EXPECT_EQ(placed(body(tokens + "    output %o")),
            Lines({"r: rows", "t: image of r, free", "i: image of r, free", "y: image", "o: rows of y, free"}));
  // Tokens are no columns of a larger image.
  EXPECT_EQ(placed(body(tokens + R"(
    %u = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%y, %w)
    %c = concat{axis=3}(%y, %u)
    output %c
    output %o)")),
            Lines({"r: rows", "t: image of r, free", "i: image of r, free", "y: image", "o: rows of y, free",
                   "u: strided of c", "c: image"}));
  // Where they are, their pixels are not in one dimension.
  const std::string columns = R"(
    %begin = constant{value=i64[1]{1}}()
    %end = constant{value=i64[1]{4}}()
    %three = constant{value=i64[1]{3}}()
    %s = slice(%y, %begin, %end, %three)
    %sf = constant{value=i64[3]{0, 16, 15}}()
    %f = reshape(%s, %sf)
    %k = constant{value=f16[16, 16, 1]{~4}}()
    %o = convolution{stride=[1], pads_begin=[0], pads_end=[0], dilation=[1]}(%f, %k)
    output %o
)";
  EXPECT_EQ(placed(body(columns)), Lines({"r: rows", "t: image of r, free", "i: image of r, free", "y: image",
                                          "s: strided of y, free", "f: rows", "o: image"}));
}

// Convolutions want pixels of at least so many channels.
TEST(Placement, PixelsOfFewChannels) {
  const auto body = [](int64_t channels) {
    return fmt::format(R"(
    input %x: f16[2, 5, 6, {0}]
    %w = constant{{value=f16[8, {0}, 3, 3]{{~2}}}}()
    %t = transpose{{perm=[0, 3, 1, 2]}}(%x)
    %y = convolution{{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}}(%t, %w)
    output %y)",
                       channels);
  };
  EXPECT_EQ(placed(body(3)), Lines({"t: strided", "y: image"}));
  EXPECT_EQ(placed(body(4)), Lines({"t: image of x, free", "y: image"}));
}

// Of what is written in any layout, some readers copy what lies otherwise.
TEST(Placement, ExpressionsWriteWhatReadersWant) {
  const auto body = [](const std::string& rest) {
    return R"(
    input %x: f16[2, 16, 5, 6]
    %w = constant{value=f16[16, 16, 1, 1]{~3}}()
    %e = elementwise{op=mul}(%x, %x)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%e, %w)
)" + rest;
  };
  EXPECT_EQ(placed(body("    %z = elementwise{op=add}(%y, %e)\n    output %z")), Lines({"e: image", "z: image"}));
  EXPECT_EQ(placed(body("    %z = reduce{op=mean, axes=[2, 3]}(%e)\n    output %y\n    output %z")),
            Lines({"e: image", "y: image", "z: rows"}));
  EXPECT_EQ(placed(body("    output %y\n    output %e")), Lines({"e: rows", "y: image"}));
}

// Products write columns side by side: as channels of pixels when nobody needs rows.
TEST(Placement, ProductsWriteImages) {
  const auto body = [](const std::string& rest) {
    return R"(
    input %x: f16[2, 5, 6, 8]
    %w = constant{value=f16[8, 16]{~3}}()
    %m = matmul(%x, %w)
    %t = transpose{perm=[0, 3, 1, 2]}(%m)
)" + rest;
  };
  EXPECT_EQ(placed(body("    %z = reduce{op=mean, axes=[2, 3]}(%t)\n    output %z")), Lines({"t: image", "z: rows"}));
  EXPECT_EQ(placed(body("    output %t")), Lines({"t: rows"}));
  EXPECT_EQ(placed(body(R"(
    %s = constant{value=i64[2]{0, 480}}()
    %q = reshape(%t, %s)
    output %q)")),
            Lines({"t: rows", "q: rows of t, free"}));
}

// %r is an image for the convolution where its other two readers take any layout, and rows where they need rows.
TEST(Placement, ReadersOfAnyLayout) {
  const auto lies = [](const std::string& reader) {
    for (const std::string& line : placed(R"(
    input %x: f32[1, 16, 6, 6]
    %w = constant{value=f32[16, 16, 1, 1]{~1}}()
    %to = constant{value=i64[8]{0, 0, 1, 1, 0, 0, 1, 1}}()
    %times = constant{value=i64[4]{1, 1, 2, 2}}()
    %regions = constant{value=f32[1, 4]{0, 0, 4, 4}}()
    %images = constant{value=i64[1]{0}}()
    %r = activation{op=relu}(%x)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%r, %w)
    %p = )" + reader + R"(
    %q = )" + reader + R"(
    output %y
    output %p
    output %q)",
                                          false))
      if (line.starts_with("r:")) return line;
    return std::string();
  };
  EXPECT_EQ(lies("pad{mode=reflect}(%r, %to)"), "r: image");
  EXPECT_EQ(lies("roi_align{height=2, width=2}(%r, %regions, %images)"), "r: image");
  EXPECT_EQ(lies("tile(%r, %times)"), "r: rows");
}

// Results of kernels that read their epilogue's operands first lie over them.
TEST(Placement, EpiloguesInPlace) {
  const auto last = [](const std::string& root) {
    for (const std::string& line : placed(R"(
    input %x: f32[1, 8, 6, 6]
    %w = constant{value=f32[8, 8, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %b = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %c = )" + root + R"({stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%a, %w)
    %y = elementwise{op=add}(%c, %b)
    %z = activation{op=relu}(%y)
    %last = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%z, %w)
    output %last)",
                                          false))
      if (line.starts_with("z:")) return line;
    return std::string();
  };
  EXPECT_EQ(last("convolution"), "z: image of b");
  EXPECT_EQ(last("deconvolution"), "z: image");
}

// A result may lie over an operand unless another one has yet to read the same memory elsewhere.
TEST(Placement, ResultsOverOperands) {
  const auto body = [](const std::string& other) {
    return R"(
    input %x: f32[8, 12, 12]
    %s = softmax{axis=-1}(%x)
)" + other +
           R"(
    %p = softmax{axis=1}(%o)
    %y = elementwise{op=add}(%s, %o)
    %z = elementwise{op=mul}(%y, %p)
    %q = softmax{axis=-1}(%y)
    output %z
    output %q)";
  };
  const auto last = [&](const std::string& other) {
    for (const std::string& line : placed(body(other)))
      if (line.starts_with("y:")) return line;
    return std::string();
  };
  EXPECT_EQ(last("    %o = elementwise{op=mul}(%s, %s)"), "y: rows of s");
  EXPECT_EQ(last(R"(
    %begin = constant{value=i64[1]{0}}()
    %end = constant{value=i64[1]{1}}()
    %o = slice(%s, %begin, %end))"),
            "y: rows");
}

// The strides along x's dimensions when y = reshape(x), of these dims, lies with these strides.
std::optional<Shape> before(const std::string& x, size_t rank, const std::string& y, const Shape& strides) {
  const Result<ir::Graph> graph = ir::parse_graph(fmt::format(R"(graph "g" {{
    symbol n in [1, 9]
    input %x: f32[{}]
    %s = constant{{value=i64[{}]{{{}}}}}()
    %y = reshape(%x, %s)
    output %y
}})",
                                                              x, rank, y));
  EXPECT_TRUE(graph) << graph.error().to_string();
  if (!graph) return std::nullopt;
  return strides_before(*graph->outputs()[0].value->producer(), strides, graph->symbol_ranges());
}

TEST(Placement, StridesBeforeViews) {
  EXPECT_EQ(before("2, 24, 5, 6", 3, "2, 24, 30", {900, 31, 1}), (Shape{900, 31, 6, 1}));
  EXPECT_EQ(before("1, 2, 4, 1, 6, 1", 2, "2, 24", {50, 2}), (Shape{0, 50, 12, 0, 2, 0}));
  EXPECT_EQ(before("48", 2, "2, 24", {50, 2}), std::nullopt);
  EXPECT_EQ(before("4, 12", 2, "2, 24", {50, 2}), std::nullopt);
  EXPECT_EQ(before("n, 2, 3", 2, "0, 6", {9, 1}), (Shape{9, 3, 1}));
}

}  // namespace
}  // namespace lathe
