// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>

#include "ir/builder.h"
#include "ops/rules.h"

namespace lathe {

// Sizes of the symbols of a chain, those of its two names apart.
inline constexpr std::array<std::array<int64_t, 2>, 6> kChainSizes = {{{0, 0}, {1, 1}, {2, 5}, {5, 2}, {0, 3}, {6, 1}}};

inline std::vector<int64_t> symbols_of_chain(const ir::Graph& graph, const std::array<int64_t, 2>& sizes) {
  return {sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(graph.symbols().size())};
}

// Networks of random movements of one input, some of whose dimensions are symbols.
class MovementChains {
 public:
  explicit MovementChains(uint32_t seed) : random_(seed) {}

  int64_t pick(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(bound)); }

  ir::Graph make(DType dtype = DType::f32) {
    ir::Graph graph;
    Shape shape;
    const char* const names[] = {"n", "h"};
    for (int64_t d = 0, rank = pick(4) + 1; d < rank; ++d)
      shape.push_back(pick(3) == 0 ? graph.dim_symbol(names[pick(2)], {0, 6})
                                   : Expr(std::array{1, 2, 3, 4, 6, 8}[pick(6)]));
    ir::Value* value = *graph.add_input("x", dtype, shape);
    for (int64_t i = 0, length = pick(5) + 1; i < length; ++i)
      if (ir::Value* next = move(graph, value)) value = next;
    graph.add_output(value, "y");
    return graph;
  }

 private:
  static ir::Value* take(Result<ir::Value*> value) { return value ? *value : nullptr; }
  ir::Value* ints(ir::Graph& graph, const Ints& values) { return ir::GraphBuilder(graph, {}).ints(values); }

  ir::Value* move(ir::Graph& graph, ir::Value* x) {
    const auto rank = static_cast<int64_t>(x->rank());
    const auto axis = static_cast<size_t>(rank > 0 ? pick(rank) : 0);
    switch (pick(12)) {
      case 0: {
        TransposeAttrs attrs;
        for (int64_t d = 0; d < rank; ++d) attrs.perm.push_back(d);
        std::shuffle(attrs.perm.begin(), attrs.perm.end(), random_);
        return take(graph.add_value(attrs, {x}));
      }
      case 1:
        return split(graph, x, axis);
      case 2:
        return merge(graph, x, axis);
      case 3:
        return slice(graph, x, axis);
      case 4: {
        Ints pads(static_cast<size_t>(2 * rank), 0);
        pads[axis] = pick(3), pads[axis + static_cast<size_t>(rank)] = pick(3);
        if (pick(2) == 0) pads[static_cast<size_t>(pick(2 * rank))] = pick(3);
        const double fill = static_cast<double>(std::array{1, 1, 1, 2}[static_cast<size_t>(pick(4))]);
        Tensor number = *Tensor::allocate(x->dtype(), {});
        write_doubles({&fill, 1}, 0, number);
        return take(graph.add_value(PadAttrs(), {x, ints(graph, pads), *graph.add_constant(number)}));
      }
      case 5: {
        if (rank > 4) return nullptr;
        ir::Value* wider = take(graph.add_value(UnsqueezeAttrs(), {x, ints(graph, {static_cast<int64_t>(axis)})}));
        Ints shape(static_cast<size_t>(rank + 1), 1);
        shape[axis] = pick(3) + 1;
        return wider ? take(graph.add_value(ExpandAttrs(), {wider, ints(graph, shape)})) : nullptr;
      }
      case 6: {
        Ints repeats(static_cast<size_t>(rank), 1);
        repeats[axis] = pick(3) + 1;
        return take(graph.add_value(TileAttrs(), {x, ints(graph, repeats)}));
      }
      case 7:
        return roll(graph, x, axis);
      case 8:
        return shuffle_blocks(graph, x);
      case 9:
        return deal(graph, x, axis);
      case 10:
        return view_ones(graph, x, axis);
      default: {
        ConcatAttrs attrs;
        attrs.axis = static_cast<int64_t>(axis);
        ir::Value* const part = pick(2) == 0 ? slice(graph, x, axis) : x;
        return part ? take(graph.add_value(attrs, {part, x})) : nullptr;
      }
    }
  }

  ir::Value* split(ir::Graph& graph, ir::Value* x, size_t axis) {
    const std::optional<int64_t> extent = x->shape()[axis].as_constant();
    const int64_t factor = pick(2) + 2;
    if (!extent || *extent % factor != 0 || x->rank() > 4) return nullptr;
    Ints shape(x->shape().size(), 0);
    shape[axis] = factor;
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), *extent / factor);
    for (size_t d = axis + 2; d < shape.size(); ++d) {  // a 0 copies by place, which the new dimension moves
      const std::optional<int64_t> dim = x->shape()[d - 1].as_constant();
      if (!dim) return nullptr;
      shape[d] = *dim;
    }
    return take(graph.add_value(ReshapeAttrs(), {x, ints(graph, shape)}));
  }

  ir::Value* merge(ir::Graph& graph, ir::Value* x, size_t axis) {
    if (axis + 1 >= x->shape().size()) return nullptr;
    Ints shape;
    for (size_t d = 0; d < x->shape().size(); ++d) {
      if (d == axis + 1) continue;
      const std::optional<int64_t> dim = x->shape()[d].as_constant();
      if (d == axis)
        shape.push_back(-1);
      else if (d < axis)
        shape.push_back(0);
      else if (dim)
        shape.push_back(*dim);
      else
        return nullptr;
    }
    return take(graph.add_value(ReshapeAttrs(), {x, ints(graph, shape)}));
  }

  ir::Value* slice(ir::Graph& graph, ir::Value* x, size_t axis) {
    const int64_t step = std::array<int64_t, 7>{1, 1, 2, -1, 3, -2, INT64_MAX}[static_cast<size_t>(pick(7))];
    const int64_t far = step < 0 ? INT64_MIN : INT64_MAX;
    const int64_t start = std::array<int64_t, 8>{0, 1, -1, -1, 2, -2, 7, INT64_MAX}[static_cast<size_t>(pick(8))];
    const int64_t end = std::array<int64_t, 6>{far, far, far, -1, 3, 0}[static_cast<size_t>(pick(6))];
    return take(graph.add_value(SliceAttrs(), {x, ints(graph, {start}), ints(graph, {end}),
                                               ints(graph, {static_cast<int64_t>(axis)}), ints(graph, {step})}));
  }

  ir::Value* roll(ir::Graph& graph, ir::Value* x, size_t axis) {
    const int64_t shift = pick(2) + 1, on = static_cast<int64_t>(axis);
    ir::Value* const tail =
        take(graph.add_value(SliceAttrs(), {x, ints(graph, {shift}), ints(graph, {INT64_MAX}), ints(graph, {on})}));
    ir::Value* const head =
        take(graph.add_value(SliceAttrs(), {x, ints(graph, {0}), ints(graph, {shift}), ints(graph, {on})}));
    ConcatAttrs attrs;
    attrs.axis = on;
    return tail && head ? take(graph.add_value(attrs, {tail, head})) : nullptr;
  }

  ir::Value* shuffle_blocks(ir::Graph& graph, ir::Value* x) {
    constexpr int64_t kBlock = 2;
    if (x->rank() != 4) return nullptr;
    const auto is_multiple = [&](size_t d, int64_t of) {
      const std::optional<int64_t> extent = x->shape()[d].as_constant();
      return extent && *extent % of == 0;
    };
    if (is_multiple(1, kBlock * kBlock)) {
      DepthToSpaceAttrs attrs;
      attrs.block = kBlock;
      attrs.mode = pick(2) == 0 ? DepthToSpaceMode::dcr : DepthToSpaceMode::crd;
      return take(graph.add_value(attrs, {x}));
    }
    if (!is_multiple(2, kBlock) || !is_multiple(3, kBlock)) return nullptr;
    SpaceToDepthAttrs attrs;
    attrs.block = kBlock;
    return take(graph.add_value(attrs, {x}));
  }

  // Splits an axis in parts, of which the last may be smaller, or empty, and puts some of them together again.
  ir::Value* deal(ir::Graph& graph, ir::Value* x, size_t axis) {
    SplitAttrs attrs;
    attrs.axis = static_cast<int64_t>(axis);
    const int64_t count = pick(3) + 2;
    Result<ir::Node*> parts = graph.add(attrs, {x}, {}, static_cast<size_t>(count));
    if (!parts) return nullptr;
    const auto part = [&] { return (*parts)->output(static_cast<size_t>(pick(count))); };
    if (pick(3) == 0) return part();
    ConcatAttrs together;
    together.axis = attrs.axis;
    return take(graph.add_value(together, {part(), part(), x}));
  }

  ir::Value* view_ones(ir::Graph& graph, ir::Value* x, size_t axis) {
    const Ints axes{static_cast<int64_t>(axis)};
    if (x->rank() > 1 && x->shape()[axis] == Expr(1))
      return take(graph.add_value(SqueezeAttrs(), {x, ints(graph, axes)}));
    return x->rank() < 6 ? take(graph.add_value(UnsqueezeAttrs(), {x, ints(graph, axes)})) : nullptr;
  }

  std::mt19937 random_;
};

}  // namespace lathe
