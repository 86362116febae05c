// SPDX-License-Identifier: Apache-2.0
// Layouts of values as a problem of least cost: terms about one value or about two, in microseconds (lowering/cost.h),
// whose sum over the graph the assignment minimises.
//
// Where terms of two values prefer that both have the same layout (or both different ones, as beside a transposition,
// consistently), the minimum is exact: it is a minimum cut (Kolmogorov and Zabih, "What energy functions can be
// minimized via graph cuts?", 2004). A term that contradicts the others in that is left out of the cut, and values are
// then improved one by one.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "tuning/problem.h"

namespace lathe {

class LayoutCosts {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();  // of what cannot be
  // By layout: linear, channels-last.
  using Costs = std::array<double, 2>;

  void add(const ir::Value* value, Costs costs, std::string reason);
  // costs[l] is for the first value in layout l.
  void add(const ir::Value* first, const ir::Value* second, std::array<Costs, 2> costs, std::string reason);

  void solve();
  // Linear for values that no term is about.
  Layout layout(const ir::Value* value) const;

  // A table: each term that is about the value, and what it costs with either layout, the others being as chosen.
  std::string explain(const ir::Value* value) const;

 private:
  struct Term {
    size_t first = 0, second = 0;  // the same for terms of one value
    std::array<Costs, 2> costs{};
    std::string reason;
  };
  size_t variable(const ir::Value* value);
  void find_flips();
  void cut();
  bool improve();
  double cost_of(const Term& term, size_t variable, size_t layout) const;
  int64_t whole(double cost) const;
  int64_t preference(const Term& term) const;  // below 0: for the same layout; above: for different ones

  std::unordered_map<const ir::Value*, size_t> variables_;
  std::vector<Term> terms_;
  std::vector<std::vector<size_t>> terms_of_;  // by variable
  std::vector<bool> flipped_;                  // the cut's sides stand for the other layout
  std::vector<bool> left_out_;                 // by term: its preference, from the cut
  std::vector<size_t> chosen_;
  double units_ = 0;  // of a cost of 1, as the cut counts
};

}  // namespace lathe
