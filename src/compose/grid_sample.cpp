// SPDX-License-Identifier: Apache-2.0
// For each output position, a weighted sum of gathered neighbours.
#include "compose/grid_sample.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

// A neighbour along one axis: its index (integers in floating type), weight, and whether it exists; null = 1, yes.
struct Tap {
  ir::Value* index = nullptr;
  ir::Value* weight = nullptr;
  ir::Value* inside = nullptr;
};

struct Sampler {
  ir::GraphBuilder& c;
  GridSample how;

  ir::Value* clamp(ir::Value* v, ir::Value* extent) {
    return c.binary(Op::min, c.binary(Op::max, v, 0.0), c.binary(Op::add, extent, -1.0));
  }

  // The borders of the axis: between the outermost pixels' centres, or around their edges.
  ir::Value* low(ir::Value* extent) { return c.scalar_like(how.aligns_corners ? 0 : -0.5, extent); }
  ir::Value* high(ir::Value* extent) { return c.binary(Op::add, extent, how.aligns_corners ? -1.0 : -0.5); }

  ir::Value* reflect(ir::Value* v, ir::Value* extent) {
    ir::Value* span = c.binary(Op::max, c.minus(high(extent), low(extent)), 0.5);  // 0 for a single pixel and corners
    ir::Value* period = c.binary(Op::mul, span, 2.0);
    ir::Value* way = c.binary(Op::fmod, c.unary(UnaryOp::abs, c.minus(v, low(extent))), period);
    return c.plus(c.binary(Op::min, way, c.minus(period, way)), low(extent));
  }

  // From [-1, 1] to pixels, then what the padding does to points beyond the borders.
  ir::Value* position(ir::Value* normalized, ir::Value* extent) {
    ir::Value* from_zero = c.binary(Op::add, normalized, 1.0);
    ir::Value* v = how.aligns_corners ? c.mul(c.binary(Op::mul, from_zero, 0.5), c.binary(Op::add, extent, -1.0))
                                      : c.binary(Op::mul, c.binary(Op::add, c.mul(from_zero, extent), -1.0), 0.5);
    if (how.mode == GridSample::Mode::nearest) v = c.unary(UnaryOp::round, v);
    if (how.outside == GridSample::Outside::reflection) return reflect(v, extent);
    if (how.outside == GridSample::Outside::zeros) return v;
    ir::Value* beyond =
        c.binary(Op::logical_or, c.binary(Op::less, v, low(extent)), c.binary(Op::greater, v, high(extent)));
    return c.select(beyond, clamp(v, extent), v);
  }

  Tap tap(ir::Value* index, ir::Value* weight, ir::Value* extent) {
    Tap result{clamp(how.outside == GridSample::Outside::reflection ? reflect(index, extent) : index, extent), weight,
               nullptr};
    if (how.outside == GridSample::Outside::zeros) result.inside = c.binary(Op::equal, index, result.index);
    return result;
  }

  // Keys' cubic with a = -0.75 at distance d: near (up to 1) and far (1 to 2).
  ir::Value* cubic_near(ir::Value* d) {
    ir::Value* inner = c.binary(Op::add, c.binary(Op::mul, d, 1.25), -2.25);
    return c.binary(Op::add, c.mul(c.mul(inner, d), d), 1.0);
  }
  ir::Value* cubic_far(ir::Value* d) {
    ir::Value* inner = c.binary(Op::add, c.binary(Op::mul, d, -0.75), 3.75);
    return c.binary(Op::add, c.mul(c.binary(Op::add, c.mul(inner, d), -6.0), d), 3.0);
  }

  std::vector<Tap> taps(ir::Value* v, ir::Value* extent) {
    if (how.mode == GridSample::Mode::nearest) return {tap(c.unary(UnaryOp::round, v), nullptr, extent)};
    ir::Value* base = c.unary(UnaryOp::floor, v);
    ir::Value* f = c.minus(v, base);
    ir::Value* rest = c.minus(c.scalar_like(1, f), f);
    const auto at = [&](double step) { return c.binary(Op::add, base, step); };
    if (how.mode == GridSample::Mode::linear) return {tap(base, rest, extent), tap(at(1), f, extent)};
    return {tap(at(-1), cubic_far(c.binary(Op::add, f, 1.0)), extent), tap(base, cubic_near(f), extent),
            tap(at(1), cubic_near(rest), extent), tap(at(2), cubic_far(c.binary(Op::add, rest, 1.0)), extent)};
  }

  // One choice of neighbour per axis folded into another.
  Tap combine(const Tap& a, const Tap& b, ir::Value* extent) {
    Tap result;
    result.index = c.plus(c.mul(a.index, extent), b.index);
    result.weight = a.weight && b.weight ? c.mul(a.weight, b.weight) : a.weight ? a.weight : b.weight;
    result.inside = a.inside && b.inside ? c.binary(Op::logical_and, a.inside, b.inside)
                    : a.inside           ? a.inside
                                         : b.inside;
    return result;
  }
};

}  // namespace

ir::Value* grid_sample(ir::GraphBuilder& c, ir::Value* x, ir::Value* grid, const GridSample& how) {
  Sampler s{c, how};
  const int spatial = x->rank() - 2;
  // Flat indices may pass 2^24, so positions are worked out in f64; they are few beside the channels.
  ir::Value* points = c.transpose(
      c.cast(c.reshape(grid, c.concat({c.shape_of(grid, 0, 1), c.ints({-1, spatial})}, 0)), DType::f64), {0, 2, 1});
  std::vector<Tap> taps;
  for (int axis = 0; axis < spatial && !c.failed(); ++axis) {
    ir::Value* extent = c.cast(c.squeeze(c.shape_of(x, axis + 2, axis + 3), {0}), DType::f64);
    const int64_t component = spatial - 1 - axis;  // the grid lists the last axis first
    const std::vector<Tap> here = s.taps(s.position(c.slice(points, 1, component, component + 1), extent), extent);
    std::vector<Tap> all;
    for (const Tap& before : taps)
      for (const Tap& tap : here) all.push_back(s.combine(before, tap, extent));
    taps = axis == 0 ? here : all;
  }
  ir::Value* pixels = c.reshape(x, c.concat({c.shape_of(x, 0, 2), c.ints({-1})}, 0));
  ir::Value* wide = c.concat({c.shape_of(x, 0, 2), c.shape_of(points, 2, 3)}, 0);
  GatherElementsAttrs gather;
  gather.axis = 2;
  ir::Value* sum = nullptr;
  for (const Tap& tap : taps) {
    ir::Value* term = c.add(gather, {pixels, c.expand(c.cast(tap.index, DType::i64), wide)});
    if (tap.inside) term = c.select(tap.inside, term, c.scalar_like(0, x));
    if (tap.weight) term = c.mul(term, c.cast(tap.weight, x->dtype()));
    sum = sum ? c.plus(sum, term) : term;
  }
  return c.reshape(sum, c.concat({c.shape_of(x, 0, 2), c.shape_of(grid, 1, spatial + 1)}, 0), true);
}

}  // namespace lathe
