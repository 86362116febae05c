// SPDX-License-Identifier: Apache-2.0
// What holds levels of a scale already is not rounded to them again. Networks come with a Q/DQ pair behind every op;
// behind those that only move or choose elements it changes nothing.
#include <cmath>
#include <unordered_set>

#include "ops/rules.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

// The numbers that one scale and one zero point give the levels of a type, as floats of a type.
struct Grid {
  DType integers, floats;
  double scale, zero_point;
  bool operator==(const Grid&) const = default;
};

// Of what Q reads or DQ gives: `integers` and `floats` are on either side of it.
std::optional<Grid> grid_of(const ir::Node& node, const ir::Value* integers, const ir::Value* floats) {
  const std::optional<double> scale = scalar_of(node.input(1));
  const std::optional<double> zero_point = node.input(2) ? scalar_of(node.input(2)) : 0;
  if (!scale || !zero_point) return std::nullopt;
  return Grid{integers->dtype(), floats->dtype(), *scale, *zero_point};
}

bool holds(const Grid& grid, double number) {
  const IntegerRange range = *quantized_range(grid.integers);
  const double level = std::nearbyint(number / grid.scale) + grid.zero_point;
  if (!(level >= range.low && level <= range.high)) return false;
  double nearest = (level - grid.zero_point) * grid.scale;
  dispatch(grid.floats, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_class_v<T>)
      nearest = static_cast<float>(round_to<T>(nearest));
    else
      nearest = static_cast<double>(round_to<T>(nearest));
  });
  return nearest == number;
}

bool holds(const Grid& grid, const Tensor& content) {
  for (double number : to_doubles(content))
    if (!holds(grid, number)) return false;
  return true;
}

// Those of the node's inputs of which its results hold elements, and nothing else but numbers of the grid; nothing
// where it computes others.
std::optional<std::vector<const ir::Value*>> elements_from(const ir::Node& node, const Grid& grid) {
  using Values = std::vector<const ir::Value*>;
  if (node.is(OpKind::elementwise)) {
    const ElementwiseOp op = node.attrs<ElementwiseAttrs>().op;
    if (op == ElementwiseOp::max || op == ElementwiseOp::min) return Values{node.input(0), node.input(1)};
  } else if (node.is(OpKind::activation)) {
    const auto& attrs = node.attrs<ActivationAttrs>();
    const auto is_bound = [&](double bound) { return std::isinf(bound) || holds(grid, bound); };
    const bool is_clip = attrs.op == ActivationOp::clip && is_bound(attrs.alpha) && is_bound(attrs.beta);
    if (attrs.op == ActivationOp::relu || is_clip) return Values{node.input(0)};
  } else if (Values operands = unchanged_operands(node); !operands.empty()) {
    return operands;
  } else if (gives_elements(node)) {
    return Values{node.input(0)};
  }
  return std::nullopt;
}

constexpr size_t kMostValues = 256;  // that are looked at

// Whether every element of the value is a number of the grid.
bool is_on(const Grid& grid, const ir::Value* value) {
  std::vector<const ir::Value*> pending{value};
  std::unordered_set<const ir::Value*> seen;
  while (!pending.empty()) {
    const ir::Value* next = pending.back();
    pending.pop_back();
    if (!seen.insert(next).second) continue;
    if (seen.size() > kMostValues || next->dtype() != grid.floats) return false;
    if (const Tensor* content = next->constant()) {
      if (!holds(grid, *content)) return false;
      continue;
    }
    const ir::Node* node = next->producer();
    if (!node) return false;
    if (node->is(OpKind::dequantize)) {
      if (grid_of(*node, node->input(0), next) != grid) return false;
      continue;
    }
    const std::optional<std::vector<const ir::Value*>> sources = elements_from(*node, grid);
    if (!sources) return false;
    pending.insert(pending.end(), sources->begin(), sources->end());
  }
  return true;
}

// The pair in front of an activation that x is the result of, where nothing else reads it: the quantize node.
const ir::Node* pair_before(const ir::Value* x, const Grid& grid) {
  const ir::Node* activation = made_by(x, OpKind::activation);
  if (!activation || !x->has_single_use() || !activation->input(0)->has_single_use()) return nullptr;
  const ir::Node* floats = made_by(activation->input(0), OpKind::dequantize);
  const ir::Node* levels = floats ? made_by(floats->input(0), OpKind::quantize) : nullptr;
  if (!levels || !floats->input(0)->has_single_use()) return nullptr;
  return grid_of(*levels, floats->input(0), levels->input(0)) == grid ? levels : nullptr;
}

Result<bool> drop(Rewrite& r) {
  const ir::Node* inner = made_by(r.input(0), OpKind::quantize);
  if (!inner) return false;
  ir::Value* x = inner->input(0);
  const std::optional<Grid> grid = grid_of(*r.node, r.input(0), r.output());
  if (!grid || grid_of(*inner, r.input(0), x) != grid) return false;
  if (!keeps_levels(grid->scale, grid->integers, grid->floats) || !is_on(*grid, x)) return false;
  // Of pairs on either side of an activation the one behind it stays: what multiplies integers reads that.
  if (const ir::Node* before = pair_before(x, *grid)) {
    r.absorb(before);
    r.absorb(x->producer());
    std::vector<ir::Value*> levels = inner->inputs(), floats = r.node->inputs();
    levels[0] = r.add(x->producer()->attributes(), {before->input(0)});
    floats[0] = r.add(inner->attributes(), std::move(levels));
    return r.finish(r.add(r.node->attributes(), std::move(floats)));
  }
  r.absorb(inner);
  return r.finish(x);
}

}  // namespace

Result<bool> eliminate_requantization(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"dequantize(quantize(x, s, z), s, z) = x when x holds levels of s and z", OpKind::dequantize, drop},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
