// SPDX-License-Identifier: Apache-2.0
#include "lowering/computed_part.h"

#include <algorithm>
#include <cmath>

#include "indexing/index_map.h"
#include "ops/op.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int kLongest = 8;  // nodes of a way

// Whether they are equal: each reader may have a transposition of its own (lowering/duplicate.h).
bool have_same_elements(const Value* a, const Value* b) {
  if (a == b || !a || !b) return a == b;
  const Node *one = a->producer(), *other = b->producer();
  const bool moves = one && other && (permutes_elements(*one) || one->is(OpKind::slice));
  return moves && equal(one->attributes(), other->attributes()) && a->shape() == b->shape() &&
         std::ranges::equal(one->inputs(), other->inputs(), have_same_elements);
}

// Where a slice of neighbours along that axis alone begins.
std::optional<int64_t> begin_of(const Node* slice, size_t axis) {
  if (!slice || !slice->is(OpKind::slice)) return std::nullopt;
  const std::optional<Ints> starts = ints_of(slice->input(1)),
                            axes = axes_of(slice->input(3), 1, slice->output()->rank());
  const std::optional<Ints> steps = slice->input(4) ? ints_of(slice->input(4)) : Ints{1};
  if (!starts || starts->size() != 1 || axes != Ints{static_cast<int64_t>(axis)} || steps != Ints{1})
    return std::nullopt;
  const std::optional<int64_t> extent = slice->input(0)->shape()[axis].as_constant();
  if (starts->front() >= 0) return starts->front();
  return extent ? std::optional(starts->front() + *extent) : std::nullopt;
}

class Way {
 public:
  Way(const Value& x, size_t axis, const Expr& extent) : x_(x), axis_(axis), extent_(extent) {}

  Node* part() const { return part_; }
  std::map<const Node*, size_t> nodes() && { return std::move(nodes_); }
  bool find(const Value* value, int longest = kLongest) {
    Node* node = value->producer();
    if (!node || node->num_outputs() != 1 || longest == 0) return false;
    if (begin_of(node, axis_) == 0 && value->shape().size() == x_.shape().size() && value->shape()[axis_] == extent_ &&
        have_same_elements(node->input(0), &x_))
      return part_ = node, true;
    if (node->has_trait(kView)) return goes_by(*node, 0, longest);
    if (is(node, ElementwiseOp::sub)) return goes_by(*node, 0, longest);
    if (!is(node, ElementwiseOp::add) && !is(node, ElementwiseOp::mul)) return false;
    return goes_by(*node, 0, longest) || goes_by(*node, 1, longest);
  }

 private:
  bool goes_by(const Node& node, size_t input, int longest) {
    const Value* next = node.input(input);
    if (!node.has_trait(kView)) {
      // A single number is in the code and not read, so that it would be there beside the part, too.
      if (!same_shape(next, node.output()) || scalar_of(node.input(1 - input))) return false;
    }
    if (!find(next, longest - 1)) return false;
    nodes_.emplace(&node, input);
    return true;
  }

  const Value& x_;
  size_t axis_;
  Expr extent_;
  Node* part_ = nullptr;
  std::map<const Node*, size_t> nodes_;
};

}  // namespace

std::optional<ComputedPart> computed_part(const Node& concat) {
  if (!concat.is(OpKind::concat) || concat.num_inputs() != 2 || !is_floating(concat.output()->dtype()))
    return std::nullopt;
  const int64_t given = concat.attrs<ConcatAttrs>().axis;
  const auto axis = static_cast<size_t>(given < 0 ? given + concat.output()->rank() : given);
  const Expr extent = concat.input(0)->shape()[axis];
  Node* rest = concat.input(1)->producer();
  const std::optional<int64_t> begin = begin_of(rest, axis);
  if (!begin || Expr(*begin) != extent || rest->input(0)->shape() != concat.output()->shape()) return std::nullopt;
  Way way(*rest->input(0), axis, extent);
  if (!way.find(concat.input(0))) return std::nullopt;
  Node* part = way.part();
  return ComputedPart{std::move(way).nodes(), part, rest};
}

float neutral_number(const Node& node) { return is(&node, ElementwiseOp::mul) ? 1.0f : 0.0f; }

bool keeps_zeros(const Node& node) {
  if (node.is(OpKind::cast) || is(&node, UnaryOp::neg)) return true;
  const bool multiplies = is(&node, ElementwiseOp::mul);
  if (!multiplies && !is(&node, ElementwiseOp::add) && !is(&node, ElementwiseOp::sub)) return false;
  return std::ranges::none_of(node.inputs(), [&](const Value* input) {
    const std::optional<double> number = scalar_of(input);  // in the code, so it is the same everywhere
    return number && (!multiplies || !std::isfinite(*number));
  });
}

}  // namespace lathe
