// SPDX-License-Identifier: Apache-2.0
#include "compose/efficient_nms.h"

#include <cmath>
#include <limits>

#include "compose/count_up.h"
#include "compose/rows_at.h"

namespace lathe {
namespace {

using ir::Value;

constexpr double kNone = -std::numeric_limits<double>::infinity();  // the score of what was not kept

// The largest number of f32 below `x`: to be above it is to be at least x. Not a denormal, which devices may take for
// 0.
double below(double x) {
  const float next = std::nextafter(static_cast<float>(x), -std::numeric_limits<float>::infinity());
  return std::fpclassify(next) == FP_SUBNORMAL && next < 0 ? -std::numeric_limits<float>::min() : next;
}

// What scores must be above, as they come. A logit is known by its threshold's: above 1 no probability is, and each
// number has one above 0.
double least_score(const EfficientNms& how) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double threshold = how.score_threshold;
  if (how.sigmoid && threshold > 1) return kInfinity;
  if (how.sigmoid) threshold = threshold <= 0 ? -kInfinity : std::log(threshold / (1 - threshold));
  return how.strict ? threshold : below(threshold);
}

// Boxes[..., 4] as they overlap.
Value* extents(ir::GraphBuilder& c, Value* boxes, bool whole_pixels) {
  return whole_pixels ? c.plus(boxes, c.constant(Tensor::of<float>({4}, {0, 0, 1, 1}))) : boxes;
}

// kNone for scores[B, N, C] that are not among the `most` best of their class. Of equals the lower anchor is better.
Value* best_candidates(ir::GraphBuilder& c, Value* scores, int64_t most) {
  const std::optional<int64_t> anchors = scores->shape()[1].as_constant();
  if (most == 0 || (anchors && *anchors <= most)) return scores;
  Value* none = c.scalar(kNone, DType::f32);
  Value* room = c.concat({c.shape_of(scores, 0, 1), c.ints({most}), c.shape_of(scores, 2, 3)}, 0);
  Value* all = c.concat({scores, c.expand(none, room)}, 1);  // there are always as many
  TopkAttrs best;
  best.axis = 1;
  const std::vector<Value*> top = c.add_all(best, {all, c.ints({most})}, 2);
  ScatterElementsAttrs back;
  back.axis = 1;
  Value* kept = c.add(back, {c.expand(none, c.shape_of(all)), top[1], top[0]});
  return c.add(SliceAttrs{}, {kept, c.ints({0}), c.shape_of(scores, 1, 2), c.ints({1})});
}

// Lower and upper corners of boxes[B, N, 1 or C, 4].
Value* corners(ir::GraphBuilder& c, Value* boxes, Value* anchors, bool centers) {
  const auto halves = [&](Value* x) { return std::pair(c.slice(x, 3, 0, 2), c.slice(x, 3, 2, 4)); };
  if (anchors) anchors = c.unsqueeze(anchors, {2});
  if (!centers) {
    const auto [a, b] = halves(anchors ? c.plus(boxes, anchors) : boxes);
    return c.concat({c.binary(ElementwiseOp::min, a, b), c.binary(ElementwiseOp::max, a, b)}, 3);
  }
  auto [center, size] = halves(boxes);
  if (anchors) {
    const auto [anchor_center, anchor_size] = halves(anchors);
    center = c.plus(c.mul(center, anchor_size), anchor_center);
    size = c.mul(anchor_size, c.unary(UnaryOp::exp, size));
  }
  Value* half = c.binary(ElementwiseOp::mul, size, 0.5);
  return c.concat({c.minus(center, half), c.plus(center, half)}, 3);
}

// The scores[B, N, C] of boxes[B, N, 1 or C, 4] that are kept, where they were; kNone elsewhere.
Value* kept_scores(ir::GraphBuilder& c, Value* boxes, Value* scores, bool shared, const EfficientNms& how) {
  Value* by_class = c.transpose(scores, {0, 2, 1});
  Value *problem_boxes = nullptr, *problem_scores = by_class;
  if (how.across_classes) {  // one class, of a box for each anchor and class
    Value* shape = c.concat({c.shape_of(scores), c.ints({4})}, 0);
    problem_boxes = c.reshape(c.expand(boxes, shape), {0, -1, 4});
    problem_scores = c.unsqueeze(c.reshape(scores, {0, -1}), {1});
  } else if (shared) {
    problem_boxes = c.squeeze(boxes, {2});
  } else {  // an image for each class
    Value* anchors = c.shape_of(scores, 1, 2);
    problem_boxes = c.reshape(c.transpose(boxes, {0, 2, 1, 3}), c.concat({c.ints({-1}), anchors, c.ints({4})}, 0));
    problem_scores = c.reshape(by_class, c.concat({c.ints({-1, 1}), anchors}, 0));
  }
  const double iou = std::min(how.strict ? how.iou_threshold : below(how.iou_threshold), 1.0);
  Value* selected =
      c.add(NonMaxSuppressionAttrs{}, {problem_boxes, problem_scores, c.integer_scalar(how.max_per_class),
                                       c.scalar(iou, DType::f32), c.scalar(least_score(how), DType::f32)});
  Value* none = c.expand(c.scalar(kNone, DType::f32), c.shape_of(problem_scores));
  Value* kept = c.add(ScatterNdAttrs{}, {none, selected, c.add(GatherNdAttrs{}, {problem_scores, selected})});
  if (how.across_classes) return c.reshape(kept, c.shape_of(scores));
  return c.transpose(c.reshape(kept, c.shape_of(by_class)), {0, 2, 1});
}

// kNone for the background's.
Value* without_background(ir::GraphBuilder& c, Value* scores, int64_t background) {
  if (background < 0) return scores;
  Value* classes = count_up(c, c.shape_of(scores, 2, 3));
  return c.select(c.binary(ElementwiseOp::equal, classes, c.integer_scalar(background)), c.scalar(kNone, DType::f32),
                  scores);
}

}  // namespace

Detections efficient_nms(ir::GraphBuilder& c, Value* boxes, Value* scores, Value* anchors, const EfficientNms& how) {
  const DType type = boxes->dtype();
  const bool shared = boxes->rank() == 3 || boxes->shape()[2] == Expr(1);
  if (boxes->rank() == 3) boxes = c.unsqueeze(boxes, {2});
  if (scores->rank() == 4) scores = c.squeeze(scores, {3});
  Value* given = c.cast(boxes, DType::f32);
  boxes = corners(c, given, anchors ? c.cast(anchors, DType::f32) : nullptr, how.centers);
  scores = without_background(c, c.cast(scores, DType::f32), how.background);
  scores = best_candidates(c, scores, how.candidates);

  // As many as are asked for are always there, if need be from behind all others.
  Value* kept = c.reshape(kept_scores(c, extents(c, boxes, how.whole_pixels), scores, shared, how), {0, -1});
  Value* room = c.concat({c.shape_of(scores, 0, 1), c.ints({how.max_boxes})}, 0);
  TopkAttrs best;
  best.axis = 1;
  const std::vector<Value*> top =
      c.add_all(best, {c.concat({kept, c.expand(c.scalar(kNone, DType::f32), room)}, 1), c.ints({how.max_boxes})}, 2);
  Value* found = c.binary(ElementwiseOp::greater, top[0], kNone);
  Value* position = c.select(found, top[1], c.integer_scalar(0));
  Value* num_classes = c.shape_of(scores, 2, 3);
  Value* place = shared ? c.divide(position, num_classes) : position;
  Value* box = rows_at(c, c.reshape(how.as_given ? given : boxes, {0, -1, 4}), place);
  if (how.clip) box = c.activation(ActivationOp::clip, box, 0, 1);
  Value* score = how.sigmoid ? c.activation(ActivationOp::sigmoid, top[0]) : top[0];

  Detections result;
  result.found = found;
  result.anchors = c.divide(position, num_classes);
  result.count = c.cast(c.reduce(ReduceOp::sum, c.cast(found, DType::i64), {1}), DType::i32);
  result.boxes = c.cast(c.select(c.unsqueeze(found, {2}), box, c.scalar(0, DType::f32)), type);
  result.scores = c.cast(c.select(found, score, c.scalar(0, DType::f32)), type);
  result.classes = c.cast(c.binary(ElementwiseOp::mod, position, num_classes), DType::i32);
  return result;
}

}  // namespace lathe
