// SPDX-License-Identifier: Apache-2.0
// The normal form behind Expr: a sum of terms over atoms. Only shape/expr*.cpp include this.
#pragma once

#include <compare>
#include <memory>
#include <utility>
#include <vector>

#include "shape/broadcast.h"

namespace lathe {

// Limits of one expression; past them it becomes invalid, which bounds every operation whatever a file says.
inline constexpr uint32_t kMaxExprSize = 4096;  // nodes, shared ones counted each time
inline constexpr uint32_t kMaxExprDepth = 64;   // nested floordiv, mod, min, max and broadcast
inline constexpr uint32_t kMaxDegree = 64;

enum class CallKind : uint8_t { floordiv, mod, min, max, broadcast };

struct Call {
  CallKind kind;
  Expr a, b;
  uint64_t hash;
  uint32_t size;
  uint32_t depth;
};

struct Atom {
  SymbolId symbol = 0;  // when call is null
  std::shared_ptr<const Call> call;
};

struct Factor {
  Atom atom;
  uint32_t power = 1;
};

using Monomial = std::vector<Factor>;  // ascending by atom, without repeats; never empty in a Term

struct Term {
  int64_t coefficient = 0;  // never 0 in a Poly
  Monomial monomial;
};

struct Expr::Poly {
  std::vector<Term> terms;  // descending by compare(Monomial), never empty; the constant term is Expr::constant_
  uint64_t hash = 0;
  uint32_t size = 0;
  uint32_t depth = 0;
};

struct ExprAccess {
  using Poly = Expr::Poly;
  static const Poly* poly(const Expr& e) { return e.poly_.get(); }
  static int64_t constant(const Expr& e) { return e.constant_; }
  static const std::vector<Term>& terms(const Expr& e);
  static Expr with_constant(const Expr& e, int64_t constant);  // the same terms, another constant term
  // Terms must be sorted and merged; computes hash and size, checks the limits.
  static Expr make(std::vector<Term> terms, int64_t constant);
  static Expr call(CallKind kind, const Expr& a, const Expr& b);  // the atom, without simplification
};

std::strong_ordering compare(const Expr& a, const Expr& b);  // total, structural, the same on every run
std::strong_ordering compare(const Atom& a, const Atom& b);
std::strong_ordering compare(const Monomial& a, const Monomial& b);  // graded lexicographic: a monomial order

// The min or max of these, simplified; there is at least one.
Expr combine(std::span<const Expr> operands, CallKind kind);
Expr call_of(CallKind kind, const Expr& a, const Expr& b);  // floordiv(a, b) and so on, simplified
// The operands of a chain of one kind: max(max(x, y), z) has x, y and z.
std::vector<Expr> operands_of(const Call& call);

// The operands of a sum that is a min or max of sums, as one of its terms is one: s - max(s - 128, 0) is the min of s
// and 128. Empty when no term makes it one, or several do.
std::vector<Expr> choices_of(const Expr& e, CallKind kind);

// gcd of the coefficients of all terms and `start`; INT64_MIN counts as 1, so that the gcd fits.
int64_t content(const Expr& e, int64_t start);
// (e - e mod divisor) / divisor, term by term, where `divisor` divides every term's coefficient.
Expr divide_coefficients(const Expr& e, int64_t divisor);

Monomial multiply(const Monomial& a, const Monomial& b);
// a / b when b divides a (the quotient may be empty, that is 1).
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);
// coefficient * monomial; an empty monomial gives a constant.
Expr from_term(int64_t coefficient, Monomial monomial);
uint32_t degree(const Monomial& monomial);

}  // namespace lathe
