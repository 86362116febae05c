// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT that suppress boxes by better ones. Names and defaults of fields are theirs.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compose/count_up.h"
#include "compose/efficient_nms.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

// What fields tell of the dimensions of boxes and scores, as words of PluginDims.
struct DetectionDims {
  std::string classes = "classes", sets;  // of the boxes of an anchor; "": 1 or classes, as they have it
};

// Of the node's boxes, scores and anchors; without values after an error.
Detections detect(NodeContext& c, const EfficientNms& how, PluginDims& dims, DetectionDims words = {}) {
  const auto rank = [&](size_t input) { return c.require(input)->rank(); };
  const std::string scores_dims = "batch, anchors, " + words.classes + (rank(1) == 4 ? ", 1" : "");
  if (words.sets.empty()) words.sets = c.dim(c.require(0), 2) == Expr(1) || rank(0) == 3 ? "1" : words.classes;
  const bool has_sets = rank(0) == 4 || words.sets[0] != '1';
  ir::Value* scores = dims.require(1, scores_dims);
  ir::Value* boxes = dims.require(0, has_sets ? "batch, anchors, " + words.sets + ", 4" : "batch, anchors, 4");
  ir::Value* anchors = nullptr;
  if (c.has(2)) anchors = dims.require(2, c.dim(c.input(2), 0) == Expr(1) ? "1, anchors, 4" : "batch, anchors, 4");
  return c.failed() ? Detections{} : efficient_nms(c, boxes, scores, anchors, how);
}

Detections detect(NodeContext& c, const EfficientNms& how) {
  PluginDims dims(c);
  return detect(c, how, dims);
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
  if (how.max_boxes > how.candidates)
    c.invalid("field 'keepTopK' is {}, expected 1 to topK, {}", how.max_boxes, how.candidates);
  return how;
}

// How offsets become boxes, as SSD's plugin numbers it.
enum Coding : int64_t { corner = 0, center_size = 1, corner_size = 2, tensorflow = 3 };

// Offsets, scores and priors, which are of as many anchors.
std::array<ir::Value*, 3> inputs_of_ssd(NodeContext& c, const Ints& order, int64_t classes, int64_t sets) {
  const auto input = [&](size_t i) { return static_cast<size_t>(order[i]); };
  PluginDims dims(c);
  const bool is_one = c.dim(c.require(input(2)), 0) == Expr(1);
  ir::Value* priors = dims.require(input(2), is_one ? "1, 2, anchors x 4, 1" : "batch, 2, anchors x 4, 1");
  if (c.failed()) return {};
  ir::Value* numbers = dims.size("anchors x 4");
  dims.set("anchors x numClasses x 4", c.mul(numbers, c.ints({sets})));
  dims.set("anchors x numClasses", c.divide(c.mul(numbers, c.ints({classes})), c.ints({4})));
  ir::Value* loc =
      dims.require(input(0), sets == 1 ? "batch, anchors x 4, 1, 1" : "batch, anchors x numClasses x 4, 1, 1");
  ir::Value* scores = dims.require(input(1), "batch, anchors x numClasses, 1, 1");
  return {loc, scores, priors};
}

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
  how.max_boxes = how.max_per_class = c.require_integer("max_output_boxes_per_class");
  how.centers = c.flag("center_point_box", false);
  const Detections found = detect(c, how);
  if (c.failed()) return;
  ir::Value* shape = c.shape_of(found.found);
  ir::Value* images = c.unsqueeze(count_up(c, c.slice(shape, 0, 0, 1)), {1});
  const auto column = [&](ir::Value* x) { return c.reshape(c.expand(c.cast(x, DType::i64), shape), {-1, 1}); };
  ir::Value* rows = c.concat({column(images), column(found.classes), column(found.anchors)}, 1);
  ir::Value* is_there = c.cast(c.reshape(found.found, {-1}), DType::i64);
  ir::Value* total = c.reduce(ReduceOp::sum, is_there, {0}, false);
  ir::Value* order = c.add_all(TopkAttrs{}, {is_there, c.shape_of(is_there)}, 2)[1];  // those that are there come first
  ir::Value* last = c.binary(ElementwiseOp::max, c.binary(ElementwiseOp::sub, total, 1.0), 0.0);
  ir::Value* place = c.binary(ElementwiseOp::min, count_up(c, c.shape_of(is_there)), last);
  rows = c.gather(rows, c.gather(order, place, 0), 0);
  rows = c.select(c.binary(ElementwiseOp::greater, total, 0.0), rows, c.integer_scalar(-1));
  c.set_output(0, c.cast(rows, DType::i32));
}

// Classes are numbers of the scores' type, -1 where there is no box.
void import_batched_nms_plugin(NodeContext& c) {
  c.ignore({"scoreBits"});  // how scores are sorted
  PluginDims dims(c);
  dims.set("numClasses", c.require_integer("numClasses"));
  const bool shared = c.flag("shareLocation", true);
  EfficientNms how = best_of_classes(c, "scoreThreshold", "iouThreshold");
  how.clip = c.flag("clipBoxes", true);
  const bool normalized = c.flag("isNormalized", true);
  how.whole_pixels = !normalized && c.flag("caffeSemantics", true);
  if (!normalized && !how.whole_pixels)
    c.warn(
        "with isNormalized 0 and caffeSemantics 0, areas of boxes are a pixel wider and higher in TensorRT, not here");
  Detections found = detect(c, how, dims, {"numClasses", shared ? "1 with shareLocation" : "numClasses"});
  if (c.failed()) return;
  ir::Value* classes = c.cast(found.classes, found.scores->dtype());
  found.classes = c.select(found.found, classes, c.scalar_like(-1, classes));
  set_detections(c, found);
}

// SSD's detections: boxes are decoded, suppressed, and listed as (image, class, score, corners). TensorRT says that
// counts are floats, and writes integers; here they are int32.
void import_detection_output_plugin(NodeContext& c) {
  c.ignore({"scoreBits"});  // how scores are sorted
  EfficientNms how = best_of_classes(c, "confidenceThreshold", "nmsThreshold");
  how.clip = true;
  how.sigmoid = c.flag("confSigmoid", false);
  how.whole_pixels = !c.flag("isNormalized", true);
  const int64_t classes = c.require_integer("numClasses"), coding = c.integer("codeType", tensorflow);
  const Ints order = c.integers("inputOrder", {0, 2, 1});
  if (c.failed()) return;
  if (Ints sorted = order; std::ranges::sort(sorted), sorted != Ints{0, 1, 2})
    return c.invalid("field 'inputOrder' has {}, expected 0, 1 and 2 in some order", fmt::join(order, ", "));
  const int64_t sets = c.flag("shareLocation", true) ? 1 : classes;
  auto [loc, scores, priors] = inputs_of_ssd(c, order, classes, sets);
  if (c.failed()) return;
  if (c.op() == "NMS_TRT" && c.flag("isBatchAgnostic", true)) priors = c.slice(priors, 0, 0, 1);
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
