// SPDX-License-Identifier: Apache-2.0
#include "lowering/moved_epilogue.h"

#include <algorithm>

#include "indexing/access.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// The axes that each dimension consists of.
std::vector<std::vector<size_t>> axes_in_each(const Shape& index, const Space& space) {
  std::vector<std::vector<size_t>> axes;
  for (const Expr& e : index) axes.push_back(axes_in(e, space));
  return axes;
}

// A chain of nodes, each the only reader of the one before.
struct Followers {
  std::vector<Node*> nodes;
  Shape from;   // index into the root's result
  Shape index;  // into the last one's
  Space space;
};

// Whether the root's result remains an image: channels, if not all of them, in dimension 1, and pixels behind.
bool is_image(const Followers& followers) {
  const auto from = axes_in_each(followers.from, followers.space), to = axes_in_each(followers.index, followers.space);
  if (to.size() < 4 || to.size() != from.size()) return false;
  const auto holds = [&](size_t d, size_t axis) {
    return std::find(from[d].begin(), from[d].end(), axis) != from[d].end();
  };
  for (size_t d = 1; d < to.size(); ++d)
    if (to[d].empty() || !holds(d, d == 1 ? to[d].back() : to[d].front())) return false;
  return true;
}

// The longest chain that ends with a node that reorders elements, or with a pointwise one after such: a reshape at the
// end is a view of the result, unless it makes an image, which has a layout of its own.
std::optional<Followers> followers_of(const Node& root, const Value* result, const Space& space,
                                      ProgramBuilder& program, const MayJoin& may_join) {
  Followers all{{}, space.indices(), space.indices(), space};
  std::optional<Followers> kept;
  bool reorders = false;
  while (result->has_single_use() && all.nodes.size() < kMaxProgramCode / 4) {
    const ir::Use use = result->uses()[0];
    if (!may_join(*use.node) || cuts_elements(*use.node)) break;
    const bool moves = permutes_elements(*use.node);
    if (moves) {
      std::optional<Shape> after =
          use.index == 0 ? destination_of(*use.node, all.space.current(all.index), all.space) : std::nullopt;
      if (!after) break;
      program.add_moved(*use.node);
      all.index = *std::move(after);
    } else if (use.node->output()->shape() != result->shape() ||
               !program.add(*use.node, all.space.current(all.index))) {
      break;
    }
    all.nodes.push_back(use.node);
    result = use.node->output();
    reorders |= reorders_elements(*use.node);
    const bool makes_image = moves && root.has_trait(kPixels) && is_image(all);
    if (reorders && (!moves || reorders_elements(*use.node) || makes_image)) kept = all;
  }
  return kept;
}

// The axis along which neighbours in the result are neighbours in memory.
std::optional<size_t> last_axis(const Followers& followers) {
  for (auto e = followers.index.rbegin(); e != followers.index.rend(); ++e)
    if (const std::vector<size_t> axes = axes_in(*e, followers.space); !axes.empty()) return axes.back();
  return std::nullopt;
}

// Whether runs of the result are runs of what the kernel computes: products of matrices write rows or columns, others
// what is contiguous, and images whose channels are split.
bool writes_runs(const Node& root, const Followers& followers) {
  const Space& space = followers.space;
  const std::optional<size_t> last = last_axis(followers);
  if (root.is(OpKind::matmul)) return space.reassociation().back() <= 1 || last == space.rank() - 1;
  if (!last) return false;
  const size_t contiguous = contiguous_dim(root);
  if (!space.is_split()) return last == contiguous;
  const std::vector<size_t> axes = axes_in(followers.from[contiguous], space);
  return is_image(followers) || std::find(axes.begin(), axes.end(), *last) != axes.end();
}

}  // namespace

size_t contiguous_dim(const Node& root) { return root.has_trait(kPixels) ? 1 : root.output()->shape().size() - 1; }

std::optional<Region> with_movement(const Region& kernel, const Space& space, ProgramBuilder program,
                                    const MayJoin& may_join) {
  std::optional<Followers> followers = followers_of(*kernel.root, kernel.result(), space, program, may_join);
  if (!followers) return std::nullopt;
  if (followers->space.is_split()) followers->space.drop_unit_axes();
  if (!writes_runs(*kernel.root, *followers)) return std::nullopt;
  Region region = kernel;
  region.nodes.insert(region.nodes.end(), followers->nodes.begin(), followers->nodes.end());
  region.outputs = {followers->nodes.back()->output()};
  std::optional<Expression> expression = program.finish(region.result(), followers->space);
  if (!expression) return std::nullopt;
  region.expression = *std::move(expression);
  region.written = {followers->index, {}};
  return region;
}

}  // namespace lathe
