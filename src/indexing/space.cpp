// SPDX-License-Identifier: Apache-2.0
#include "indexing/space.h"

#include <fmt/format.h>

#include <algorithm>

namespace lathe {

Expr Space::add(const Expr& extent) {
  Expr index = extent == Expr(1) ? Expr(0) : facts_.add_index(extent);
  order_.push_back(axes_.size());
  axes_.push_back({index, extent, fmt::format("i{}", axes_.size()), num_added_++});
  return index;
}

Shape Space::add(const Shape& shape) {
  Shape index;
  for (const Expr& dim : shape) index.push_back(add(dim));
  return index;
}

Shape Space::extents() const {
  Shape extents;
  for (const size_t axis : order_) extents.push_back(axes_[axis].extent);
  return extents;
}

std::vector<size_t> Space::reassociation() const {
  std::vector<size_t> counts(num_added_);
  for (const size_t axis : order_) ++counts[axes_[axis].added];
  return counts;
}

Shape Space::indices() const {
  Shape indices;
  for (const size_t axis : order_) indices.push_back(axes_[axis].index);
  return indices;
}

void Space::drop_unit_axes() {
  std::erase_if(order_, [&](size_t axis) { return axes_[axis].extent == Expr(1); });
}

void Space::split(size_t axis, const Expr& outer, const Expr& inner) {
  const Expr outer_index = add(outer), inner_index = add(inner);
  num_added_ -= 2;
  const size_t last = axes_.size() - 1;
  axes_[last - 1].added = axes_[last].added = axes_[axis].added;
  axes_[last - 1].name = axes_[axis].name + "o";
  axes_[last].name = axes_[axis].name + "i";
  order_.resize(order_.size() - 2);
  const auto at = std::find(order_.begin(), order_.end(), axis);
  *at = last - 1;
  order_.insert(at + 1, last);
  replace(*axes_[axis].index.as_symbol(), outer_index * inner + inner_index);
}

void Space::replace(SymbolId axis, const Expr& index) {
  std::vector<Expr> one;
  for (SymbolId id = 0; id < axis; ++id) one.push_back(Expr::symbol(id));
  one.push_back(index);
  for (Expr& replacement : replacements_) replacement = replacement.substitute(one);
  for (auto id = static_cast<SymbolId>(replacements_.size()); id < axis; ++id)
    replacements_.push_back(Expr::symbol(id));
  if (replacements_.size() == axis) replacements_.push_back(index);
}

void Space::narrow(size_t at, const Expr& begin, const Expr& end) {
  const size_t axis = order_[at];
  const Expr index = add(end - begin);
  --num_added_;
  order_.pop_back();
  axes_.back().added = axes_[axis].added;
  axes_.back().name = axes_[axis].name;
  order_[at] = axes_.size() - 1;
  if (const std::optional<SymbolId> symbol = axes_[axis].index.as_symbol()) replace(*symbol, index + begin);
}

// Splits the axis that is divided, where its extent is a multiple of the divisor.
bool Space::split_for(const Division& division) {
  if (!division.dividend.as_symbol()) return false;
  const auto axis =
      std::find_if(order_.begin(), order_.end(), [&](size_t each) { return axes_[each].index == division.dividend; });
  if (axis == order_.end()) return false;
  const Expr extent = axes_[*axis].extent, outer = floordiv(extent, division.divisor);
  if (outer * division.divisor != extent || outer == Expr(0)) return false;
  split(*axis, outer, division.divisor);
  return true;
}

Expr Space::current(const Expr& e) const { return facts_.simplify(e.substitute(replacements_)); }

Shape Space::current(const Shape& index) const {
  Shape result;
  for (const Expr& e : index) result.push_back(current(e));
  return result;
}

std::optional<Expr> Space::resolve(const Expr& e) {
  for (Expr now = current(e);; now = current(now)) {
    if (!now.is_valid()) return std::nullopt;
    const std::optional<Division> division = first_division(now, static_cast<SymbolId>(symbols_.size()));
    if (!division) return now;
    if (!split_for(*division)) return std::nullopt;
  }
}

std::vector<std::string> Space::names(std::vector<std::string> of_symbols) const {
  for (const Axis& axis : axes_)
    if (axis.index.as_symbol()) of_symbols.push_back(axis.name);
  return of_symbols;
}

}  // namespace lathe
