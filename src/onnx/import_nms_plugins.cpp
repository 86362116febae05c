// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT that suppress boxes by better ones. Names and defaults of fields are theirs.
#include <algorithm>

#include "compose/count_up.h"
#include "compose/efficient_nms.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

// Of the node's boxes, scores and anchors; without values after an error.
Detections detect(NodeContext& c, const EfficientNms& how) {
  ir::Value *boxes = c.require(0), *scores = c.require(1);
  const auto is_rank = [](const ir::Value* x) { return x->rank() == 3 || x->rank() == 4; };
  if (!c.failed() && (!is_rank(boxes) || !is_rank(scores)))
    c.invalid("boxes and scores have {} and {} dimensions, expected 3 or 4", boxes->rank(), scores->rank());
  if (how.max_boxes < 1 || how.max_per_class < 1 || !(how.iou_threshold > 0) || !(how.score_threshold >= 0))
    c.invalid("{} boxes, {} of a class, IoU threshold {} and score threshold {}; expected more than 0, score 0 or more",
              how.max_boxes, how.max_per_class, how.iou_threshold, how.score_threshold);
  return c.failed() ? Detections{} : efficient_nms(c, boxes, scores, c.input(2), how);
}

void set_detections(NodeContext& c, const Detections& found) {
  if (!c.failed()) c.set_outputs({found.count, found.boxes, found.scores, found.classes});
}

// Boxes and scores as TensorFlow's combined suppression has them.
Detections detect_as_tensorflow(NodeContext& c) {
  EfficientNms how;
  how.score_threshold = c.real("score_threshold", 0.5);
  how.iou_threshold = c.real("iou_threshold", 0.5);
  how.max_boxes = c.require_integer("max_total_size");
  how.max_per_class = c.require_integer("max_output_size_per_class");
  how.clip = c.flag("clip_boxes", false);
  if (c.flag("pad_per_class", false)) {
    const std::optional<int64_t> classes = c.dim(c.require(1), 2).as_constant();
    if (!classes) return c.unsupported("pad_per_class needs a known number of classes"), Detections{};
    how.max_boxes = std::min(how.max_boxes, how.max_per_class * *classes);
  }
  return detect(c, how);
}

// What suppresses in each class so many of its best candidates, and keeps the best of all classes.
EfficientNms best_of_classes(NodeContext& c, const char* score_field, const char* overlap_field) {
  EfficientNms how;
  how.strict = how.as_given = true;
  how.background = c.require_integer("backgroundLabelId");
  how.candidates = how.max_per_class = c.require_integer("topK");
  how.max_boxes = c.require_integer("keepTopK");
  how.score_threshold = c.real(score_field, 0);
  how.iou_threshold = c.real(overlap_field, 0);
  if (how.max_boxes < 1 || how.max_boxes > how.candidates)
    c.invalid("keepTopK is {}, expected 1 to topK, {}", how.max_boxes, how.candidates);
  return how;
}

// How offsets become boxes, as SSD's plugin numbers it.
enum Coding : int64_t { corner = 0, center_size = 1, corner_size = 2, tensorflow = 3 };

// Boxes [B, N, L, 4] of offsets loc[B, N, L, 4] from priors [B or 1, 2, N * 4, 1], whose second half are what offsets
// are multiplied by.
ir::Value* decoded(NodeContext& c, ir::Value* loc, ir::Value* priors, int64_t coding, bool scaled) {
  using Op = ElementwiseOp;
  const auto half = [&](int64_t i) { return c.reshape(c.slice(priors, 1, i, i + 1), {0, -1, 1, 4}); };
  const auto columns = [&](ir::Value* x, int64_t begin) { return c.slice(x, 3, begin, begin + 2); };
  ir::Value *boxes = half(0), *scales = half(1);
  ir::Value *from = columns(boxes, 0), *to = columns(boxes, 2), *size = c.minus(to, from);
  if (coding == tensorflow) {  // y before x
    const auto swapped = [&](int64_t i) {
      return c.concat({c.slice(loc, 3, i + 1, i + 2), c.slice(loc, 3, i, i + 1)}, 3);
    };
    loc = c.concat({swapped(0), swapped(2)}, 3);
  }
  if (scaled || coding == tensorflow) loc = c.mul(loc, scales);
  if (coding == corner) return c.plus(boxes, loc);
  if (coding == corner_size) return c.plus(boxes, c.mul(loc, c.concat({size, size}, 3)));
  ir::Value* center = c.plus(c.mul(columns(loc, 0), size), c.binary(Op::mul, c.plus(from, to), 0.5));
  ir::Value* extent = c.binary(Op::mul, c.mul(c.unary(UnaryOp::exp, columns(loc, 2)), size), 0.5);
  return c.concat({c.minus(center, extent), c.plus(center, extent)}, 3);
}

}  // namespace

void import_efficient_nms_plugin(NodeContext& c) {
  if (!has_fields(c, {"score_threshold", "iou_threshold", "max_output_boxes", "background_class", "score_activation",
                      "box_coding"}))
    return;
  EfficientNms how;
  how.score_threshold = c.real("score_threshold", 0);
  how.iou_threshold = c.real("iou_threshold", 0);
  how.max_boxes = how.max_per_class = c.require_integer("max_output_boxes");
  how.background = c.require_integer("background_class");
  how.sigmoid = c.flag("score_activation", false);
  how.across_classes = c.flag("class_agnostic", false);
  how.centers = c.flag("box_coding", false);
  set_detections(c, detect(c, how));
}

void import_efficient_nms_tf_plugin(NodeContext& c) { set_detections(c, detect_as_tensorflow(c)); }

// Of networks whose batch was implicit: counts have no dimension beside that.
void import_efficient_nms_implicit_plugin(NodeContext& c) {
  Detections found = detect_as_tensorflow(c);
  found.count = c.failed() ? nullptr : c.squeeze(found.count, {1});
  set_detections(c, found);
}

// Rows (image, class, anchor), those of an image together. The last one is repeated; all are -1 if there is none.
void import_efficient_nms_onnx_plugin(NodeContext& c) {
  EfficientNms how;
  how.score_threshold = c.real("score_threshold", 0.5);
  how.iou_threshold = c.real("iou_threshold", 0.5);
  how.max_boxes = how.max_per_class = c.integer("max_output_boxes_per_class", -1);
  how.centers = c.flag("center_point_box", false);
  const Detections found = detect(c, how);
  if (c.failed()) return;
  const auto numbers = [&](ir::Value* end) {
    return c.add(RangeAttrs{}, {c.integer_scalar(0), end, c.integer_scalar(1)});
  };
  ir::Value* shape = c.shape_of(found.found);
  ir::Value* images = c.unsqueeze(numbers(c.squeeze(c.slice(shape, 0, 0, 1), {0})), {1});
  const auto column = [&](ir::Value* x) { return c.reshape(c.expand(c.cast(x, DType::i64), shape), {-1, 1}); };
  ir::Value* rows = c.concat({column(images), column(found.classes), column(found.anchors)}, 1);
  ir::Value* is_there = c.cast(c.reshape(found.found, {-1}), DType::i64);
  ir::Value* total = c.reduce(ReduceOp::sum, is_there, {0}, false);
  ir::Value* order = c.add_all(TopkAttrs{}, {is_there, c.shape_of(is_there)}, 2)[1];  // those that are there come first
  ir::Value* last = c.binary(ElementwiseOp::max, c.binary(ElementwiseOp::sub, total, 1.0), 0.0);
  ir::Value* place = c.binary(ElementwiseOp::min, numbers(c.squeeze(c.shape_of(is_there), {0})), last);
  rows = c.gather(rows, c.gather(order, place, 0), 0);
  rows = c.select(c.binary(ElementwiseOp::greater, total, 0.0), rows, c.integer_scalar(-1));
  c.set_output(0, c.cast(rows, DType::i32));
}

// Classes are numbers of the scores' type, -1 where there is no box.
void import_batched_nms_plugin(NodeContext& c) {
  if (!has_fields(c, {"shareLocation", "backgroundLabelId", "numClasses", "topK", "keepTopK", "scoreThreshold",
                      "iouThreshold"}))
    return;
  c.ignore({"scoreBits", "numClasses", "shareLocation"});  // how scores are sorted; shapes tell the rest
  EfficientNms how = best_of_classes(c, "scoreThreshold", "iouThreshold");
  how.clip = c.flag("clipBoxes", true);
  const bool normalized = c.flag("isNormalized", true);
  how.whole_pixels = !normalized && c.flag("caffeSemantics", true);
  if (!normalized && !how.whole_pixels)
    c.warn(
        "with isNormalized 0 and caffeSemantics 0, areas of boxes are a pixel wider and higher in TensorRT, not here");
  Detections found = detect(c, how);
  if (c.failed()) return;
  ir::Value* classes = c.cast(found.classes, found.scores->dtype());
  found.classes = c.select(found.found, classes, c.scalar_like(-1, classes));
  set_detections(c, found);
}

// SSD's detections: boxes are decoded, suppressed, and listed as (image, class, score, corners). TensorRT says that
// counts are floats, and writes integers; here they are int32.
void import_detection_output_plugin(NodeContext& c) {
  if (!has_fields(c, {"shareLocation", "varianceEncodedInTarget", "backgroundLabelId", "numClasses", "topK", "keepTopK",
                      "confidenceThreshold", "nmsThreshold"}))
    return;
  c.ignore({"scoreBits"});  // how scores are sorted
  EfficientNms how = best_of_classes(c, "confidenceThreshold", "nmsThreshold");
  how.clip = true;
  how.sigmoid = c.flag("confSigmoid", false);
  how.whole_pixels = !c.flag("isNormalized", true);
  const int64_t classes = c.require_integer("numClasses"), coding = c.integer("codeType", tensorflow);
  const Ints order = c.integers("inputOrder", {0, 2, 1});
  if (c.failed()) return;
  if (classes < 1 || coding < corner || coding > tensorflow)
    return c.invalid("numClasses is {} and codeType {}; expected 1 or more, and 0 to 3", classes, coding);
  if (Ints sorted = order; std::ranges::sort(sorted), sorted != Ints{0, 1, 2})
    return c.invalid("inputOrder has {} numbers, expected 0, 1 and 2 in some order", order.size());
  ir::Value *loc = c.require(static_cast<size_t>(order[0])), *scores = c.require(static_cast<size_t>(order[1]));
  ir::Value* priors = c.require(static_cast<size_t>(order[2]));
  for (const ir::Value* x : {loc, scores, priors})
    if (!c.failed() && x->rank() != 4) return c.invalid("an input has {} dimensions, expected 4", x->rank());
  if (c.op() == "NMS_TRT" && c.flag("isBatchAgnostic", true)) priors = c.slice(priors, 0, 0, 1);
  const int64_t sets = c.flag("shareLocation", true) ? 1 : classes;
  scores = c.reshape(scores, {0, -1, classes});
  ir::Value* boxes =
      decoded(c, c.reshape(loc, {0, -1, sets, 4}), priors, coding, !c.flag("varianceEncodedInTarget", false));
  if (c.failed()) return;
  const Detections found = efficient_nms(c, boxes, scores, nullptr, how);
  const DType type = found.scores->dtype();
  ir::Value* label = c.select(found.found, found.classes, c.scalar(-1, DType::i32));
  ir::Value* images = c.unsqueeze(count_up(c, c.shape_of(label, 0, 1)), {1});
  const auto column = [&](ir::Value* x) { return c.unsqueeze(c.cast(x, type), {2}); };
  images = c.expand(images, c.shape_of(label));
  ir::Value* rows = c.concat({column(images), column(label), column(found.scores), found.boxes}, 2);
  c.set_outputs({c.unsqueeze(rows, {1}), c.unsqueeze(found.count, {2, 3})});
}

}  // namespace lathe::onnx
