// SPDX-License-Identifier: Apache-2.0
// Cuts and layouts of least cost, against all that there are.
#include "lowering/layout_costs.h"

#include <gtest/gtest.h>

#include <random>

#include "lowering/min_cut.h"

namespace lathe {
namespace {

struct Edge {
  size_t from, to;
  int64_t cost;
};

TEST(MinCut, IsTheLeastOfAllCuts) {
  std::mt19937 random(1);
  const auto number = [&](size_t below) { return static_cast<size_t>(random()) % below; };
  for (int round = 0; round < 500; ++round) {
    const size_t nodes = 1 + number(9);
    std::vector<std::array<int64_t, 2>> sides(nodes);
    std::vector<Edge> edges;
    for (auto& side : sides) side = {static_cast<int64_t>(number(20)), static_cast<int64_t>(number(20))};
    for (size_t i = number(3 * nodes); i-- > 0;)
      if (const size_t a = number(nodes), b = number(nodes); a != b)
        edges.push_back({a, b, static_cast<int64_t>(number(20))});
    MinCut graph(nodes);
    for (size_t v = 0; v < nodes; ++v) graph.add_node(v, sides[v][0], sides[v][1]);
    for (const Edge& edge : edges) graph.add_edge(edge.from, edge.to, edge.cost);
    const auto cost_of = [&](const auto& is_on_sink_side) {
      int64_t cost = 0;
      for (size_t v = 0; v < nodes; ++v) cost += sides[v][is_on_sink_side(v) ? 0 : 1];
      for (const Edge& edge : edges)
        if (!is_on_sink_side(edge.from) && is_on_sink_side(edge.to)) cost += edge.cost;
      return cost;
    };
    int64_t least = INT64_MAX;
    for (size_t set = 0; set < size_t{1} << nodes; ++set)
      least = std::min(least, cost_of([&](size_t v) { return (set >> v & 1) != 0; }));
    const std::vector<bool> cut = graph.solve();
    EXPECT_EQ(cost_of([&](size_t v) { return cut[v]; }), least) << "round " << round;
  }
}

// Terms of random costs about the inputs of a graph.
class RandomLayouts {
 public:
  RandomLayouts(uint32_t seed, bool consistent) : random_(seed) {
    const size_t count = 2 + number(8);
    std::string text = "graph \"g\" {\n";
    for (size_t i = 0; i < count; ++i) text += fmt::format("input %x{}: f32[1, 8, 4, 4]\n", i);
    graph_ = *ir::parse_graph(text + "output %x0\n}");
    for (size_t v = 0; v < count; ++v) add(v, v, {cost(), cost(), 0, 0});
    std::vector<bool> turned;
    for (size_t v = 0; v < count; ++v) turned.push_back(number(2) == 0);
    for (size_t i = number(3 * count); i-- > 0;) {
      const size_t a = number(count), b = number(count);
      if (a == b) continue;
      // Equal ones cost nothing, or, of two of which one is turned, different ones.
      const bool differ = consistent ? turned[a] != turned[b] : number(2) == 0;
      add(a, b, differ ? std::array<double, 4>{cost(), 0, 0, cost()} : std::array<double, 4>{0, cost(), cost(), 0});
    }
    costs_.solve();
  }

  size_t size() const { return graph_.inputs().size(); }
  size_t chosen() const {
    size_t set = 0;
    for (size_t v = 0; v < size(); ++v)
      set |= (costs_.layout(graph_.inputs()[v]) == Layout::channels_last ? size_t{1} : 0) << v;
    return set;
  }
  double sum(size_t set) const {
    double sum = 0;
    for (const auto& [a, b, cost] : terms_) {
      const size_t of_a = set >> a & 1, of_b = set >> b & 1;
      sum += a == b ? cost[of_a] : cost[2 * of_a + of_b];
    }
    return sum;
  }

 private:
  size_t number(size_t below) { return static_cast<size_t>(random_()) % below; }
  double cost() { return static_cast<double>(number(50)) * 10; }
  void add(size_t a, size_t b, std::array<double, 4> cost) {
    terms_.emplace_back(a, b, cost);
    if (a == b)
      costs_.add(graph_.inputs()[a], {cost[0], cost[1]}, "one");
    else
      costs_.add(graph_.inputs()[a], graph_.inputs()[b],
                 {LayoutCosts::Costs{cost[0], cost[1]}, LayoutCosts::Costs{cost[2], cost[3]}}, "two");
  }

  std::mt19937 random_;
  ir::Graph graph_{"g"};
  LayoutCosts costs_;
  std::vector<std::tuple<size_t, size_t, std::array<double, 4>>> terms_;
};

TEST(LayoutCosts, AreTheLeastOfAll) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const RandomLayouts layouts(seed, true);
    double least = LayoutCosts::kNever;
    for (size_t set = 0; set < size_t{1} << layouts.size(); ++set) least = std::min(least, layouts.sum(set));
    EXPECT_EQ(layouts.sum(layouts.chosen()), least) << "seed " << seed;
  }
}

// Where terms contradict each other, no single value is better off with the other layout.
TEST(LayoutCosts, ContradictionsAreImproved) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const RandomLayouts layouts(seed, false);
    const size_t chosen = layouts.chosen();
    for (size_t v = 0; v < layouts.size(); ++v)
      EXPECT_LE(layouts.sum(chosen), layouts.sum(chosen ^ size_t{1} << v)) << "seed " << seed;
  }
}

TEST(LayoutCosts, AreExplained) {
  const ir::Graph graph = *ir::parse_graph("graph \"g\" {\ninput %x: f32[1, 8, 4, 4]\noutput %x\n}");
  const ir::Value* x = graph.inputs()[0];
  LayoutCosts costs;
  costs.add(x, {0, LayoutCosts::kNever}, "an input of the network");
  costs.add(x, {1.5, 0}, "read channels-last by conv");
  costs.solve();
  EXPECT_EQ(costs.explain(x),
            "   linear us  chan.-last us  why\n"
            "       0.000          never  an input of the network\n"
            "       1.500          0.000  read channels-last by conv\n"
            "       1.500          never  in all: linear\n");
}

}  // namespace
}  // namespace lathe
