// SPDX-License-Identifier: Apache-2.0
// Maps through chains of movements, against the plain evaluation of the chain on elements that tell where they lay.
#include "indexing/index_map.h"

#include <gtest/gtest.h>

#include "indexing/access.h"
#include "indexing/movement_chains.h"
#include "ir/interpret.h"

namespace lathe {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

// What a value is at a point: an element of the graph's input, or else a number.
struct Tree {
  IndexMap map;  // of a leaf: the input's
  std::vector<Tree> pieces;
  std::optional<float> fill;
};

// nullopt where a node on the way has no map.
std::optional<Tree> tree_of(const Value& value, const IndexMap& map, Space& space) {
  if (!value.producer()) return Tree{map, {}, {}};
  std::optional<Sources> sources = sources_of(*value.producer(), value.index(), map, space);
  if (!sources) return std::nullopt;
  Tree tree{map, {}, sources->fill};
  for (const Piece& piece : sources->pieces) {
    std::optional<Tree> child = tree_of(*value.producer()->input(piece.input), piece.map, space);
    if (!child) return std::nullopt;
    tree.pieces.push_back(*std::move(child));
  }
  return tree;
}

void bring_up_to_date(Tree& tree, const Space& space) {
  tree.map.index = space.current(tree.map.index);
  for (Interval& interval : tree.map.domain) interval.value = space.current(interval.value);
  for (Tree& piece : tree.pieces) bring_up_to_date(piece, space);
}

bool holds(const IndexMap& map, std::span<const int64_t> values) {
  return std::all_of(map.domain.begin(), map.domain.end(), [&](const Interval& each) {
    const int64_t value = *each.value.evaluate(values);
    return *each.begin.evaluate(values) <= value && value < *each.end.evaluate(values);
  });
}

float at(const Tree& tree, const Tensor& input, std::span<const int64_t> values) {
  if (tree.pieces.empty() && !tree.fill) {
    int64_t position = 0;
    for (size_t d = 0; d < input.dims().size(); ++d) {
      const int64_t index = *tree.map.index[d].evaluate(values);
      EXPECT_TRUE(0 <= index && index < input.dims()[d]) << index << " of " << input.dims()[d];
      position = position * input.dims()[d] + index;
    }
    return input.as<float>()[position];
  }
  const Tree* found = nullptr;
  for (const Tree& piece : tree.pieces) {
    if (!holds(piece.map, values)) continue;
    EXPECT_EQ(found, nullptr) << "two pieces have the element";
    found = &piece;
  }
  if (found) return at(*found, input, values);
  EXPECT_TRUE(tree.fill) << "no piece has the element";
  return tree.fill.value_or(0);
}

// Calls `visit` with the values of all symbols at each point of the space.
void for_each_point(const Space& space, const std::vector<int64_t>& symbols,
                    const std::function<void(std::span<const int64_t>)>& visit) {
  const Shape indices = space.indices(), extents = space.extents();
  std::vector<int64_t> values = symbols;
  const std::function<void(size_t)> walk = [&](size_t axis) {
    if (axis == indices.size()) return visit(values);
    const std::optional<SymbolId> id = indices[axis].as_symbol();
    if (id && values.size() <= *id) values.resize(*id + 1, 0);
    const int64_t extent = *extents[axis].evaluate(symbols);
    for (int64_t i = 0; i < extent; ++i) {
      if (id) values[*id] = i;
      walk(axis + 1);
    }
  };
  walk(0);
}

Tensor numbered(const Dims& dims) {
  Tensor tensor = *Tensor::allocate(DType::f32, dims);
  for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(IndexMap, ChainsOfMovementsReadWhatTheyEvaluateTo) {
  int mapped = 0, points = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    const Graph graph = MovementChains(seed).make();
    const Value& result = *graph.outputs()[0].value;
    Space space(graph.symbol_ranges());
    const Shape whole = space.add(result.shape());
    std::optional<Tree> tree = tree_of(result, {whole, {}}, space);
    if (!tree) continue;
    ++mapped;
    bring_up_to_date(*tree, space);
    const Shape output = space.current(whole);
    for (const std::array<int64_t, 2>& sizes : kChainSizes) {
      const std::vector<int64_t> symbols = symbols_of_chain(graph, sizes);
      Dims dims;
      for (const Expr& dim : graph.inputs()[0]->shape()) dims.push_back(*dim.evaluate(symbols));
      const Tensor input = numbered(dims);
      const Result<std::vector<Tensor>> expected = ir::interpret(graph, std::span(&input, 1));
      if (!expected) continue;  // sizes that the network refuses
      int64_t count = 0;
      for_each_point(space, symbols, [&](std::span<const int64_t> values) {
        int64_t position = 0;
        for (size_t d = 0; d < output.size(); ++d)
          position = position * (*expected)[0].dims()[d] + *output[d].evaluate(values);
        ++count;
        ASSERT_EQ(at(*tree, input, values), (*expected)[0].as<float>()[position])
            << "seed " << seed << ", sizes " << sizes[0] << " " << sizes[1] << "\n"
            << ir::to_text(graph);
      });
      ASSERT_EQ(count, (*expected)[0].volume());
      points += static_cast<int>(count);
    }
  }
  EXPECT_GT(mapped, 400);
  EXPECT_GT(points, 10000);
}

// Of a reshape that splits an axis, the map is found again where it is split already: others read it, too.
TEST(IndexMap, AreFoundAgainWhereAxesAreSplit) {
  const Result<Graph> graph = ir::parse_graph(R"(graph "g" {
    symbol h in [-8, 8]
    symbol w in [-8, 8]
    input %x: f32[2, h, w, 3]
    %s = constant{value=i64[2]{-1, 3}}()
    %y = reshape(%x, %s)
    output %y
  })");
  ASSERT_TRUE(graph) << graph.error().to_string();
  const Value* value = graph->outputs()[0].value;
  Space space(graph->symbol_ranges());
  const IndexMap map{space.add(value->shape()), {}};
  const std::optional<Sources> first = sources_of(*value->producer(), 0, map, space);
  ASSERT_TRUE(first && space.is_split());
  const std::optional<Sources> again = sources_of(*value->producer(), 0, map, space);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->pieces[0].map.index, space.current(first->pieces[0].map.index));
}

// The map of the graph's only output to its first input, as text, and the axes' extents.
std::string map_of(const std::string& body) {
  const Result<Graph> graph = ir::parse_graph("graph \"g\" {\n" + body + "\n}");
  if (!graph) return graph.error().to_string();
  Space space(graph->symbol_ranges());
  const Value* value = graph->outputs()[0].value;
  IndexMap map{space.add(value->shape()), {}};
  while (const Node* node = value->producer()) {
    std::optional<Sources> sources = sources_of(*node, value->index(), map, space);
    if (!sources) return "none";
    map = sources->pieces[0].map;
    value = node->input(0);
  }
  map.index = space.current(map.index);
  const std::vector<std::string> names = space.names(graph->symbol_names());
  return to_string(map, names) + " of " + to_string(space.extents(), names);
}

TEST(IndexMap, HeadsAreSplitAndMerged) {
  EXPECT_EQ(map_of(R"(
    input %x: f32[b, 12, t, 64]
    %y = transpose{perm=[0, 2, 1, 3]}(%x)
    %s = constant{value=i64[3]{0, 0, 768}}()
    %z = reshape(%y, %s)
    output %z)"),
            "(i0, i2o, i1, i2i) of [b, t, 12, 64]");
  EXPECT_EQ(map_of(R"(
    input %x: f32[b, t, 768]
    %s = constant{value=i64[4]{0, 0, 12, 64}}()
    %y = reshape(%x, %s)
    %z = transpose{perm=[0, 2, 1, 3]}(%y)
    output %z)"),
            "(i0, i2, 64*i1 + i3) of [b, 12, t, 64]");
}

TEST(IndexMap, ExtentsMayBeQuotients) {
  EXPECT_EQ(map_of(R"(
    symbol h in [64, 128]
    input %x: f32[b, 16, h, 5]
    %zero = constant{value=i64[1]{0}}()
    %end = constant{value=i64[1]{1000}}()
    %two = constant{value=i64[1]{2}}()
    %four = constant{value=i64[1]{4}}()
    %part = slice(%x, %zero, %end, %two, %four)
    %s = constant{value=i64[3]{0, 0, -1}}()
    %y = reshape(%part, %s)
    %z = transpose{perm=[0, 2, 1]}(%y)
    output %z)"),
            "(i0, i2, 4*i1o, i1i) of [b, floordiv(h + 3, 4), 5, 16]");
}

TEST(IndexMap, PaddingHasADomain) {
  EXPECT_EQ(map_of(R"(
    input %x: f32[b, h]
    %s = constant{value=i64[4]{0, 1, 0, 2}}()
    %y = pad(%x, %s)
    %z = transpose{perm=[1, 0]}(%y)
    output %z)"),
            "(i1, i0 - 1) where 0 <= i0 - 1 < h of [h + 3, b]");
}

TEST(IndexMap, LongStepsTakeOneElement) {
  const std::string slice = R"(
    %at = constant{value=i64[1]{2}}()
    %far = constant{value=i64[1]{9223372036854775807}}()
    %axis = constant{value=i64[1]{1}}()
    %y = slice(%x, %at, %far, %axis, %far)
    output %y)";
  EXPECT_EQ(map_of("input %x: f32[b, 6]" + slice), "(i0, 2) of [b, 1]");
  EXPECT_EQ(map_of("input %x: f32[b, h]" + slice), "none");  // h is open
}

TEST(IndexMap, PixelsAreShuffled) {
  EXPECT_EQ(map_of(R"(
    input %x: f32[n, 8, h, w]
    %y = depth_to_space{block=2, mode=crd}(%x)
    output %y)"),
            "(i0, 4*i1 + 2*i2i + i3i, i2o, i3o) of [n, 2, h, 2, w, 2]");
}

TEST(Access, StridesAndBoundsAlongAxes) {
  Space space({{1, 8}});
  const Expr h = Expr::symbol(0);
  const Shape index = space.add(Shape{4, h});
  const Expr& i = index[0];
  const Expr& j = index[1];
  const std::optional<Access> access =
      access_of({{j - Expr(2), 3 * i + Expr(1)}, {{j - Expr(2), 0, h}}}, {Expr(16), Expr(1)}, space);
  ASSERT_TRUE(access);
  EXPECT_EQ(access->offset, Expr(-31));
  EXPECT_EQ(access->strides, Shape({3, 16}));
  ASSERT_EQ(access->bounds.size(), 1u);
  EXPECT_EQ(access->bounds[0].axis, 1u);
  EXPECT_EQ(access->bounds[0].begin, Expr(2));
  EXPECT_EQ(access->bounds[0].end, h + Expr(2));
  EXPECT_FALSE(access_of({{floordiv(i, 3), j}, {}}, {Expr(16), Expr(1)}, space));  // not linear
  EXPECT_FALSE(access_of({{i, j}, {{i + j, 1, h}}}, {Expr(16), Expr(1)}, space));  // not about one axis
  EXPECT_TRUE(access_of({{i, j}, {{i, 0, 4}}}, {Expr(16), Expr(1)}, space)->bounds.empty());
}

TEST(Access, TheLongerStepsOfSplitAxesDecide) {
  Space space({});
  const Shape index = space.add(Shape{4, 16});
  const Expr place = 16 * index[0] + index[1];
  const auto bound_of = [&](int64_t begin, int64_t end) {
    const std::optional<Access> access = access_of({{place}, {{place, begin, end}}}, {Expr(1)}, space);
    return access ? access->bounds : std::vector<Bound>();
  };
  const std::vector<Bound> bounds = bound_of(16, 48);
  ASSERT_EQ(bounds.size(), 1u);
  EXPECT_EQ(bounds[0].axis, 0u);
  EXPECT_EQ(bounds[0].begin, Expr(1));
  EXPECT_EQ(bounds[0].end, Expr(3));
  EXPECT_TRUE(bound_of(0, 40).empty());  // both decide
  EXPECT_TRUE(bound_of(8, 64).empty());
  const Expr meeting = 15 * index[0] + index[1];  // two points at one place
  EXPECT_FALSE(access_of({{meeting}, {{meeting, 0, 30}}}, {Expr(1)}, space));
}

TEST(Access, BoundsOfOneAxisAreOne) {
  Space space({{0, 8}});
  const Expr h = Expr::symbol(0);
  const Shape index = space.add(Shape{h + Expr(9)});
  const Expr& i = index[0];
  const std::optional<Access> access =
      access_of({{i - Expr(5)}, {{i - Expr(2), 0, h + Expr(4)}, {i - Expr(5), 0, h}}}, {Expr(1)}, space);
  ASSERT_TRUE(access);
  ASSERT_EQ(access->bounds.size(), 1u);
  EXPECT_EQ(access->bounds[0].begin, Expr(5));
  EXPECT_EQ(access->bounds[0].end, h + Expr(5));
  EXPECT_FALSE(access_of({{i}, {{i, 3, h + Expr(9)}, {i, 0, h}}}, {Expr(1)}, space));  // may end before it begins
}

TEST(Access, NoneWhereOffsetsOverflow) {
  const Space space{{}};
  EXPECT_FALSE(access_of({{INT64_MAX}, {}}, {Expr(2)}, space));
}

}  // namespace
}  // namespace lathe
