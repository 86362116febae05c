// SPDX-License-Identifier: Apache-2.0
#include "build/excerpt.h"

#include <algorithm>

#include "passes/match.h"
#include "passes/padding.h"

namespace lathe {
namespace {

using ir::Node;

Excerpt whole_of(const Node& node) {
  const Shape &from = node.input(0)->shape(), &to = node.output()->shape();
  Excerpt excerpt{Ints(to.size(), 0), Ints(to.size(), 1), {}, {}};
  for (size_t d = 0; d < to.size(); ++d) excerpt.whole.push_back(from[d] == to[d]);
  return excerpt;
}

std::optional<Excerpt> excerpt_of_pad(const Node& node) {
  const std::optional<ConstantPadding> padding = constant_padding_of(&node);
  if (!padding) return std::nullopt;
  Excerpt excerpt = whole_of(node);
  excerpt.value = static_cast<float>(padding->value);
  const Shape& to = node.output()->shape();
  for (size_t d = 0; d < to.size(); ++d) {
    if (padding->begin[d] + padding->end[d] > 0 && to[d] == Expr(1)) return std::nullopt;  // around nothing
    excerpt.start[d] = -padding->begin[d];
  }
  return excerpt;
}

}  // namespace

std::optional<Excerpt> excerpt_of_slice(const Node& node) {
  const Shape& from = node.input(0)->shape();
  const std::optional<Ints> starts = ints_of(node.input(1)), steps = node.input(4) ? ints_of(node.input(4)) : Ints();
  if (!starts || !steps) return std::nullopt;
  const std::optional<Ints> axes = axes_of(node.input(3), starts->size(), node.output()->rank());
  if (!axes) return std::nullopt;
  Excerpt excerpt = whole_of(node);
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto d = static_cast<size_t>((*axes)[i]);
    const std::optional<int64_t> extent = from[d].as_constant();
    excerpt.step[d] = steps->empty() ? 1 : (*steps)[i];
    excerpt.start[d] = (*starts)[i];
    if (excerpt.start[d] < 0 && extent) excerpt.start[d] = std::max<int64_t>(0, excerpt.start[d] + *extent);
    // Where it begins must be inside for every value of the extent's symbols.
    if (excerpt.step[d] < 1 || excerpt.start[d] < 0 || excerpt.start[d] > extent.value_or(0)) return std::nullopt;
    excerpt.whole[d] = excerpt.whole[d] && excerpt.step[d] == 1;
  }
  return excerpt;
}

bool may_be_excerpt(const Node& node) { return node.is(OpKind::pad) || node.is(OpKind::slice); }

bool Excerpt::has_steps() const {
  return std::any_of(step.begin(), step.end(), [](int64_t each) { return each != 1; });
}

std::optional<Excerpt> excerpt_of(const Node& node) {
  if (node.is(OpKind::pad)) return excerpt_of_pad(node);
  if (!node.is(OpKind::slice)) return std::nullopt;
  std::optional<Excerpt> slice = excerpt_of_slice(node);
  return slice && slice->has_steps() ? slice : std::nullopt;
}

}  // namespace lathe
