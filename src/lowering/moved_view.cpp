// SPDX-License-Identifier: Apache-2.0
#include "lowering/moved_view.h"

#include <algorithm>

#include "indexing/access.h"

namespace lathe {

std::optional<Shape> MovedView::strides(const Shape& of_base) const {
  const std::optional<Access> access = access_of(from, of_base, space);
  if (!access || access->offset != Expr(0)) return std::nullopt;
  const Shape extents = space.extents();
  Shape result;
  for (const Expr& e : to) {
    const std::vector<size_t> axes = axes_in(e, space);
    for (size_t i = 0; i + 1 < axes.size(); ++i)
      if (access->strides[axes[i]] != access->strides[axes[i + 1]] * extents[axes[i + 1]]) return std::nullopt;
    // No axis moves along a dimension of one element. Its stride may be any but 0, which means a repetition.
    result.push_back(axes.empty() ? volume(extents) : access->strides[axes.back()]);
  }
  return result;
}

bool MovedView::joins_axes() const {
  return std::any_of(to.begin(), to.end(), [&](const Expr& e) { return axes_in(e, space).size() > 1; });
}

std::optional<MovedView> moved_view(const Region& region, const std::vector<Range>& symbols) {
  if (region.kind == RegionKind::view || (region.kind == RegionKind::movement && region.root->is(OpKind::transpose))) {
    Space space(symbols);
    const Shape to = space.add(region.result()->shape());
    std::optional<Sources> sources = sources_of(*region.root, 0, {to, {}}, space);
    if (!sources) return std::nullopt;
    return MovedView{region.root->input(0), std::move(space), std::move(sources->pieces[0].map), to};
  }
  const Expression& expression = region.expression;
  const bool only_moves = region.kind == RegionKind::pointwise && expression.operands.size() == 1 &&
                          std::all_of(region.nodes.begin(), region.nodes.end(),
                                      [](const ir::Node* node) { return permutes_elements(*node); });
  if (!only_moves) return std::nullopt;
  return MovedView{expression.operands[0], expression.space, expression.reads[0].map, region.written.index};
}

}  // namespace lathe
