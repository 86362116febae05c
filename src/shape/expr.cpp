// SPDX-License-Identifier: Apache-2.0
// Sums and products of expressions, and the order that makes the normal form unique.
#include "shape/expr.h"

#include <algorithm>

#include "base/hash.h"
#include "shape/expr_poly.h"

namespace lathe {
namespace {

uint64_t hash_of(const Atom& atom) { return atom.call ? atom.call->hash : Hasher().add(uint64_t{atom.symbol}).value(); }
uint32_t size_of(const Atom& atom) { return atom.call ? atom.call->size : 1; }
uint32_t depth_of(const Atom& atom) { return atom.call ? atom.call->depth : 0; }

uint32_t depth_of(const Expr& e) { return ExprAccess::poly(e) ? ExprAccess::poly(e)->depth : 0; }

// Merges two sorted term lists; nullopt on overflow.
std::optional<std::vector<Term>> add_terms(const std::vector<Term>& a, const std::vector<Term>& b) {
  std::vector<Term> sum;
  sum.reserve(a.size() + b.size());
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    const auto order = compare(x->monomial, y->monomial);
    if (order > 0) {
      sum.push_back(*x++);
    } else if (order < 0) {
      sum.push_back(*y++);
    } else {
      int64_t coefficient;
      if (__builtin_add_overflow(x->coefficient, y->coefficient, &coefficient)) return std::nullopt;
      if (coefficient != 0) sum.push_back({coefficient, x->monomial});
      ++x, ++y;
    }
  }
  sum.insert(sum.end(), x, a.end());
  sum.insert(sum.end(), y, b.end());
  return sum;
}

Expr scale(const Expr& e, int64_t factor) {
  if (factor == 0) return Expr(0);
  if (factor == 1) return e;
  int64_t constant;
  if (__builtin_mul_overflow(ExprAccess::constant(e), factor, &constant)) return Expr::invalid();
  std::vector<Term> terms = ExprAccess::terms(e);
  for (Term& term : terms)
    if (__builtin_mul_overflow(term.coefficient, factor, &term.coefficient)) return Expr::invalid();
  return ExprAccess::make(std::move(terms), constant);
}

// e * term, for a term with a monomial.
Expr multiply_by_term(const Expr& e, const Term& term) {
  const std::vector<Term>& terms = ExprAccess::terms(e);
  std::vector<Term> product;
  product.reserve(terms.size() + 1);
  int64_t coefficient;
  for (const Term& t : terms) {  // multiplying by a monomial keeps the order
    if (__builtin_mul_overflow(t.coefficient, term.coefficient, &coefficient)) return Expr::invalid();
    product.push_back({coefficient, multiply(t.monomial, term.monomial)});
  }
  if (__builtin_mul_overflow(ExprAccess::constant(e), term.coefficient, &coefficient)) return Expr::invalid();
  if (coefficient != 0) product.push_back({coefficient, term.monomial});
  return ExprAccess::make(std::move(product), 0);
}

}  // namespace

const std::vector<Term>& ExprAccess::terms(const Expr& e) {
  static const std::vector<Term> none;
  return e.poly_ ? e.poly_->terms : none;
}

Expr ExprAccess::with_constant(const Expr& e, int64_t constant) {
  Expr copy = e;
  copy.constant_ = constant;
  return copy;
}

Expr ExprAccess::make(std::vector<Term> terms, int64_t constant) {
  if (terms.empty()) return Expr(constant);
  uint64_t size = 1;
  uint32_t depth = 0;
  Hasher hasher;
  for (const Term& term : terms) {
    hasher.add(static_cast<uint64_t>(term.coefficient));
    ++size;
    if (degree(term.monomial) > kMaxDegree) return Expr::invalid();
    for (const Factor& factor : term.monomial) {
      hasher.add(hash_of(factor.atom)).add(uint64_t{factor.power});
      size += size_of(factor.atom);
      depth = std::max(depth, depth_of(factor.atom));
    }
    if (size > kMaxExprSize) return Expr::invalid();
  }
  auto poly = std::make_shared<Poly>();
  poly->terms = std::move(terms);
  poly->hash = hasher.value();
  poly->size = static_cast<uint32_t>(size);
  poly->depth = depth;
  Expr e(constant);
  e.poly_ = std::move(poly);
  return e;
}

Expr ExprAccess::call(CallKind kind, const Expr& a, const Expr& b) {
  const uint32_t depth = std::max(depth_of(a), depth_of(b)) + 1;
  const uint32_t size = a.size() + b.size() + 1;
  if (depth > kMaxExprDepth || size > kMaxExprSize) return Expr::invalid();
  const uint64_t hash =
      Hasher().add(static_cast<uint64_t>(kind) + 1).add(uint64_t{a.hash()}).add(uint64_t{b.hash()}).value();
  return from_term(1, {{{0, std::make_shared<const Call>(Call{kind, a, b, hash, size, depth})}, 1}});
}

std::strong_ordering compare(const Atom& a, const Atom& b) {
  if (!a.call || !b.call) {  // symbols come first
    if (!a.call && !b.call) return a.symbol <=> b.symbol;
    return a.call ? std::strong_ordering::greater : std::strong_ordering::less;
  }
  if (a.call == b.call) return std::strong_ordering::equal;
  if (const auto order = a.call->kind <=> b.call->kind; order != 0) return order;
  if (const auto order = compare(a.call->a, b.call->a); order != 0) return order;
  return compare(a.call->b, b.call->b);
}

std::strong_ordering compare(const Monomial& a, const Monomial& b) {
  if (const auto order = degree(a) <=> degree(b); order != 0) return order;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const auto order = compare(b[i].atom, a[i].atom); order != 0) return order;  // the earlier atom weighs more
    if (const auto order = a[i].power <=> b[i].power; order != 0) return order;
  }
  return a.size() <=> b.size();
}

std::strong_ordering compare(const Expr& a, const Expr& b) {
  const std::vector<Term>& x = ExprAccess::terms(a);
  const std::vector<Term>& y = ExprAccess::terms(b);
  if (&x != &y) {
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (const auto order = compare(y[i].monomial, x[i].monomial); order != 0) return order;
      if (const auto order = x[i].coefficient <=> y[i].coefficient; order != 0) return order;
    }
    if (const auto order = y.size() <=> x.size(); order != 0) return order;
  }
  return ExprAccess::constant(a) <=> ExprAccess::constant(b);
}

uint32_t degree(const Monomial& monomial) {
  uint32_t sum = 0;
  for (const Factor& factor : monomial) sum += factor.power;
  return sum;
}

Monomial multiply(const Monomial& a, const Monomial& b) {
  Monomial product;
  product.reserve(a.size() + b.size());
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    const auto order = compare(x->atom, y->atom);
    product.push_back(order <= 0 ? *x : *y);
    if (order == 0) product.back().power += y->power;
    if (order <= 0) ++x;
    if (order >= 0) ++y;
  }
  product.insert(product.end(), x, a.end());
  product.insert(product.end(), y, b.end());
  return product;
}

std::optional<Monomial> divide(const Monomial& a, const Monomial& b) {
  Monomial quotient;
  auto y = b.begin();
  for (const Factor& factor : a) {
    if (y == b.end() || compare(factor.atom, y->atom) != 0) {
      quotient.push_back(factor);
      continue;
    }
    if (factor.power < y->power) return std::nullopt;
    if (factor.power > y->power) quotient.push_back({factor.atom, factor.power - y->power});
    ++y;
  }
  if (y != b.end()) return std::nullopt;
  return quotient;
}

Expr from_term(int64_t coefficient, Monomial monomial) {
  if (coefficient == 0 || monomial.empty()) return Expr(coefficient);
  std::vector<Term> terms;
  terms.push_back({coefficient, std::move(monomial)});
  return ExprAccess::make(std::move(terms), 0);
}

Expr Expr::symbol(SymbolId id) { return from_term(1, {{{id, nullptr}, 1}}); }

Expr Expr::invalid() {
  Expr e;
  e.valid_ = false;
  return e;
}

std::optional<SymbolId> Expr::as_symbol() const {
  if (!valid_ || !poly_ || constant_ != 0 || poly_->terms.size() != 1) return std::nullopt;
  const Term& term = poly_->terms[0];
  if (term.coefficient != 1 || term.monomial.size() != 1) return std::nullopt;
  const Factor& factor = term.monomial[0];
  if (factor.power != 1 || factor.atom.call) return std::nullopt;
  return factor.atom.symbol;
}

Expr operator+(const Expr& a, const Expr& b) {
  int64_t constant;
  if (!a.valid_ || !b.valid_ || __builtin_add_overflow(a.constant_, b.constant_, &constant)) return Expr::invalid();
  if (!a.poly_ || !b.poly_) return ExprAccess::with_constant(a.poly_ ? a : b, constant);
  auto terms = add_terms(a.poly_->terms, b.poly_->terms);
  return terms ? ExprAccess::make(std::move(*terms), constant) : Expr::invalid();
}

Expr operator-(const Expr& a, const Expr& b) {
  int64_t constant;
  if (!a.valid_ || !b.valid_ || __builtin_sub_overflow(a.constant_, b.constant_, &constant)) return Expr::invalid();
  if (a.poly_ == b.poly_) return Expr(constant);
  if (!b.poly_) return ExprAccess::with_constant(a, constant);
  const Expr negated = scale(ExprAccess::with_constant(b, 0), -1);
  return negated.valid_ ? ExprAccess::with_constant(a, 0) + ExprAccess::with_constant(negated, constant) : negated;
}

Expr operator*(const Expr& a, const Expr& b) {
  if (!a.valid_ || !b.valid_) return Expr::invalid();
  if (!a.poly_ && !b.poly_) {
    int64_t product;
    return __builtin_mul_overflow(a.constant_, b.constant_, &product) ? Expr::invalid() : Expr(product);
  }
  if (!a.poly_) return scale(b, a.constant_);
  if (!b.poly_) return scale(a, b.constant_);
  Expr product = scale(a, b.constant_);
  for (const Term& term : b.poly_->terms) {
    if (!product.valid_) break;
    product += multiply_by_term(a, term);
  }
  return product;
}

bool operator==(const Expr& a, const Expr& b) {
  if (!a.valid_ || !b.valid_ || a.constant_ != b.constant_) return false;
  if (a.poly_ == b.poly_) return true;
  return a.poly_ && b.poly_ && a.poly_->hash == b.poly_->hash && compare(a, b) == 0;
}

void Expr::collect_symbols(std::vector<SymbolId>& out) const {
  const auto start = static_cast<std::ptrdiff_t>(out.size());
  for (const Term& term : ExprAccess::terms(*this)) {
    for (const Factor& factor : term.monomial) {
      if (factor.atom.call) {
        factor.atom.call->a.collect_symbols(out);
        factor.atom.call->b.collect_symbols(out);
      } else {
        out.push_back(factor.atom.symbol);
      }
    }
  }
  std::sort(out.begin() + start, out.end());
  out.erase(std::unique(out.begin() + start, out.end()), out.end());
}

uint32_t Expr::size() const { return poly_ ? poly_->size : 1; }

size_t Expr::hash() const {
  if (!valid_) return 1;
  return Hasher().add(static_cast<uint64_t>(constant_)).add(poly_ ? poly_->hash : 0).value();
}

}  // namespace lathe
