// SPDX-License-Identifier: Apache-2.0
// The indexing map of each op that moves elements and computes none. This is the only file that knows what
// they read: one that is added is a function here, a case of sources_of(), and a test.
#include <numeric>

#include "indexing/index_map.h"
#include "ops/rules.h"
#include "passes/match.h"
#include "passes/padding.h"

namespace lathe {
namespace {

using ir::Node;

// Ops that permute parts of dimensions: the input, reshaped to `from`, has its dimension perm[i] as dimension i, and
// that is reshaped to the output's shape.
struct Permutation {
  Shape from;
  Ints perm;
  Shape permuted() const {
    Shape shape;
    for (const int64_t d : perm) shape.push_back(from[static_cast<size_t>(d)]);
    return shape;
  }
};

std::optional<Permutation> permutation_by(const Node& node) {
  const Shape &in = node.input(0)->shape(), &out = node.output()->shape();
  if (node.is(OpKind::transpose)) return Permutation{in, permutation_of(node.attrs<TransposeAttrs>(), in.size())};
  if (node.is(OpKind::depth_to_space)) {
    const auto& attrs = node.attrs<DepthToSpaceAttrs>();
    const Expr b = attrs.block;
    if (attrs.mode == DepthToSpaceMode::dcr)
      return Permutation{{in[0], b, b, out[1], in[2], in[3]}, {0, 3, 4, 1, 5, 2}};
    return Permutation{{in[0], out[1], b, b, in[2], in[3]}, {0, 1, 4, 2, 5, 3}};
  }
  if (node.is(OpKind::space_to_depth)) {
    const Expr b = node.attrs<SpaceToDepthAttrs>().block;
    return Permutation{{in[0], in[1], out[2], b, out[3], b}, {0, 3, 5, 1, 2, 4}};
  }
  if (!node.has_trait(kView) && !node.is(OpKind::identity)) return std::nullopt;
  Ints perm(in.size());
  std::iota(perm.begin(), perm.end(), 0);
  return Permutation{in, perm};
}

std::optional<Shape> source_of_permuted(const Node& node, const Permutation& permutation, const Shape& output,
                                        Space& space) {
  const std::optional<Shape> to = regrouped(output, node.output()->shape(), permutation.permuted(), space);
  if (!to) return std::nullopt;
  Shape from(to->size());
  for (size_t i = 0; i < to->size(); ++i) from[static_cast<size_t>(permutation.perm[i])] = (*to)[i];
  return regrouped(from, permutation.from, node.input(0)->shape(), space);
}

Sources whole(IndexMap map) { return {{{0, std::move(map)}}, std::nullopt}; }

// Slices that start where the model says and go either way.
std::optional<Sources> sources_of_slice(const Node& node, IndexMap map, const Space& space) {
  const Shape &from = node.input(0)->shape(), &to = node.output()->shape();
  const std::optional<Ints> starts = ints_of(node.input(1)), steps = node.input(4) ? ints_of(node.input(4)) : Ints();
  if (!starts || !steps) return std::nullopt;
  const std::optional<Ints> axes = axes_of(node.input(3), starts->size(), node.output()->rank());
  if (!axes) return std::nullopt;
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto d = static_cast<size_t>((*axes)[i]);
    if (to[d] == Expr(0)) continue;  // no point reads; the start may be anywhere, or beyond what an Expr holds
    const int64_t step = steps->empty() ? 1 : (*steps)[i];
    Expr start = (*starts)[i];
    if ((*starts)[i] < 0) start += from[d];
    if (step < 0) start = min(start, from[d] - Expr(1));
    start = space.facts().simplify(start);
    // Where it begins and ends is inside for every value of the extent's symbols, or else is cut to it.
    const Expr last = start + (to[d] - Expr(1)) * Expr(step);
    const Facts& facts = space.facts();
    const bool is_inside =
        facts.is_nonnegative(step > 0 ? start : last) && facts.is_less(step > 0 ? last : start, from[d]);
    // The only element is the first, however long the step. Longer ones make strides that no Expr holds.
    constexpr int64_t kLongestStep = INT32_MAX;
    const bool is_one = facts.is_at_most(to[d], 1);
    if (!is_inside || (!is_one && (step > kLongestStep || step < -kLongestStep))) return std::nullopt;
    map.index[d] = is_one ? start : start + map.index[d] * Expr(step);
  }
  return whole(std::move(map));
}

std::optional<Sources> sources_of_split(const Node& node, size_t output, IndexMap map) {
  const int64_t given = node.attrs<SplitAttrs>().axis;
  const auto axis = static_cast<size_t>(given < 0 ? given + node.input(0)->rank() : given);
  for (size_t i = 0; i < output; ++i) map.index[axis] += node.output(i)->shape()[axis];
  return whole(std::move(map));
}

std::optional<Sources> sources_of_pad(const Node& node, IndexMap map) {
  const std::optional<ConstantPadding> padding = constant_padding_of(&node);
  if (!padding) return std::nullopt;
  const Shape& from = node.input(0)->shape();
  for (size_t d = 0; d < from.size(); ++d) {
    if (padding->begin[d] == 0 && padding->end[d] == 0) continue;
    map.index[d] = map.index[d] - Expr(padding->begin[d]);
    map.domain.push_back({map.index[d], 0, from[d]});
  }
  return Sources{{{0, std::move(map)}}, padding->value};
}

std::optional<Sources> sources_of_tile(const Node& node, IndexMap map, Space& space) {
  const Shape& from = node.input(0)->shape();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == node.output()->shape()[d]) continue;
    const std::optional<Expr> index = space.resolve(mod(map.index[d], from[d]));
    if (!index) return std::nullopt;
    map.index[d] = *index;
  }
  map.index = space.current(map.index);
  return whole(std::move(map));
}

std::optional<Sources> sources_of_concat(const Node& node, const IndexMap& map) {
  const int64_t given = node.attrs<ConcatAttrs>().axis;
  const auto axis = static_cast<size_t>(given < 0 ? given + node.output()->rank() : given);
  Sources sources;
  Expr begin = 0;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const Expr extent = node.input(i)->shape()[axis];
    if (extent == Expr(0)) continue;
    Piece piece{i, map};
    piece.map.index[axis] = map.index[axis] - begin;
    piece.map.domain.push_back({piece.map.index[axis], 0, extent});
    begin += extent;
    sources.pieces.push_back(std::move(piece));
  }
  return sources;
}

}  // namespace

bool reorders_elements(const Node& node) {
  return node.is(OpKind::transpose) || node.is(OpKind::depth_to_space) || node.is(OpKind::space_to_depth);
}

bool permutes_elements(const Node& node) { return node.has_trait(kView) || reorders_elements(node); }

std::optional<Sources> sources_of(const Node& node, size_t output, const IndexMap& map, Space& space) {
  if (const std::optional<Permutation> permutation = permutation_by(node)) {
    std::optional<Shape> index = source_of_permuted(node, *permutation, map.index, space);
    if (!index) return std::nullopt;
    return whole({*std::move(index), map.domain});
  }
  switch (node.kind()) {
    case OpKind::expand: {
      std::optional<Shape> index = broadcast_index(node.input(0)->shape(), node.output()->shape(), map.index);
      return index ? std::optional(whole({*std::move(index), map.domain})) : std::nullopt;
    }
    case OpKind::slice:
      return sources_of_slice(node, map, space);
    case OpKind::split:
      return sources_of_split(node, output, map);
    case OpKind::pad:
      return sources_of_pad(node, map);
    case OpKind::tile:
      return sources_of_tile(node, map, space);
    case OpKind::concat:
      return sources_of_concat(node, map);
    default:
      return std::nullopt;
  }
}

std::optional<Shape> destination_of(const Node& node, const Shape& input, Space& space) {
  const std::optional<Permutation> permutation = permutation_by(node);
  if (!permutation) return std::nullopt;
  const std::optional<Shape> from = regrouped(input, node.input(0)->shape(), permutation->from, space);
  if (!from) return std::nullopt;
  Shape to;
  for (const int64_t d : permutation->perm) to.push_back((*from)[static_cast<size_t>(d)]);
  return regrouped(to, permutation->permuted(), node.output()->shape(), space);
}

}  // namespace lathe
