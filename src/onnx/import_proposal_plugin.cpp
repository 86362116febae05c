// SPDX-License-Identifier: Apache-2.0
// Faster R-CNN's region proposals, as the standard plugins Proposal and ProposalDynamic of TensorRT make them. Names
// and defaults of fields are theirs.
#include <cmath>
#include <limits>

#include "compose/count_up.h"
#include "compose/efficient_nms.h"
#include "compose/rows_at.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostAnchors = 4096;  // of a place; models have about ten
constexpr double kLowest = -std::numeric_limits<double>::infinity();

struct Proposals {
  int64_t image[2]{}, stride = 0;        // height, width, in pixels; of the feature map's places
  int64_t candidates = 0, most = 0;      // before and after suppression
  double least_size = 0, threshold = 0;  // in pixels; of overlaps
  std::vector<double> extents[2];        // of the anchors at a place: heights, widths
  int64_t anchors() const { return static_cast<int64_t>(extents[0].size()); }
};

Proposals read_fields(NodeContext& c) {
  Proposals how;
  how.image[0] = c.integer("input_height", 0);
  how.image[1] = c.integer("input_width", 0);
  how.stride = c.integer("rpn_stride", 0);
  how.candidates = c.integer("pre_nms_top_n", 0);
  how.most = c.integer("post_nms_top_n", 0);
  how.least_size = c.real("roi_min_size", 0);
  how.threshold = c.real("nms_iou_threshold", 0);
  const std::vector<double> sizes = c.reals("anchor_sizes"), ratios = c.reals("anchor_ratios");
  if (!require_product(c, "anchor_sizes and anchor_ratios",
                       {static_cast<int64_t>(sizes.size()), static_cast<int64_t>(ratios.size())}, kMostAnchors))
    return how;
  for (const double size : sizes)
    for (const double ratio : ratios) {
      how.extents[0].push_back(size / std::sqrt(ratio));
      how.extents[1].push_back(size * std::sqrt(ratio));
    }
  return how;
}

// The boxes that deltas[N, A * 4, H, W] make of the anchors, within the image: f32[N, A * H * W, 4], y and x of the
// lower corner and of the upper one, in pixels.
ir::Value* boxes_of(NodeContext& c, ir::Value* deltas, const Proposals& how) {
  ir::Value* shape = c.concat({c.shape_of(deltas, 0, 1), c.ints({how.anchors(), 4}), c.shape_of(deltas, 2, 4)}, 0);
  ir::Value* split = c.reshape(deltas, shape);
  std::vector<ir::Value*> corners(4);
  for (const int64_t d : {0, 1}) {  // y, x
    const auto delta = [&](int64_t i) { return c.squeeze(c.slice(split, 2, i, i + 1), {2}); };
    ir::Value* extent = f32_constant(c, how.extents[d], {how.anchors(), 1, 1});
    ir::Value* place = c.cast(count_up(c, c.shape_of(deltas, 2 + d, 3 + d)), DType::f32);
    place = c.binary(ElementwiseOp::mul, c.binary(ElementwiseOp::add, place, 0.5), static_cast<double>(how.stride));
    if (d == 0) place = c.unsqueeze(place, {1});
    ir::Value* center = c.plus(place, c.mul(extent, delta(1 - d)));
    ir::Value* size = c.mul(extent, c.unary(UnaryOp::exp, delta(3 - d)));
    ir::Value* low = c.minus(center, c.binary(ElementwiseOp::mul, size, 0.5));
    const double last = static_cast<double>(how.image[d] - 1);
    const auto corner = [&](ir::Value* at) { return c.unsqueeze(c.activation(ActivationOp::clip, at, 0, last), {4}); };
    corners[static_cast<size_t>(d)] = corner(low);
    corners[static_cast<size_t>(2 + d)] = corner(c.plus(low, size));
  }
  return c.reshape(c.concat(std::move(corners), 4), Ints{0, -1, 4});
}

// f32[N, A * H * W]. Boxes that are too small come behind all others, and are taken where there is room, as TensorRT
// does.
ir::Value* scores_of(NodeContext& c, ir::Value* scores, ir::Value* boxes, const Proposals& how) {
  ir::Value* sides = c.minus(c.slice(boxes, 2, 2, 4), c.slice(boxes, 2, 0, 2));
  ir::Value* shorter = c.reduce(ReduceOp::min, sides, {2}, false);
  ir::Value* is_large = c.binary(ElementwiseOp::greater, shorter, how.least_size);
  return c.select(is_large, c.reshape(scores, {0, -1}), c.scalar(kLowest, DType::f32));
}

}  // namespace

void import_proposal_plugin(NodeContext& c) {
  const Proposals how = read_fields(c);
  PluginDims dims(c);
  dims.set("anchor_sizes x anchor_ratios", how.anchors());
  dims.set("anchor_sizes x anchor_ratios x 4", 4 * how.anchors());
  ir::Value* scores = dims.require(0, "batch, anchor_sizes x anchor_ratios, height, width");
  ir::Value* deltas = dims.require(1, "batch, anchor_sizes x anchor_ratios x 4, height, width");
  if (c.failed()) return;
  ir::Value* boxes = boxes_of(c, c.cast(deltas, DType::f32), how);
  ir::Value* ranked = scores_of(c, c.cast(scores, DType::f32), boxes, how);
  TopkAttrs best;
  best.axis = 1;
  ir::Value* count = c.binary(ElementwiseOp::min, c.shape_of(ranked, 1, 2), c.ints({how.candidates}));
  boxes = rows_at(c, boxes, c.add_all(best, {ranked, count}, 2)[1]);
  // From here on the order alone counts: even what is too small can suppress, and be kept.
  ir::Value* order = c.unary(UnaryOp::neg, c.cast(count_up(c, count), DType::f32));
  order = c.expand(c.unsqueeze(order, {1}), c.concat({c.shape_of(boxes, 0, 2), c.ints({1})}, 0));
  EfficientNms suppression;
  suppression.score_threshold = kLowest;
  suppression.iou_threshold = how.threshold;
  suppression.max_boxes = suppression.max_per_class = how.most;
  suppression.strict = suppression.whole_pixels = true;
  const Detections kept = efficient_nms(c, boxes, order, nullptr, suppression);
  const double height = static_cast<double>(how.image[0] - 1), width = static_cast<double>(how.image[1] - 1);
  ir::Value* parts = c.divide(rows_at(c, boxes, kept.anchors), f32_constant(c, {height, width, height, width}, {4}));
  parts = c.select(c.unsqueeze(kept.found, {2}), parts, c.scalar(0, DType::f32));
  c.set_output(0, c.unsqueeze(parts, {3}));
}

}  // namespace lathe::onnx
