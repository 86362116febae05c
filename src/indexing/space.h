// SPDX-License-Identifier: Apache-2.0
// The iteration space of a region: named axes, each from 0 to below an extent. Indices into tensors are expressions of
// these axes and of the symbols of shapes (docs/fusion.md).
//
// An axis is split when an index needs parts of it: c of 12 channels becomes c0 of 3 and c1 of 4 with c = 4*c0 + c1,
// whose quotient by 4 is c0. Expressions that were made before stay right: current() rewrites them.
#pragma once

#include <string>

#include "shape/facts.h"

namespace lathe {

class Space {
 public:
  // `symbols` of the shapes that extents and indices consist of: the graph's.
  explicit Space(const std::vector<Range>& symbols) : symbols_(symbols), facts_(symbols) {}

  // The innermost axis so far; returns its index, an expression. That of an axis of one element is 0.
  Expr add(const Expr& extent);
  // An axis for each dimension of a shape, and the index that runs through it.
  Shape add(const Shape& shape);

  // The axes that were not split any further, outermost first: the parts of one lie together.
  Shape extents() const;
  size_t rank() const { return order_.size(); }
  // The index expressions of these axes.
  Shape indices() const;
  bool is_split() const { return !replacements_.empty(); }
  // How many axes each one that was added consists of by now.
  std::vector<size_t> reassociation() const;
  // Keeps of an axis, by its place in the order, what lies from begin to below end.
  void narrow(size_t at, const Expr& begin, const Expr& end);
  // Leaves out axes of one element, which move nothing.
  void drop_unit_axes();

  const Facts& facts() const { return facts_; }
  const std::vector<Range>& symbols() const { return symbols_; }
  // The expression in the axes of now, simplified.
  Expr current(const Expr& e) const;
  Shape current(const Shape& index) const;
  // The same, after splitting axes as far as that makes quotients and remainders whole parts of axes; nullopt where one
  // remains.
  std::optional<Expr> resolve(const Expr& e);

  // For messages: names of the axes behind those of the shapes' symbols.
  std::vector<std::string> names(std::vector<std::string> of_symbols) const;

 private:
  struct Axis {
    Expr index;  // a symbol, or 0 where there is one element
    Expr extent;
    std::string name;
    size_t added = 0;  // the axis that it is part of, by the order in which those were added
  };
  // `index` takes the place of an axis's symbol in all that was made with it.
  void replace(SymbolId axis, const Expr& index);
  bool split_for(const Division& division);
  void split(size_t axis, const Expr& outer, const Expr& inner);

  std::vector<Range> symbols_;
  Facts facts_;
  std::vector<Axis> axes_;  // all that ever were
  size_t num_added_ = 0;
  std::vector<size_t> order_;       // of those that are not split
  std::vector<Expr> replacements_;  // by symbol, once an axis was split
};

}  // namespace lathe
