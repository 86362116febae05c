// SPDX-License-Identifier: Apache-2.0
#include "build/axes.h"

#include <algorithm>
#include <numeric>

#include "ops/rules.h"

namespace lathe {
namespace {

using ir::Node;

// The input is reshaped to `from`, whose dimension perm[i] becomes dimension i, and that to the output's shape.
struct Movement {
  Shape from;
  Ints perm;
};

Movement movement_of(const Node& node) {
  const Shape &in = node.input(0)->shape(), &out = node.output()->shape();
  if (node.is(OpKind::transpose)) return {in, permutation_of(node.attrs<TransposeAttrs>(), in.size())};
  if (node.is(OpKind::depth_to_space)) {
    const auto& attrs = node.attrs<DepthToSpaceAttrs>();
    const Expr b = attrs.block;
    if (attrs.mode == DepthToSpaceMode::dcr) return {{in[0], b, b, out[1], in[2], in[3]}, {0, 3, 4, 1, 5, 2}};
    return {{in[0], out[1], b, b, in[2], in[3]}, {0, 1, 4, 2, 5, 3}};
  }
  if (node.is(OpKind::space_to_depth)) {
    const Expr b = node.attrs<SpaceToDepthAttrs>().block;
    return {{in[0], in[1], out[2], b, out[3], b}, {0, 3, 5, 1, 2, 4}};
  }
  Ints perm(in.size());
  std::iota(perm.begin(), perm.end(), 0);
  return {in, perm};
}

// a / b where that is proven to be whole.
std::optional<Expr> quotient(const Expr& a, const Expr& b) {
  if (b.is_constant() && *b.as_constant() <= 0) return std::nullopt;
  const Expr q = floordiv(a, b);
  return q * b == a && q != Expr(0) ? std::optional(q) : std::nullopt;
}

}  // namespace

bool reorders_elements(const Node& node) {
  return node.is(OpKind::transpose) || node.is(OpKind::depth_to_space) || node.is(OpKind::space_to_depth);
}

bool moves_elements(const Node& node) { return node.has_trait(kView) || reorders_elements(node); }

AxisSpace::AxisSpace(const Shape& shape) {
  whole_.shape = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    axes_.push_back({shape[d], {}});
    whole_.axes.push_back({d});
  }
}

void AxisSpace::append_leaves(size_t axis, std::vector<size_t>& to) const {
  if (axes_[axis].parts.empty()) to.push_back(axis);
  for (const size_t part : axes_[axis].parts) append_leaves(part, to);
}

std::vector<size_t> AxisSpace::leaves(const std::vector<size_t>& axes) const {
  std::vector<size_t> result;
  for (const size_t axis : axes) append_leaves(axis, result);
  return result;
}

size_t AxisSpace::split(size_t axis, const Expr& outer, const Expr& inner) {
  const size_t first = axes_.size();
  axes_.push_back({outer, {}});
  axes_.push_back({inner, {}});
  axes_[axis].parts = {first, first + 1};
  return first;
}

// The same elements in the same row-major order under other dimensions.
std::optional<AxisView> AxisSpace::regrouped(const AxisView& view, const Shape& shape) {
  std::vector<size_t> sequence;
  for (const auto& dim : view.axes)
    for (const size_t axis : leaves(dim)) sequence.push_back(axis);
  const auto is_one = [&](size_t axis) { return axes_[axis].extent == Expr(1); };
  std::erase_if(sequence, is_one);
  AxisView result{shape, {}};
  size_t next = 0;
  for (const Expr& dim : shape) {
    std::vector<size_t>& axes = result.axes.emplace_back();
    for (Expr left = dim; left != Expr(1);) {
      if (next == sequence.size()) return std::nullopt;
      const Expr extent = axes_[sequence[next]].extent;
      if (const auto rest = quotient(left, extent)) {
        axes.push_back(sequence[next++]);
        left = *rest;
      } else if (const auto inner = quotient(extent, left)) {
        axes.push_back(split(sequence[next], left, *inner));
        sequence[next] = axes.back() + 1;
        left = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return next == sequence.size() ? std::optional(result) : std::nullopt;
}

std::optional<AxisView> AxisSpace::after(const Node& node, const AxisView& input) {
  const Movement movement = movement_of(node);
  const std::optional<AxisView> from = regrouped(input, movement.from);
  if (!from) return std::nullopt;
  AxisView to;
  for (const int64_t d : movement.perm) {
    to.shape.push_back(from->shape[static_cast<size_t>(d)]);
    to.axes.push_back(from->axes[static_cast<size_t>(d)]);
  }
  return regrouped(to, node.output()->shape());
}

std::optional<AxisView> AxisSpace::before(const Node& node, const AxisView& output) {
  const Movement movement = movement_of(node);
  Shape shape;
  for (const int64_t d : movement.perm) shape.push_back(movement.from[static_cast<size_t>(d)]);
  const std::optional<AxisView> to = regrouped(output, shape);
  if (!to) return std::nullopt;
  AxisView from{movement.from, std::vector<std::vector<size_t>>(shape.size())};
  for (size_t i = 0; i < shape.size(); ++i) from.axes[static_cast<size_t>(movement.perm[i])] = to->axes[i];
  return regrouped(from, node.input(0)->shape());
}

bool AxisSpace::same(const AxisView& a, const AxisView& b) const {
  if (a.shape != b.shape) return false;
  for (size_t d = 0; d < a.axes.size(); ++d)
    if (a.shape[d] != Expr(1) && leaves(a.axes[d]) != leaves(b.axes[d])) return false;
  return true;
}

std::vector<size_t> AxisSpace::order() const {
  std::vector<size_t> order;
  for (const auto& dim : whole_.axes)
    for (const size_t axis : leaves(dim)) order.push_back(axis);
  if (is_split()) std::erase_if(order, [&](size_t axis) { return axes_[axis].extent == Expr(1); });
  return order;
}

Shape AxisSpace::extents() const {
  Shape extents;
  for (const size_t axis : order()) extents.push_back(axes_[axis].extent);
  return extents;
}

AxisView AxisSpace::finished(const AxisView& view) const {
  const std::vector<size_t> order = this->order();
  AxisView result{view.shape, {}};
  for (const auto& dim : view.axes) {
    std::vector<size_t>& axes = result.axes.emplace_back();
    for (const size_t axis : leaves(dim)) {
      const auto at = std::find(order.begin(), order.end(), axis);
      if (at != order.end()) axes.push_back(static_cast<size_t>(at - order.begin()));
    }
  }
  return result;
}

std::vector<size_t> AxisSpace::parts() const {
  std::vector<size_t> parts;
  for (const auto& dim : finished(whole_).axes) parts.push_back(dim.size());
  return parts;
}

}  // namespace lathe
