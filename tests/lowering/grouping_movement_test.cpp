// SPDX-License-Identifier: Apache-2.0
// Which regions read and write in another order.
#include <set>

#include "lowering/grouped.h"

namespace lathe {
namespace {

// By which maps kernels read their operands and write their results, over which axes.
std::string arranged(const std::string& body) {
  const Result<ir::Graph> graph = ir::parse_graph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph) << graph.error().to_string();
  std::string text;
  if (!graph) return text;
  CostModel costs(cuda::describe(**cuda::find_architecture(90)));
  for (const Region& region : group_regions(
           *graph, {true, {.fuses_narrow_types = true, .fuses_prologues = true, .fuses_movement = true}}, costs)) {
    if (region.kind == RegionKind::view || region.kind == RegionKind::movement || !region.moves_elements()) continue;
    const Space& space = region.expression.space;
    const std::vector<std::string> names = space.names(graph->symbol_names());
    text += to_string(space.extents(), names) + ":";
    for (const Read& read : region.expression.reads)
      text += " " + to_string(IndexMap{space.current(read.map.index), read.map.domain}, names);
    text += " -> " + to_string(IndexMap{space.current(region.written.index), {}}, names);
  }
  return text;
}

// Of ops that copy or rearrange elements, alone: those with trait kStrided are strided copies, views cost nothing.
TEST(Grouping, KindsOfMovement) {
  const std::tuple<OpKind, RegionKind, const char*> cases[] = {
      {OpKind::transpose, RegionKind::movement, "transpose{perm=[1, 0]}(%x)"},
      {OpKind::slice, RegionKind::movement, "slice(%x, %zeros, %ones)"},
      {OpKind::split, RegionKind::movement, "split{axis=1}(%x)"},
      {OpKind::concat, RegionKind::movement, "concat{axis=1}(%x, %x)"},
      {OpKind::expand, RegionKind::movement, "expand(%x, %dims)"},
      {OpKind::identity, RegionKind::view, "identity(%x)"},
      {OpKind::reshape, RegionKind::view, "reshape(%x, %dims)"},
      {OpKind::tile, RegionKind::single, "tile(%x, %dims)"},
      {OpKind::gather, RegionKind::single, "gather{axis=1}(%x, %zeros)"},
      {OpKind::trilu, RegionKind::single, "trilu(%x)"},
  };
  std::set<OpKind> covered;
  for (const auto& [op, kind, call] : cases) {
    covered.insert(op);
    const Result<ir::Graph> graph = ir::parse_graph(fmt::format(R"(graph "g" {{
      input %x: f32[4, 4]
      %zeros = constant{{value=i64[2]{{0, 0}}}}()
      %ones = constant{{value=i64[2]{{1, 1}}}}()
      %dims = constant{{value=i64[2]{{4, 4}}}}()
      %y = {}
      output %y
    }})",
                                                                call));
    ASSERT_TRUE(graph) << graph.error().to_string();
    CostModel costs(Target{});
    const std::vector<Region> regions = group_regions(*graph, {true, {}}, costs);
    ASSERT_EQ(regions.size(), 1u) << call;
    EXPECT_EQ(regions[0].kind, kind) << call;
  }
  for (const OpInfo& info : all_ops())
    EXPECT_TRUE(covered.contains(info.kind) || !(info.traits & kStrided)) << info.name;
}

TEST(Grouping, AxesOfHeads) {
  EXPECT_EQ(arranged(R"(
    symbol n in [1, 9]
    input %x: f32[n, 5, 32]
    input %b: f32[32]
    %y = elementwise{op=add}(%x, %b)
    %s = constant{value=i64[4]{0, 0, 4, 8}}()
    %r = reshape(%y, %s)
    %t = transpose{perm=[0, 2, 1, 3]}(%r)
    output %t)"),
            "[n, 4, 5, 8]: (i0, i2, 8*i1 + i3) (8*i1 + i3) -> (i0, i1, i2, i3)");
}

TEST(Grouping, AxesOfDimensionsThatDoNotNest) {
  EXPECT_EQ(arranged(R"(
    input %x: f32[6, 4]
    %s = constant{value=i64[2]{4, 6}}()
    %a = activation{op=relu}(%x)
    %r = reshape(%a, %s)
    %t = transpose{perm=[1, 0]}(%r)
    output %t)"),
            "");
  EXPECT_EQ(arranged(R"(
    input %x: f32[12, 4]
    %s = constant{value=i64[2]{6, 8}}()
    %a = activation{op=relu}(%x)
    %r = reshape(%a, %s)
    %t = transpose{perm=[1, 0]}(%r)
    output %t)"),
            "[2, 4, 6]: (2*i1 + i0o, i0i) -> (4*i0o + i0i, i1)");
}

TEST(Grouping, MovementThatHasOtherReaders) {
  const std::string body = R"(
    input %x: f32[6, 4]
    input %y: f32[4, 6]
    %t = transpose{perm=[1, 0]}(%x)
    %a = elementwise{op=add}(%t, %y)
    output %a)";
  EXPECT_EQ(grouped(body), Lines({"transpose elementwise"}));
  EXPECT_EQ(grouped(body, false), Lines({"transpose", "elementwise"}));
  EXPECT_EQ(grouped(body + "\n    output %t"), Lines({"transpose", "elementwise"}));
}

// A reshape of what lies in memory as it is viewed costs nothing: the kernel still computes what it reads.
TEST(Grouping, ViewsOfMemoryStayViews) {
  EXPECT_EQ(grouped(R"(
    input %x: f16[4, 64]
    %s = constant{value=i64[3]{2, 2, 64}}()
    %r = reshape(%x, %s)
    %c = cast{to=f32}(%r)
    %y = reduce{op=sum, axes=[2]}(%c)
    output %y)"),
            Lines({"reshape", "0[in=1; out r0] reduce"}));
}

TEST(Grouping, ViewsOfImagesAreRead) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[2, 8, 6, 6]
    %s = constant{value=i64[3]{2, 8, 36}}()
    %p = pooling{op=max, window=[2, 2], stride=[1, 1], pads_begin=[0, 0], pads_end=[1, 1], dilation=[1, 1]}(%x)
    %r = reshape(%p, %s)
    %a = activation{op=silu}(%r)
    output %a)"),
            Lines({"pooling", "reshape activation"}));
}

TEST(Grouping, ProductsWriteHeads) {
  const auto body = [](const std::string& end) {
    return R"(
    symbol n in [1, 9]
    input %x: f32[n, 5, 16]
    input %b: f32[32]
    %w = constant{value=f32[16, 32]{~1}}()
    %s = constant{value=i64[4]{0, 0, 4, 8}}()
    %y = matmul(%x, %w)
    %a = elementwise{op=add}(%y, %b)
    %r = reshape(%a, %s)
)" + end;
  };
  const std::string transposed = "    %t = transpose{perm=[0, 2, 1, 3]}(%r)\n";
  EXPECT_EQ(grouped(body(transposed + "    output %t")), Lines({"matmul elementwise reshape transpose"}));
  EXPECT_EQ(arranged(body(transposed + "    output %t")), "[n, 5, 4, 8]: (8*i2o + i2i) -> (i0, i2o, i1, i2i)");
  EXPECT_EQ(grouped(body(transposed + "    %z = activation{op=relu}(%t)\n    output %z")),
            Lines({"matmul elementwise reshape transpose activation"}));
  EXPECT_EQ(grouped(body("    output %r")), Lines({"matmul elementwise", "reshape"}));
  EXPECT_EQ(grouped(body(transposed + "    output %t\n    output %r")),
            Lines({"matmul elementwise", "reshape", "transpose"}));
}

// What no vectors of columns could be written to is read by the product behind, where there is one.
TEST(Grouping, ProductsWriteNoTransposedHeads) {
  const auto body = [](const std::string& end) {
    return R"(
    symbol n in [1, 9]
    input %x: f32[n, 5, 16]
    input %q: f32[n, 4, 3, 8]
    %w = constant{value=f32[16, 32]{~1}}()
    %s = constant{value=i64[4]{0, 0, 4, 8}}()
    %y = matmul(%x, %w)
    %r = reshape(%y, %s)
    %t = transpose{perm=[0, 2, 3, 1]}(%r)
)" + end;
  };
  EXPECT_EQ(grouped(body("    output %t")), Lines({"matmul", "reshape transpose"}));
  EXPECT_EQ(grouped(body("    %z = matmul(%q, %t)\n    output %z")), Lines({"matmul", "1<1 1 1 1> matmul"}));
}

TEST(Grouping, ProductsReadHeads) {
  const auto body = [](const std::string& before, const std::string& end) {
    return R"(
    symbol n in [1, 9]
    input %x: f32[n, 4, 5, 8]
    %w = constant{value=f32[32, 16]{~1}}()
    %s = constant{value=i64[3]{0, 0, 32}}()
)" + before +
           R"(    %t = transpose{perm=[0, 2, 1, 3]}(%a)
    %r = reshape(%t, %s)
    %z = matmul(%r, %w)
    output %z
)" + end;
  };
  const std::string pointwise = "    %a = activation{op=silu}(%x)\n", softmax = "    %a = softmax{axis=3}(%x)\n";
  const std::string merged = "0<1 1 2> matmul";
  EXPECT_EQ(grouped(body(softmax, "")), Lines({"softmax", merged}));
  EXPECT_EQ(grouped(body(softmax, "    output %a")), Lines({"softmax", merged}));
  EXPECT_EQ(grouped(body(softmax, ""), false), Lines({"softmax", "transpose", "reshape", "matmul"}));
  // What computes elements puts them in their places, unless they are wanted elsewhere, too.
  EXPECT_EQ(grouped(body(pointwise, "")), Lines({"activation transpose", "reshape", "matmul"}));
  EXPECT_EQ(grouped(body(pointwise, "    output %a")), Lines({"activation", merged}));
  // Others read what is moved.
  EXPECT_EQ(grouped(body(softmax, "    output %r")), Lines({"softmax", "transpose", "reshape", "matmul"}));
}

// What is reduced is read in the order in which it lies, if runs along its last axis are runs in memory.
TEST(Grouping, ReductionsReadMovedDimensions) {
  const auto body = [](const char* permutation, const char* reader) {
    return fmt::format(R"(
    input %x: f32[2, 64, 50]
    %s = constant{{value=i64[4]{{0, 4, 16, -1}}}}()
    %r = reshape(%x, %s)
    %t = transpose{{perm=[{}]}}(%r)
    %y = {}(%t)
    output %y)",
                       permutation, reader);
  };
  EXPECT_EQ(grouped(body("0, 2, 1, 3", "softmax{axis=1}")), Lines({"0<1 1 1 1> softmax"}));
  EXPECT_EQ(grouped(body("2, 0, 1, 3", "reduce{op=max, axes=[0]}")), Lines({"0<1 1 1 1> reduce"}));
  EXPECT_EQ(grouped(body("0, 1, 3, 2", "softmax{axis=-1}")).size(), 2u);
}

TEST(Grouping, ConvolutionsKeepTheirChannelsTogether) {
  const auto body = [](const std::string& perm) {
    return R"(
    input %x: f32[1, 8, 6, 6]
    %w = constant{value=f32[4, 8, 1, 1]{~1}}()
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %t = transpose{perm=)" +
           perm + "}(%y)\n    output %t";
  };
  EXPECT_EQ(grouped(body("[0, 3, 2, 1]")), Lines({"convolution transpose"}));
  EXPECT_EQ(arranged(body("[0, 3, 2, 1]")), "[1, 4, 6, 6]: -> (0, i3, i2, i1)");
  EXPECT_EQ(grouped(body("[0, 1, 3, 2]")), Lines({"convolution", "transpose"}));
}

// Images stay images; other splits of the channels end with a run of them.
TEST(Grouping, ConvolutionsSplitTheirChannels) {
  const auto body = [](const std::string& end) {
    return R"(
    input %x: f32[1, 8, 6, 5]
    %w = constant{value=f32[16, 8, 1, 1]{~1}}()
    %heads = constant{value=i64[4]{0, 2, 8, 30}}()
    %s = constant{value=i64[6]{0, 4, 2, 2, 6, 5}}()
    %u = constant{value=i64[4]{0, 4, 12, 10}}()
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %a = activation{op=relu}(%y)
)" + end + "    output %z";
  };
  const std::string crd = "    %z = depth_to_space{block=2, mode=crd}(%a)\n";
  EXPECT_EQ(grouped(body(crd)), Lines({"convolution activation depth_to_space"}));
  EXPECT_EQ(arranged(body(crd)), "[4, 2, 2, 6, 5]: -> (0, i1o, 2*i2 + i1io, 2*i3 + i1ii)");
  EXPECT_EQ(arranged(body("    %z = depth_to_space{block=2, mode=dcr}(%a)\n")),
            "[2, 2, 4, 6, 5]: -> (0, i1ii, 2*i2 + i1o, 2*i3 + i1io)");
  EXPECT_EQ(grouped(body("    %r = reshape(%a, %s)\n    %t = transpose{perm=[0, 1, 4, 2, 5, 3]}(%r)\n"
                         "    %z = reshape(%t, %u)\n")),
            Lines({"convolution activation reshape transpose reshape"}));
  const auto heads = [&](const std::string& perm) {
    return grouped(body("    %r = reshape(%a, %heads)\n    %z = transpose{perm=" + perm + "}(%r)\n"));
  };
  EXPECT_EQ(heads("[0, 1, 3, 2]"), Lines({"convolution activation reshape transpose"}));
  EXPECT_EQ(heads("[0, 2, 1, 3]"), Lines({"convolution activation", "reshape transpose"}));
}

// Whether an axis of one element has it in the padding or not is no bound of an axis: the padding stands alone.
TEST(Grouping, PaddingOfNothingToOneElement) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[n, 0]
    %pads = constant{value=i64[4]{0, 1, 0, 0}}()
    %p = pad(%x, %pads)
    %e = unary{op=abs}(%p)
    output %e)"),
            Lines({"pad", "unary"}));
}

}  // namespace
}  // namespace lathe
