// SPDX-License-Identifier: Apache-2.0
#include "build/arranged_epilogue.h"

#include <algorithm>

#include "plan/limits.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// Whether the root's result remains an image: channels, if not all of them, in dimension 1, and pixels behind.
bool is_image(const AxisSpace& space, const AxisView& result) {
  const AxisView from = space.finished(space.whole()), to = space.finished(result);
  if (to.axes.size() < 4 || to.axes.size() != from.axes.size()) return false;
  const auto holds = [&](size_t d, size_t axis) {
    return std::find(from.axes[d].begin(), from.axes[d].end(), axis) != from.axes[d].end();
  };
  for (size_t d = 1; d < to.axes.size(); ++d)
    if (to.axes[d].empty() || !holds(d, d == 1 ? to.axes[d].back() : to.axes[d].front())) return false;
  return true;
}

// A chain of nodes, each the only reader of the one before.
struct Followers {
  std::vector<Node*> nodes;
  AxisView view;  // of the last one's result
  AxisSpace space;
};

// The longest chain that ends with a node that reorders elements, or with a pointwise one after such: a reshape at the
// end is a view of the result, unless it makes an image, which has a layout of its own.
std::optional<Followers> followers_of(const Node& root, const Value* result, const AxisSpace& whole,
                                      ArrangedProgram& program, const std::function<bool(const Node&)>& may_join) {
  Followers all{{}, whole.whole(), whole};
  AxisSpace& space = all.space;
  program.set_space(space);
  std::optional<Followers> kept;
  bool reorders = false;
  while (result->has_single_use() && all.nodes.size() < kMaxProgramCode / 4) {
    const ir::Use use = result->uses()[0];
    if (!may_join(*use.node)) break;
    const bool moves = moves_elements(*use.node);
    if (moves) {
      std::optional<AxisView> after = use.index == 0 ? space.after(*use.node, all.view) : std::nullopt;
      if (!after || !program.add_moved(*use.node)) break;
      all.view = *std::move(after);
    } else if (use.node->output()->shape() != result->shape() || !program.add(*use.node, all.view)) {
      break;
    }
    all.nodes.push_back(use.node);
    result = use.node->output();
    reorders |= reorders_elements(*use.node);
    const bool makes_image = moves && root.is(OpKind::convolution) && is_image(space, all.view);
    if (reorders && (!moves || reorders_elements(*use.node) || makes_image)) kept = all;
  }
  return kept;
}

// The chain as an expression that reads the kernel's result.
std::optional<Region> expression_of(const std::vector<Node*>& nodes) {
  Expression expression(nodes.back());
  const auto position = [&](const Node* node) {
    return static_cast<size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  };
  while (expression.grow([&](const Node& node) { return position(&node) < nodes.size(); })) {
  }
  if (expression.size() != nodes.size() || !expression.is_known()) return std::nullopt;
  return expression.region(position);
}

// The dimension of a root's result that kernels write in vectors: it stays the last, where it matters.
std::optional<size_t> contiguous_dim(const Node& root) {
  if (root.is(OpKind::convolution)) return 1;
  if (root.is(OpKind::attention)) return 3;
  return std::nullopt;
}

// The axis along which neighbours in the result are neighbours in memory.
std::optional<size_t> last_axis(const AxisView& finished) {
  for (auto axes = finished.axes.rbegin(); axes != finished.axes.rend(); ++axes)
    if (!axes->empty()) return axes->back();
  return std::nullopt;
}

// Products write results in parts, the columns in runs, and so do convolutions their channels. Others write their own
// dimensions, wherever those lie.
bool can_write(const Node& root, const AxisSpace& space, const AxisView& result) {
  const std::optional<size_t> last = last_axis(space.finished(result));
  if (root.is(OpKind::matmul)) return space.parts().back() <= 1 || last == space.extents().size() - 1;
  const std::optional<size_t> contiguous = contiguous_dim(root);
  if (!contiguous || !last) return false;
  if (!space.is_split()) return last == contiguous;
  if (!root.is(OpKind::convolution)) return false;
  const std::vector<size_t> channels = space.finished(space.whole()).axes[*contiguous];
  return is_image(space, result) || std::find(channels.begin(), channels.end(), *last) != channels.end();
}

}  // namespace

bool takes_movement(const Node& root) { return root.is(OpKind::matmul) || contiguous_dim(root).has_value(); }

std::optional<Region> with_movement(const Region& kernel, const AxisSpace& whole, ArrangedProgram program,
                                    const std::function<bool(const Node&)>& may_join) {
  const std::optional<Followers> followers = followers_of(*kernel.root, kernel.result(), whole, program, may_join);
  if (!followers) return std::nullopt;
  const AxisSpace& space = followers->space;
  program.set_space(space);
  if (space.extents().size() > plan::kMaxRank || !can_write(*kernel.root, space, followers->view)) return std::nullopt;
  std::optional<Region> rest = expression_of(followers->nodes);
  if (!rest) return std::nullopt;
  Region region = kernel;
  region.nodes.insert(region.nodes.end(), followers->nodes.begin(), followers->nodes.end());
  region.outputs = rest->outputs;
  region.program = program.program().finish(region.result(), region.operands);
  region.arrangement = program.arrangement(followers->view);
  if (space.is_split()) region.arrangement->parts = space.parts();
  region.arrangement->is_image = space.is_split() && is_image(space, followers->view);
  region.apart = {kernel, *std::move(rest)};
  return region;
}

}  // namespace lathe
