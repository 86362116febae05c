// SPDX-License-Identifier: Apache-2.0
#include "indexing/index_map.h"

namespace lathe {
namespace {

// a / b where that is proven to be whole.
std::optional<Expr> quotient(const Expr& a, const Expr& b) {
  if (b.is_constant() && *b.as_constant() <= 0) return std::nullopt;
  const Expr q = floordiv(a, b);
  return q * b == a ? std::optional(q) : std::nullopt;
}

// Dimensions that follow one another in both shapes and have the same volume: [6, s, 4] and [2, 3, 4*s] consist of
// {6} and {2, 3}, {s, 4} and {4*s}.
struct Group {
  std::vector<size_t> from, to;
};

std::optional<std::vector<Group>> groups_of(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    Group group{{i}, {j}};
    Expr a = from[i++], b = to[j++];
    while (a != b) {
      const bool b_is_larger = quotient(b, a).has_value(), a_is_larger = quotient(a, b).has_value();
      const bool takes_to = a_is_larger && !b_is_larger ? j < to.size() : i == from.size();
      if (takes_to ? j == to.size() : i == from.size()) return std::nullopt;
      (takes_to ? group.to : group.from).push_back(takes_to ? j : i);
      (takes_to ? b : a) *= takes_to ? to[j++] : from[i++];
    }
    groups.push_back(std::move(group));
  }
  for (; i < from.size(); ++i)
    if (from[i] != Expr(1)) return std::nullopt;
  for (; j < to.size(); ++j) {
    if (to[j] != Expr(1)) return std::nullopt;
    groups.push_back({{}, {j}});
  }
  return groups;
}

}  // namespace

std::optional<Shape> regrouped(const Shape& index, const Shape& from, const Shape& to, Space& space) {
  const std::optional<std::vector<Group>> groups = groups_of(from, to);
  if (!groups) return std::nullopt;
  Shape result(to.size());
  for (const Group& group : *groups) {
    Expr rest = 0, inner = 1;
    for (const size_t d : group.from) rest = rest * from[d] + index[d];
    for (const size_t d : group.to) inner *= to[d];
    for (const size_t d : group.to) {
      if (d == group.to.back()) {
        result[d] = rest;
        break;
      }
      if (to[d] == Expr(1)) {  // also of a point that has no element, of which no quotient is known
        result[d] = 0;
        continue;
      }
      const std::optional<Expr> stride = quotient(inner, to[d]);
      if (!stride) return std::nullopt;
      inner = *stride;
      const std::optional<Expr> part = space.resolve(floordiv(rest, inner));
      if (!part) return std::nullopt;
      result[d] = *part;
      rest = space.current(rest) - *part * inner;
    }
  }
  for (Expr& e : result) {
    const std::optional<Expr> whole = space.resolve(e);
    if (!whole) return std::nullopt;
    e = *whole;
  }
  return space.current(result);
}

std::optional<Shape> broadcast_index(const Shape& operand, const Shape& result, const Shape& index) {
  if (operand.size() > result.size()) return std::nullopt;
  const size_t lead = result.size() - operand.size();
  Shape own;
  for (size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] != Expr(1) && operand[d] != result[lead + d]) return std::nullopt;
    own.push_back(operand[d] == Expr(1) ? Expr(0) : index[lead + d]);
  }
  return own;
}

std::string to_string(const IndexMap& map, std::span<const std::string> names) {
  std::string text = "(";
  for (const Expr& e : map.index) text += (text.size() > 1 ? ", " : "") + e.to_string(names);
  text += ')';
  const char* before = " where ";
  for (const Interval& each : map.domain) {
    text +=
        before + each.begin.to_string(names) + " <= " + each.value.to_string(names) + " < " + each.end.to_string(names);
    before = ", ";
  }
  return text;
}

}  // namespace lathe
