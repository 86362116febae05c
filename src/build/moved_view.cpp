// SPDX-License-Identifier: Apache-2.0
#include "build/moved_view.h"

#include <algorithm>

namespace lathe {

std::optional<Shape> MovedView::strides(const Shape& of_base) const {
  const Expr beyond = volume(axes);  // of dimensions of one element, which do not move: 0 would repeat
  Shape along(axes.size(), beyond);
  for (size_t d = 0; d < from.axes.size(); ++d) {
    Expr stride = of_base[d];
    for (auto axis = from.axes[d].rbegin(); axis != from.axes[d].rend(); ++axis) {
      along[*axis] = stride;
      stride *= axes[*axis];
    }
  }
  Shape result;
  for (const std::vector<size_t>& dim : to.axes) {
    for (size_t i = 0; i + 1 < dim.size(); ++i)
      if (along[dim[i]] != along[dim[i + 1]] * axes[dim[i + 1]]) return std::nullopt;
    result.push_back(dim.empty() ? beyond : along[dim.back()]);
  }
  return result;
}

bool MovedView::joins_axes() const {
  return std::any_of(to.axes.begin(), to.axes.end(), [](const std::vector<size_t>& dim) { return dim.size() > 1; });
}

std::optional<MovedView> moved_view(const Region& region) {
  if (region.kind == RegionKind::view || (region.kind == RegionKind::movement && region.root->is(OpKind::transpose))) {
    AxisSpace space(region.result()->shape());
    const std::optional<AxisView> from = space.before(*region.root, space.whole());
    if (!from) return std::nullopt;
    return MovedView{region.root->input(0), space.extents(), space.finished(*from), space.finished(space.whole())};
  }
  const bool only_moves =
      region.kind == RegionKind::pointwise && region.arrangement && region.operands.size() == 1 &&
      std::all_of(region.nodes.begin(), region.nodes.end(), [](const ir::Node* node) { return moves_elements(*node); });
  if (!only_moves) return std::nullopt;
  const Region::Arrangement& arrangement = *region.arrangement;
  return MovedView{region.operands[0], arrangement.axes, arrangement.operands[0], arrangement.result};
}

}  // namespace lathe
