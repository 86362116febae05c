// SPDX-License-Identifier: Apache-2.0
// What must hold between dimensions for a network to have a meaning: shape rules state it, ranges prove it, narrow
// symbols, or leave it to be checked when shapes are known.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "shape/expr.h"

namespace lathe {

enum class Relation : uint8_t {
  equal,      // a = b
  broadcast,  // a = b, or one of them is 1
  expand,     // a = b, or a is 1
  at_most,    // a <= b
};

struct Constraint {
  Relation relation = Relation::equal;
  Expr a, b;
  std::string where;  // who needs it: "reshape 'Reshape_12'"
  bool operator==(const Constraint& other) const { return relation == other.relation && a == other.a && b == other.b; }
};

// Whether two numbers are so related.
bool holds(Relation relation, int64_t a, int64_t b);

// Whether it holds for all values of the symbols (true), for none (false), or neither can be proven. A symbol without
// an entry in `ranges` may have any value.
std::optional<bool> decide(const Constraint& constraint, std::span<const Range> ranges);

// The same demand as an equation where the ranges leave only that: 49 and 49*s broadcast, s from 1 to 8: 49 = 49*s.
Constraint as_equation(Constraint constraint, std::span<const Range> ranges);

// What an equation says about a symbol that is linear in it and alone: 49 = 49*s says that s is 1. Factors that cannot
// be 0 are cancelled first. nullopt also when no integer solves it.
struct Solution {
  SymbolId symbol;
  int64_t value;
};
std::optional<Solution> solve(const Constraint& equation, std::span<const Range> ranges);

// "49*batch = 49", "s and t broadcast".
std::string to_string(const Constraint& constraint, std::span<const std::string> names = {});

}  // namespace lathe
