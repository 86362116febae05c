// SPDX-License-Identifier: Apache-2.0
#include "indexing/access.h"

#include <algorithm>

namespace lathe {
namespace {

// e = constant + the sum of slopes[i] * axis i.
struct Linear {
  Expr constant;
  Shape slopes;
};

std::optional<Linear> linear_in(const Expr& e, const Shape& axes) {
  std::vector<SymbolId> ids;
  for (const Expr& axis : axes) {
    const std::optional<SymbolId> id = axis.as_symbol();
    if (id) ids.push_back(*id);
  }
  std::vector<Expr> identity;
  const SymbolId end = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end()) + 1;
  for (SymbolId id = 0; id < end; ++id) identity.push_back(Expr::symbol(id));
  Linear linear{e, {}};
  for (const Expr& axis : axes) {
    const std::optional<SymbolId> id = axis.as_symbol();
    if (!id) {
      linear.slopes.emplace_back(0);
      continue;
    }
    std::vector<Expr> next = identity, none = identity;
    next[*id] = axis + Expr(1);
    none[*id] = 0;
    linear.slopes.push_back(linear.constant.substitute(next) - linear.constant);
    linear.constant = linear.constant.substitute(none);
  }
  const auto has_axes = [&](const Expr& part) {
    std::vector<SymbolId> used;
    part.collect_symbols(used);
    return !part.is_valid() || std::any_of(used.begin(), used.end(),
                                           [&](SymbolId id) { return std::count(ids.begin(), ids.end(), id) > 0; });
  };
  if (!linear.constant.is_valid() || std::any_of(linear.slopes.begin(), linear.slopes.end(), has_axes))
    return std::nullopt;
  return linear;
}

// The axis that decides: the only one that moves the value, or of several the one whose steps are longer than all that
// the others move it, where the interval is of whole steps. 16*o + n < 32 holds for o < 2 where n < 16.
std::optional<Bound> bound_of(const Interval& interval, const Space& space) {
  const std::optional<Linear> linear = linear_in(interval.value, space.indices());
  if (!linear) return std::nullopt;
  const Shape extents = space.extents();
  std::optional<size_t> axis;
  int64_t step = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::optional<int64_t> slope = linear->slopes[i].as_constant();
    if (!slope || *slope < 0) return std::nullopt;
    if (*slope > step) axis = i, step = *slope;
  }
  if (!axis) return std::nullopt;
  Expr within = 0;  // what the others move it at most
  for (size_t i = 0; i < extents.size(); ++i)
    if (i != *axis) within += (extents[i] - Expr(1)) * linear->slopes[i];
  const Facts& facts = space.facts();
  const Expr begin = interval.begin - linear->constant, end = interval.end - linear->constant;
  const auto is_whole = [&](const Expr& at) { return step == 1 || facts.simplify(mod(at, step)) == Expr(0); };
  if (!facts.is_less(within, step) || !is_whole(begin) || !is_whole(end)) return std::nullopt;
  if (step == 1) return Bound{*axis, begin, end};
  return Bound{*axis, facts.simplify(floordiv(begin, step)), facts.simplify(floordiv(end, step))};
}

// Two bounds of an axis, as padding that is padded has them, are one: what lies in both. False where it is open whether
// the second ends before the first begins.
bool add_bound(const Bound& bound, const Facts& facts, std::vector<Bound>& bounds) {
  const auto same =
      std::find_if(bounds.begin(), bounds.end(), [&](const Bound& each) { return each.axis == bound.axis; });
  if (same == bounds.end()) {
    bounds.push_back(bound);
    return true;
  }
  same->begin = facts.simplify(max(same->begin, bound.begin));
  same->end = facts.simplify(min(same->end, bound.end));
  return facts.is_at_most(same->begin, same->end);
}

}  // namespace

std::optional<Access> access_of(const IndexMap& map, const Shape& strides, const Space& space) {
  const Shape axes = space.indices();
  Expr position = 0;
  for (size_t d = 0; d < map.index.size(); ++d) position += space.current(map.index[d]) * strides[d];
  std::optional<Linear> linear = linear_in(position, axes);
  if (!linear) return std::nullopt;
  Access access{linear->constant, std::move(linear->slopes), {}};
  for (const Interval& interval : map.domain) {
    const Interval now{space.current(interval.value), interval.begin, interval.end};
    if (space.facts().is_at_most(now.begin, now.value) && space.facts().is_less(now.value, now.end)) continue;
    const std::optional<Bound> bound = bound_of(now, space);
    if (!bound) return std::nullopt;
    if (!add_bound(*bound, space.facts(), access.bounds)) return std::nullopt;
  }
  return access;
}

namespace {

// Of the axis with the longest steps. Where others move the value, too, 7*o + n < 25 holds for o < 3, and fails for o >
// 3: cuts at 3 and at 4 leave o = 3, where n alone decides.
std::optional<SplitPoint> cut_at(const Linear& linear, const Expr& position, const Space& space) {
  const Shape extents = space.extents();
  std::optional<size_t> axis;
  size_t moving = 0;
  for (size_t i = 0; i < linear.slopes.size(); ++i) {
    const std::optional<int64_t> slope = linear.slopes[i].as_constant();
    if (!slope || *slope < 0) return std::nullopt;
    moving += *slope > 0;
    if (*slope > 0 && (!axis || *slope > *linear.slopes[*axis].as_constant())) axis = i;
  }
  if (!axis) return std::nullopt;
  const Facts& facts = space.facts();
  const Expr& slope = linear.slopes[*axis];
  Expr at = facts.simplify(floordiv(position + (moving == 1 ? slope - Expr(1) : Expr(0)), slope));
  if (moving > 1 && at == Expr(0)) at = 1;
  const bool is_inside = at.is_valid() && at != Expr(0) && at != extents[*axis] && facts.is_nonnegative(at) &&
                         facts.is_at_most(at, extents[*axis]);
  return is_inside ? std::optional(SplitPoint{*axis, at}) : std::nullopt;
}

}  // namespace

std::optional<SplitPoint> cut_of(const Interval& interval, const Space& space) {
  const Expr value = space.current(interval.value);
  const std::optional<Linear> linear = linear_in(value, space.indices());
  if (!linear) return std::nullopt;
  const Facts& facts = space.facts();
  for (const Expr& border : {interval.begin, interval.end}) {
    if (facts.is_at_most(border, value) || facts.is_less(value, border)) continue;
    if (std::optional<SplitPoint> cut = cut_at(*linear, facts.simplify(border - linear->constant), space)) return cut;
  }
  return std::nullopt;
}

std::vector<size_t> axes_in(const Expr& index, const Space& space) {
  const std::optional<Linear> linear = linear_in(space.current(index), space.indices());
  if (!linear) return {};
  std::vector<size_t> axes;
  for (size_t i = 0; i < linear->slopes.size(); ++i)
    if (linear->slopes[i] != Expr(0)) axes.push_back(i);
  const auto is_outside = [&](size_t a, size_t b) {
    const Expr steps = floordiv(linear->slopes[a], linear->slopes[b]);
    return steps * linear->slopes[b] == linear->slopes[a] && linear->slopes[a] != linear->slopes[b];
  };
  for (size_t i = 1; i < axes.size(); ++i)
    for (size_t j = i; j > 0 && is_outside(axes[j], axes[j - 1]); --j) std::swap(axes[j], axes[j - 1]);
  return axes;
}

}  // namespace lathe
