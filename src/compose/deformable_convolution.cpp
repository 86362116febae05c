// SPDX-License-Identifier: Apache-2.0
// The pixels around each sample are gathered as rows of channels, weighted and added up; then a matrix product sums the
// taps.
#include "compose/deformable_convolution.h"

#include <functional>
#include <numeric>

#include "compose/count_up.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

int64_t product(const Dims& dims, size_t begin = 0) {
  return std::accumulate(dims.begin() + static_cast<ptrdiff_t>(begin), dims.end(), int64_t{1}, std::multiplies<>());
}

// A pixel around each sample: its place among those of an image, its weight, and whether the image has it.
struct Corner {
  ir::Value *place = nullptr, *weight = nullptr, *inside = nullptr;
};

// All tensors of samples are [images, positions..., taps]: an image for each group of offsets.
class Sampler {
 public:
  Sampler(ir::GraphBuilder& c, const DeformableOperands& operands, const DeformableConvolution& how,
          const Dims& weights)
      : c_(c),
        operands_(operands),
        how_(how),
        kernel_(weights.begin() + 2, weights.end()),
        taps_(product(kernel_)),
        channels_(weights[1] * how.groups / how.offset_groups),
        spatial_(static_cast<int64_t>(kernel_.size())),
        images_(c.mul(c.shape_of(operands.x, 0, 1), c.ints({how.offset_groups}))),
        extents_(c.shape_of(operands.x, 2)),
        positions_(c.shape_of(operands.offset, 2)) {}

  // [images, positions..., taps, channels of the group]
  ir::Value* samples() {
    ir::Value* offset = shaped(operands_.offset, {taps_, spatial_});
    std::vector<Corner> corners = {{}};
    for (int64_t d = 0; d < spatial_; ++d) {
      ir::Value* moved = c_.squeeze(c_.slice(offset, 2, d, d + 1), {2});
      ir::Value* at = c_.plus(taps_last(c_.cast(moved, DType::f64)), c_.cast(unmoved(d), DType::f64));
      corners = around(at, d, corners);
    }
    ir::Value *rows = rows_of_pixels(), *sum = nullptr;
    for (const Corner& corner : corners) {
      ir::Value* weight = corner.weight;
      if (operands_.mask) weight = c_.mul(weight, c_.cast(taps_last(shaped(operands_.mask, {taps_})), DType::f64));
      weight = c_.unsqueeze(c_.cast(weight, operands_.x->dtype()), {spatial_ + 2});
      ir::Value* term = c_.mul(c_.gather(rows, row_of(corner), 0), weight);
      sum = sum ? c_.plus(sum, term) : term;
    }
    return sum;
  }

  ir::Value* positions() { return positions_; }
  ir::Value* num_positions() { return c_.reduce(ReduceOp::prod, positions_, {0}, true); }
  int64_t taps() const { return taps_; }
  int64_t channels() const { return channels_; }

 private:
  // x[n, groups * each..., positions...] with an image for each group.
  ir::Value* shaped(ir::Value* x, const Ints& each) {
    return c_.reshape(x, c_.concat({images_, c_.ints(each), positions_}, 0), true);
  }

  ir::Value* taps_last(ir::Value* x) {
    Ints perm = {0};
    for (int64_t d = 0; d < spatial_; ++d) perm.push_back(2 + d);
    perm.push_back(1);
    return c_.transpose(x, perm);
  }

  // Where taps lie that are not moved: along dimension d of x, of each position along it and each tap.
  ir::Value* unmoved(int64_t d) {
    const auto at = static_cast<size_t>(d);
    Ints firsts, along(kernel_.size() + 1, 1);
    for (int64_t tap = 0; tap < taps_; ++tap)
      firsts.push_back(tap / product(kernel_, at + 1) % kernel_[at] * how_.dilation[at] - how_.padding[at]);
    along[at] = -1;
    ir::Value* steps = c_.mul(count_up(c_, c_.slice(positions_, 0, d, d + 1)), c_.integer_scalar(how_.stride[at]));
    return c_.plus(c_.reshape(steps, along), c_.ints(firsts));
  }

  // The pixels around points along dimension d, for each of those that are chosen along the dimensions before it.
  std::vector<Corner> around(ir::Value* at, int64_t d, const std::vector<Corner>& before) {
    ir::Value* extent = c_.cast(c_.squeeze(c_.slice(extents_, 0, d, d + 1), {0}), DType::f64);
    ir::Value *low = c_.unary(UnaryOp::floor, at), *part = c_.minus(at, low);
    std::vector<Corner> corners;
    for (const Corner& other : before)
      for (const bool is_high : {false, true}) {
        Corner corner;
        corner.place = is_high ? c_.binary(Op::add, low, 1.0) : low;
        corner.weight = is_high ? part : c_.minus(c_.scalar(1, DType::f64), part);
        corner.inside = c_.binary(Op::logical_and, c_.binary(Op::greater_equal, corner.place, 0.0),
                                  c_.binary(Op::less, corner.place, extent));
        if (other.place) {
          corner.place = c_.plus(c_.mul(other.place, extent), corner.place);
          corner.weight = c_.mul(other.weight, corner.weight);
          corner.inside = c_.binary(Op::logical_and, other.inside, corner.inside);
        }
        corners.push_back(corner);
      }
    return corners;
  }

  // [images * pixels + 1, channels]; the last row is the 0 that samples find beyond an image.
  ir::Value* rows_of_pixels() {
    ir::Value* pixels = c_.reduce(ReduceOp::prod, extents_, {0}, true);
    ir::Value* x = c_.reshape(operands_.x, c_.concat({images_, c_.ints({channels_}), pixels}, 0), true);
    ir::Value* shape = c_.concat({c_.mul(images_, pixels), c_.ints({channels_})}, 0);
    ir::Value* rows = c_.reshape(c_.transpose(x, {0, 2, 1}), shape, true);
    return c_.concat({rows, c_.filled(0, x->dtype(), {1, channels_})}, 0);
  }

  ir::Value* row_of(const Corner& corner) {
    ir::Value* pixels = c_.reduce(ReduceOp::prod, extents_, {0}, true);
    Ints first(kernel_.size() + 2, 1);
    first[0] = -1;
    ir::Value* begin = c_.reshape(c_.mul(count_up(c_, images_), pixels), first);
    ir::Value* row = c_.plus(c_.cast(corner.place, DType::i64), begin);
    return c_.select(corner.inside, row, c_.mul(images_, pixels));
  }

  ir::GraphBuilder& c_;
  const DeformableOperands& operands_;
  const DeformableConvolution& how_;
  const Dims kernel_;
  const int64_t taps_, channels_, spatial_;
  ir::Value *images_, *extents_, *positions_;
};

}  // namespace

ir::Value* deformable_convolution(ir::GraphBuilder& c, const DeformableOperands& operands,
                                  const DeformableConvolution& how) {
  const Dims weights = *as_constant(operands.weight->shape());
  Sampler sampler(c, operands, how, weights);
  ir::Value *batch = c.shape_of(operands.x, 0, 1), *count = sampler.num_positions();
  const int64_t parts = how.offset_groups, channels = sampler.channels(), taps = sampler.taps();
  const auto shaped = [&](ir::Value* x, std::vector<ir::Value*> dims) {
    return c.reshape(x, c.concat(std::move(dims), 0), true);
  };
  ir::Value* samples = shaped(sampler.samples(), {batch, c.ints({parts}), count, c.ints({taps, channels})});
  if (how.groups > 1) {  // channels of the groups and of the offsets' groups overlap in any way
    ir::Value* columns = c.transpose(samples, {0, 1, 4, 3, 2});
    columns = shaped(columns, {batch, c.ints({parts * channels * taps}), sampler.positions()});
    Ints points(weights.size(), 1);
    points[0] = weights[0];
    points[1] = -1;
    ConvolutionAttrs attributes;
    attributes.groups = how.groups;
    std::vector<ir::Value*> all = {columns, c.reshape(operands.weight, points)};
    if (operands.bias) all.push_back(operands.bias);
    return c.add(attributes, all);
  }
  ir::Value* rows = shaped(c.transpose(samples, {0, 2, 1, 3, 4}), {batch, count, c.ints({parts * taps * channels})});
  ir::Value* weight = c.reshape(operands.weight, {weights[0], parts, channels, taps});
  weight = c.reshape(c.transpose(weight, {1, 3, 2, 0}), Ints{parts * taps * channels, weights[0]});
  ir::Value* y = c.matmul(rows, weight);
  if (operands.bias) y = c.plus(y, operands.bias);
  return shaped(c.transpose(y, {0, 2, 1}), {batch, c.ints({weights[0]}), sampler.positions()});
}

}  // namespace lathe
