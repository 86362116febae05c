// SPDX-License-Identifier: Apache-2.0
// What must hold between dimensions for a network to have a meaning: shape rules state it, ranges prove it, narrow
// symbols, or leave it to be checked when shapes are known.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// Those of both sides; one may be there twice.
std::vector<SymbolId> symbols_of(const Constraint& constraint);

// The same of other symbols: Expr::substitute() on both sides.
Constraint substituted(Constraint constraint, std::span<const Expr> replacements);

// Whether two numbers are so related.
bool holds(Relation relation, int64_t a, int64_t b);

// True when it holds for all values of the symbols, false when it holds for none, nullopt when neither is proven. A
// symbol without an entry in `ranges` may have any value.
std::optional<bool> decide(const Constraint& constraint, std::span<const Range> ranges);

// Replaces `broadcast` and `expand` by `equal` where the ranges leave no other way to hold; otherwise the constraint
// comes back as it was. For s from 1 to 8, "49*s = 49, or one of them 1" becomes 49*s = 49, for neither side can be 1.
Constraint as_equation(Constraint constraint, std::span<const Range> ranges);

// The only value of a symbol that satisfies an equation in which it is the only unknown, and linear: s is 1 in
// 49 = 49*s. A factor that both sides share is cancelled first, if it cannot be 0: s is 3 in t*s = 3*t, t >= 1. nullopt
// when the equation has no such form or no integer solves it.
struct Solution {
  SymbolId symbol;
  int64_t value;
};
std::optional<Solution> solve(const Constraint& equation, std::span<const Range> ranges);

// The two symbols that an equation makes equal: s and t in 64*s*u = 64*t*u, where u cannot be 0.
std::optional<std::pair<SymbolId, SymbolId>> equal_symbols(const Constraint& equation, std::span<const Range> ranges);

// What an equation of products tells of broadcasts in them: sizes of at least 1 broadcast to no less than each of them
// is, so that 64*u*broadcast(s, t) = 64*u*s tells that t is s or 1. Each is an `expand` of a symbol.
std::vector<Constraint> expansions_of(const Constraint& equation, std::span<const Range> ranges);

// For messages: "49*batch = 49"; "s = t, or one of them 1" (broadcast); "s = t or 1" (expand).
std::string to_string(const Constraint& constraint, std::span<const std::string> names = {});

}  // namespace lathe
