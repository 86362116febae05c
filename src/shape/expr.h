// SPDX-License-Identifier: Apache-2.0
// Symbolic integers: what a dimension, a shape value, a byte offset or a launch extent is before shapes are known.
//
// An Expr is immutable and kept in a normal form: a polynomial with integer coefficients over atoms, where an atom is a
// symbol or floordiv/mod/min/max/broadcast of two expressions. Two expressions with equal normal forms are equal for
// all values of their symbols, so operator== is a proof of equality ("false" means "not proven"). Arithmetic wraps
// nowhere: an overflow while simplifying makes the expression invalid, which poisons what is computed from it; so does
// exceeding the size limits of shape/expr_poly.h. An invalid expression equals nothing, itself included.
//
// Division by 0 has no value, nor has the broadcast of two numbers that differ when neither is 1. Simplifying may give
// an expression a value where it had none (floordiv(n*s, n) is s, also for n = 0), but never changes a value that it
// had.
//
// Expressions share their parts, which never change: copies are cheap, and any number of threads may read one.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe {

using SymbolId = uint32_t;

// Inclusive interval; an unbounded side holds kUnbounded (or its negative).
struct Range {
  static constexpr int64_t kUnbounded = INT64_MAX;
  int64_t min = -kUnbounded;
  int64_t max = kUnbounded;
  bool operator==(const Range&) const = default;
};

class Expr {
 public:
  Expr() = default;                          // 0
  Expr(int64_t value) : constant_(value) {}  // NOLINT: a number is an expression
  static Expr symbol(SymbolId id);
  static Expr invalid();

  bool is_valid() const { return valid_; }
  bool is_constant() const { return valid_ && !poly_; }
  std::optional<int64_t> as_constant() const { return is_constant() ? std::optional(constant_) : std::nullopt; }
  std::optional<SymbolId> as_symbol() const;  // when the expression is exactly one symbol

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  friend bool operator==(const Expr& a, const Expr& b);
  Expr& operator+=(const Expr& b) { return *this = *this + b; }
  Expr& operator*=(const Expr& b) { return *this = *this * b; }

  // The value with symbol i replaced by values[i]; nullopt on overflow, division by zero, an invalid expression, or a
  // symbol that is not there or is kUnbound.
  static constexpr int64_t kUnbound = INT64_MIN;
  std::optional<int64_t> evaluate(std::span<const int64_t> values) const;

  // Symbol i replaced by replacements[i] (symbols past the end stay).
  Expr substitute(std::span<const Expr> replacements) const;

  // Every value lies in the result when every symbol i lies in ranges[i].
  Range range(std::span<const Range> ranges) const;

  // Appends the symbols of this expression, sorted and without repeats; what `out` held stays as it is.
  void collect_symbols(std::vector<SymbolId>& out) const;

  // "2*s0*s1 + floordiv(s2 + 1, 2) + 3"; names may be given for symbols. parse_expr() reads the unnamed form.
  std::string to_string(std::span<const std::string> names = {}) const;

  size_t hash() const;
  uint32_t size() const;  // nodes of the expression, a shared one counted at each use; 1 for a number

 private:
  struct Poly;
  friend struct ExprAccess;
  int64_t constant_ = 0;              // the constant term
  std::shared_ptr<const Poly> poly_;  // the other terms; null when there are none
  bool valid_ = true;
};

Expr floordiv(const Expr& a, const Expr& b);  // rounds towards minus infinity; b must not be 0
Expr mod(const Expr& a, const Expr& b);       // sign of b, as in Python
Expr ceildiv(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

// The inverse of to_string() without names; fails with text_syntax, also for what overflows or exceeds the limits.
Result<Expr> parse_expr(std::string_view text);

// Dimensions of a tensor, outermost first.
using Dims = std::vector<int64_t>;
using Shape = std::vector<Expr>;

Expr volume(const Shape& shape);
std::string to_string(const Shape& shape, std::span<const std::string> names = {});  // "[n, 3, 224, 224]"
std::optional<Dims> as_constant(const Shape& shape);                                 // when every dimension is a number
Shape to_shape(std::span<const int64_t> dims);

// The symbols of a graph or plan.
enum class SymbolSource : uint8_t {
  input_dim,    // dimension `index` of graph input `tensor`; may be named by the model ("batch")
  input_value,  // element `index` of the integer graph input `tensor` (a shape tensor)
  computed,     // defined while running: the step that makes it binds it (data-dependent shapes)
};

struct Symbol {
  std::string name;
  SymbolSource source = SymbolSource::computed;
  uint32_t tensor = 0;  // the input, by its place among the inputs; computed symbols have none, and no index
  uint32_t index = 0;
  Range range{0, Range::kUnbounded};
};

// Whether some symbol that is used gets its value while running only.
bool depends_on_data(const Expr& expr, std::span<const Symbol> symbols);
bool depends_on_data(const Shape& shape, std::span<const Symbol> symbols);

}  // namespace lathe
