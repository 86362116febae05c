// SPDX-License-Identifier: Apache-2.0
// What is known of symbols while expressions are compared and simplified: ranges, and which of them are indices, that
// is at least 0 and below an extent, which may itself be an expression.
//
// A proof eliminates indices before it asks for numbers. That h*W + w < H*W follows for all indices h < H and w < W
// from W - 1 - (W - 1) >= 0, whatever H and W are, though no ranges of numbers tell it.
#pragma once

#include "shape/expr.h"

namespace lathe {

class Facts {
 public:
  // Symbol i lies in ranges[i]; others may have any value.
  explicit Facts(std::vector<Range> ranges = {}) : ranges_(std::move(ranges)) {}

  // A new symbol with 0 <= symbol < extent. Those of the extent are known already; proofs hold vacuously where it is 0.
  Expr add_index(Expr extent);

  // Proven for all values; false = not proven.
  bool is_nonnegative(const Expr& e) const;
  bool is_less(const Expr& a, const Expr& b) const { return is_nonnegative(b - a - Expr(1)); }
  bool is_at_most(const Expr& a, const Expr& b) const { return is_nonnegative(b - a); }
  // 0 <= e < extent.
  bool is_within(const Expr& e, const Expr& extent) const { return is_nonnegative(e) && is_less(e, extent); }
  Range range(const Expr& e) const { return e.range(ranges_); }

  // An expression with the same value for all values of the symbols, in which quotients, remainders, minima and maxima
  // that are known are resolved. With h < H, w < W: floordiv(h*W + w, W) is h.
  Expr simplify(const Expr& e) const;

 private:
  struct Index {
    SymbolId symbol;
    Expr extent;
  };
  std::vector<Range> ranges_;
  std::vector<Index> indices_;  // an index comes behind the symbols of its extent
};

// A quotient or remainder in an expression.
struct Division {
  Expr dividend, divisor;
};
// The first, innermost one in which a symbol from `first` on occurs; nullopt when there is none.
std::optional<Division> first_division(const Expr& e, SymbolId first = 0);

}  // namespace lathe
