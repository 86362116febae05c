// SPDX-License-Identifier: Apache-2.0
// Uses what is known about the contents of shape tensors: operands become constants, and equal contents one value.
#include <algorithm>

#include "ops/rules.h"
#include "passes/match.h"
#include "passes/reshape_target.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

Result<bool> constant_reshape(Rewrite& r) {
  if (r.input(1)->constant()) return false;
  const std::optional<Ints> target = reshape_target(r.input(0)->shape(), r.output()->shape());
  if (!target) return false;
  return r.finish(r.reshape(r.input(0), *target));
}

// The bound of a slice as a number: "to the end" where it is the extent of its axis.
std::optional<int64_t> bound_number(const Expr& bound, const Expr& extent, const std::vector<Range>& symbols) {
  if (bound == extent && !bound.is_constant()) return INT64_MAX;
  return place_in(extent, bound, symbols);
}

// Of input `at` of a slice, starts or ends, as numbers; nothing where they are constants, or not known.
std::optional<Ints> bound_numbers(Rewrite& r, size_t at) {
  const ir::Value* bounds = r.input(at);
  if (bounds->constant() || !bounds->elements()) return std::nullopt;
  const std::optional<Ints> axes = axes_of(r.input(3), bounds->elements()->size(), r.input(0)->rank());
  Ints numbers;
  for (size_t i = 0; axes && i < bounds->elements()->size(); ++i) {
    const Expr& extent = r.input(0)->shape()[static_cast<size_t>((*axes)[i])];
    const std::optional<int64_t> number = bound_number((*bounds->elements())[i], extent, r.graph().symbol_ranges());
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return axes ? std::optional(std::move(numbers)) : std::nullopt;
}

Result<bool> constant_slice(Rewrite& r) {
  const std::optional<Ints> steps = r.input(4) ? ints_of(r.input(4)) : Ints();
  const bool goes_forward = steps && std::ranges::all_of(*steps, [](int64_t step) { return step > 0; });
  if (!goes_forward || r.node->attrs<SliceAttrs>().strict) return false;
  // The bounds share one type.
  for (size_t i : {1, 2, 3, 4})
    if (r.input(i) && r.input(i)->dtype() != DType::i64) return false;
  std::vector<ir::Value*> inputs = r.node->inputs();
  for (const size_t at : {1, 2})
    if (const std::optional<Ints> numbers = bound_numbers(r, at)) inputs[at] = r.ints(*numbers);
  return inputs == r.node->inputs() ? false : r.finish(r.add(SliceAttrs(), std::move(inputs)));
}

// Of two integers the one that is the smaller or the larger, whatever the sizes are.
Result<bool> chosen_bound(Rewrite& r) {
  const ElementwiseOp op = r.node->attrs<ElementwiseAttrs>().op;
  if (op != ElementwiseOp::min && op != ElementwiseOp::max) return false;
  const std::vector<Expr>*a = r.input(0)->elements(), *b = r.input(1)->elements();
  if (!a || !b || a->size() != 1 || b->size() != 1) return false;
  const Range difference = ((*a)[0] - (*b)[0]).range(r.graph().symbol_ranges());
  if (difference.min < 0 && difference.max > 0) return false;
  const bool takes_first = (op == ElementwiseOp::min) == (difference.max <= 0);
  ir::Value* chosen = r.input(takes_first ? 0 : 1);
  return same_shape(chosen, r.output()) ? r.finish(chosen) : false;
}

// Values whose known contents are equal are equal: later ones give way to the first.
Result<bool> merge_equal_contents(ir::Graph& graph) {
  constexpr size_t kMaxElements = 64;
  std::unordered_map<std::string, ir::Value*> seen;
  bool changed = false;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    ir::Node* node = it->get();
    ++it;
    if (node->is(OpKind::constant)) continue;
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      ir::Value* value = node->output(i);
      const std::vector<Expr>* elements = value->elements();
      if (!elements || elements->size() > kMaxElements || (value->uses().empty() && !value->is_graph_output()))
        continue;
      std::string key = fmt::format("{} {} ", name_of(value->dtype()), to_string(value->shape()));
      bool valid = true;
      for (const Expr& element : *elements) {
        valid &= element.is_valid();
        key += element.to_string() + ",";
      }
      if (!valid) continue;
      const auto [first, fresh] = seen.try_emplace(std::move(key), value);
      if (fresh || !may_stand_for(first->second, value)) continue;
      LATHE_TRY(graph.replace_uses(value, first->second));
      changed = true;
    }
  }
  return changed;
}

}  // namespace

Result<bool> simplify_shapes(ir::Graph& graph, PassContext& context) {
  LATHE_ASSIGN(const bool merged, merge_equal_contents(graph));
  static constexpr Rule rules[] = {
      {"reshape(x, computed) = reshape(x, constant) when 0 and -1 can say it", OpKind::reshape, constant_reshape},
      {"slice(x, shape(x)[i] - a, shape(x)[i]) = slice(x, -a, end)", OpKind::slice, constant_slice},
      {"min(a, b) = a when it never is more than b", OpKind::elementwise, chosen_bound},
  };
  LATHE_ASSIGN(const bool rewritten, apply_rules(graph, context, rules));
  return merged || rewritten;
}

}  // namespace lathe
