// SPDX-License-Identifier: Apache-2.0
#include "lowering/layout_costs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "lowering/min_cut.h"

namespace lathe {
namespace {

constexpr size_t kLinear = static_cast<size_t>(Layout::linear), kLast = static_cast<size_t>(Layout::channels_last);

// The cut is of whole numbers, for those are exact and finding it ends: all costs add up to kAll, and what cannot be is
// more than that. Costs that differ by kEqual or less do so by rounding.
constexpr int64_t kAll = int64_t{1} << 44, kWholeNever = 4 * kAll, kEqual = kAll >> 34;

// Sets of variables, each of which is known to have the same layout as the first of its set, or the other one.
class ParitySets {
 public:
  explicit ParitySets(size_t count) : parent_(count), differs_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  // The first of the variable's set, and whether the variable differs from it.
  std::pair<size_t, bool> find(size_t variable) const {
    bool differs = false;
    for (; parent_[variable] != variable; variable = parent_[variable]) differs ^= differs_[variable];
    return {variable, differs};
  }
  // False when the opposite is known already.
  bool join(size_t a, size_t b, bool differ) {
    const auto [root_a, differs_a] = find(a);
    const auto [root_b, differs_b] = find(b);
    if (root_a == root_b) return (differs_a ^ differs_b) == differ;
    parent_[root_b] = root_a;
    differs_[root_b] = differs_a ^ differs_b ^ differ;
    return true;
  }

 private:
  std::vector<size_t> parent_;
  std::vector<bool> differs_;  // from the parent
};

}  // namespace

size_t LayoutCosts::variable(const ir::Value* value) {
  const auto [it, is_new] = variables_.emplace(value, terms_of_.size());
  if (is_new) terms_of_.emplace_back();
  return it->second;
}

void LayoutCosts::add(const ir::Value* value, Costs costs, std::string reason) {
  const size_t v = variable(value);
  terms_of_[v].push_back(terms_.size());
  terms_.push_back({v, v, {Costs{costs[0], costs[0]}, Costs{costs[1], costs[1]}}, std::move(reason)});
}

void LayoutCosts::add(const ir::Value* first, const ir::Value* second, std::array<Costs, 2> costs, std::string reason) {
  if (first == second) return add(first, {costs[0][0], costs[1][1]}, std::move(reason));
  const size_t a = variable(first), b = variable(second);
  for (const size_t v : {a, b}) terms_of_[v].push_back(terms_.size());
  terms_.push_back({a, b, costs, std::move(reason)});
}

int64_t LayoutCosts::whole(double cost) const { return cost == kNever ? kWholeNever : std::llround(cost * units_); }

int64_t LayoutCosts::preference(const Term& term) const {
  const auto& costs = term.costs;
  return whole(costs[0][0]) + whole(costs[1][1]) - whole(costs[0][1]) - whole(costs[1][0]);
}

// Which variables the cut has the other way round, so that all terms prefer equality; the strongest are heard first.
void LayoutCosts::find_flips() {
  std::vector<size_t> pairs;
  for (size_t i = 0; i < terms_.size(); ++i)
    if (terms_[i].first != terms_[i].second && preference(terms_[i]) != 0) pairs.push_back(i);
  std::stable_sort(pairs.begin(), pairs.end(), [&](size_t a, size_t b) {
    return std::abs(preference(terms_[a])) > std::abs(preference(terms_[b]));
  });
  ParitySets sets(terms_of_.size());
  left_out_.assign(terms_.size(), false);
  for (const size_t i : pairs) left_out_[i] = !sets.join(terms_[i].first, terms_[i].second, preference(terms_[i]) > 0);
  flipped_.clear();
  for (size_t v = 0; v < terms_of_.size(); ++v) flipped_.push_back(sets.find(v).second);
}

// E(a, b) of a term is E(0, 0) + (E(1, 0) - E(0, 0)) a + (E(1, 1) - E(1, 0)) b + k (1 - a) b, with k = -preference >= 0
// once variables are flipped.
void LayoutCosts::cut() {
  MinCut graph(terms_of_.size());
  std::vector<std::array<int64_t, 2>> single(terms_of_.size(), {0, kEqual});  // of equal costs linear wins
  for (size_t v = 0; v < single.size(); ++v)
    if (flipped_[v]) std::swap(single[v][0], single[v][1]);
  for (size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    const size_t fa = flipped_[term.first], fb = flipped_[term.second];
    const auto cost = [&](size_t a, size_t b) { return whole(term.costs[a ^ fa][b ^ fb]); };
    if (term.first == term.second) {
      for (size_t l : {0, 1}) single[term.first][l] += cost(l, l);
    } else if (left_out_[i]) {
      for (size_t l : {0, 1}) {
        single[term.first][l] += (cost(l, 0) + cost(l, 1)) / 2;
        single[term.second][l] += (cost(0, l) + cost(1, l)) / 2;
      }
    } else {
      single[term.first][1] += cost(1, 0) - cost(0, 0);
      single[term.second][1] += cost(1, 1) - cost(1, 0);
      graph.add_edge(term.first, term.second, cost(0, 1) + cost(1, 0) - cost(0, 0) - cost(1, 1));
    }
  }
  for (size_t v = 0; v < single.size(); ++v) {
    const int64_t least = std::min(single[v][0], single[v][1]);
    graph.add_node(v, single[v][1] - least, single[v][0] - least);
  }
  const std::vector<bool> on_sink_side = graph.solve();
  chosen_.clear();
  for (size_t v = 0; v < single.size(); ++v) chosen_.push_back(on_sink_side[v] ^ flipped_[v]);
}

double LayoutCosts::cost_of(const Term& term, size_t variable, size_t layout) const {
  const size_t a = term.first == variable ? layout : chosen_[term.first];
  const size_t b = term.second == variable ? layout : chosen_[term.second];
  return term.costs[a][b];
}

bool LayoutCosts::improve() {
  bool improves = false;
  for (size_t v = 0; v < terms_of_.size(); ++v) {
    int64_t gain = 0;  // of the other layout
    for (const size_t i : terms_of_[v])
      gain += whole(cost_of(terms_[i], v, chosen_[v])) - whole(cost_of(terms_[i], v, 1 - chosen_[v]));
    if (gain <= kEqual) continue;
    chosen_[v] = 1 - chosen_[v];
    improves = true;
  }
  return improves;
}

void LayoutCosts::solve() {
  double all = 0;
  for (const Term& term : terms_)
    for (const Costs& costs : term.costs)
      for (const double cost : costs) all += cost == kNever ? 0 : cost;
  units_ = all > 0 ? static_cast<double>(kAll) / all : 0;
  find_flips();
  cut();
  while (improve()) {  // each round lowers the sum, which is a whole number
  }
}

Layout LayoutCosts::layout(const ir::Value* value) const {
  const auto it = variables_.find(value);
  return it == variables_.end() ? Layout::linear : static_cast<Layout>(chosen_[it->second]);
}

std::string LayoutCosts::explain(const ir::Value* value) const {
  const auto it = variables_.find(value);
  if (it == variables_.end()) return "";
  const size_t v = it->second;
  const auto text = [](double us) { return us == kNever ? "never" : fmt::format("{:.3f}", us); };
  std::string table = fmt::format("{:>12} {:>14}  why\n", "linear us", "chan.-last us");
  Costs sums{};
  for (const size_t i : terms_of_[v]) {
    const Costs costs{cost_of(terms_[i], v, kLinear), cost_of(terms_[i], v, kLast)};
    for (const size_t l : {kLinear, kLast}) sums[l] += costs[l];
    table += fmt::format("{:>12} {:>14}  {}\n", text(costs[0]), text(costs[1]), terms_[i].reason);
  }
  return table + fmt::format("{:>12} {:>14}  in all: {}\n", text(sums[0]), text(sums[1]),
                             chosen_[v] == kLast ? "channels-last" : "linear");
}

}  // namespace lathe
