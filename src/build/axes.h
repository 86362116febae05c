// SPDX-License-Identifier: Apache-2.0
// How values relate that reshapes and transpositions make of each other: the dimensions of all of them consist of the
// axes of one space. [b, s, 256], reshaped to [b, s, 4, 64] and transposed to [b, 4, s, 64], has the axes b, s, 4, 64.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace lathe {

// A value in an AxisSpace: for each of its dimensions the axes that it consists of, outermost first.
struct AxisView {
  Shape shape;
  std::vector<std::vector<size_t>> axes;
};

// Whether the node's result has the elements of its first input, and no others, in places that only shapes decide.
bool moves_elements(const ir::Node& node);
// The same in another order: not a view of memory that is dense.
bool reorders_elements(const ir::Node& node);

class AxisSpace {
 public:
  // The space's first view: every dimension is an axis.
  explicit AxisSpace(const Shape& shape);

  const AxisView& whole() const { return whole_; }
  // A moving node's result, by the view of its input, and the other way round; nullopt where no axes can be found.
  // Axes are split where that makes dimensions of whole ones; views that were given before stay right.
  std::optional<AxisView> after(const ir::Node& node, const AxisView& input);
  std::optional<AxisView> before(const ir::Node& node, const AxisView& output);
  // Views in which the same elements have the same place.
  bool same(const AxisView& a, const AxisView& b) const;

  // Whether axes were split since.
  bool is_split() const { return axes_.size() > whole_.axes.size(); }
  // The axes that are not split any further: their extents, in the order of whole(), and a view of them. Without those
  // of one element, unless they are the dimensions of whole().
  Shape extents() const;
  AxisView finished(const AxisView& view) const;
  // How many of them each dimension of whole() consists of.
  std::vector<size_t> parts() const;

 private:
  struct Axis {
    Expr extent;
    std::vector<size_t> parts;  // outer, inner; none = whole
  };
  void append_leaves(size_t axis, std::vector<size_t>& to) const;
  std::vector<size_t> order() const;
  std::vector<size_t> leaves(const std::vector<size_t>& axes) const;
  std::optional<AxisView> regrouped(const AxisView& view, const Shape& shape);
  size_t split(size_t axis, const Expr& outer, const Expr& inner);

  std::vector<Axis> axes_;
  AxisView whole_;
};

}  // namespace lathe
