// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT. Names and defaults of fields are theirs.
#include <cmath>

#include "compose/deformable_convolution.h"
#include "compose/efficient_nms.h"
#include "compose/grid_sample.h"
#include "onnx/plugins.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

bool has_all(NodeContext& c, std::initializer_list<const char*> fields) {
  for (const char* field : fields)
    if (!c.has_attribute(field)) {
      c.invalid("the plugin needs field '{}'", field);
      return false;
    }
  return true;
}

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

}  // namespace

void import_efficient_nms_plugin(NodeContext& c) {
  if (!has_all(c, {"score_threshold", "iou_threshold", "max_output_boxes", "background_class", "score_activation",
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

void import_efficient_nms_tf_plugin(NodeContext& c) {
  EfficientNms how;
  how.score_threshold = c.real("score_threshold", 0.5);
  how.iou_threshold = c.real("iou_threshold", 0.5);
  how.max_boxes = c.require_integer("max_total_size");
  how.max_per_class = c.require_integer("max_output_size_per_class");
  how.clip = c.flag("clip_boxes", false);
  if (c.flag("pad_per_class", false)) {
    const std::optional<int64_t> classes = c.dim(c.require(1), 2).as_constant();
    if (!classes) return c.unsupported("pad_per_class needs a known number of classes");
    how.max_boxes = std::min(how.max_boxes, how.max_per_class * *classes);
  }
  set_detections(c, detect(c, how));
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
  if (!has_all(c, {"shareLocation", "backgroundLabelId", "numClasses", "topK", "keepTopK", "scoreThreshold",
                   "iouThreshold"}))
    return;
  c.ignore({"scoreBits", "numClasses", "shareLocation"});  // how scores are sorted; shapes tell the rest
  EfficientNms how;
  how.strict = true;
  how.background = c.require_integer("backgroundLabelId");
  how.candidates = how.max_per_class = c.require_integer("topK");
  how.max_boxes = c.require_integer("keepTopK");
  how.score_threshold = c.real("scoreThreshold", 0);
  how.iou_threshold = c.real("iouThreshold", 0);
  how.clip = c.flag("clipBoxes", true);
  const bool normalized = c.flag("isNormalized", true), as_caffe = c.flag("caffeSemantics", true);
  if (!normalized && as_caffe)
    return c.unsupported("boxes in whole pixels (isNormalized 0 with caffeSemantics 1) are not supported");
  if (how.max_boxes > how.candidates)
    return c.invalid("keepTopK is {}, more than topK, {}", how.max_boxes, how.candidates);
  Detections found = detect(c, how);
  if (c.failed()) return;
  ir::Value* classes = c.cast(found.classes, found.scores->dtype());
  found.classes = c.select(found.found, classes, c.scalar_like(-1, classes));
  set_detections(c, found);
}

void import_roi_align_plugin(NodeContext& c) {
  RoiAlignAttrs attributes;
  attributes.mode = c.flag("mode", true) ? PoolingOp::average : PoolingOp::max;
  attributes.half_pixel = c.flag("coordinate_transformation_mode", true);
  attributes.height = c.integer("output_height", 1);
  attributes.width = c.integer("output_width", 1);
  attributes.sampling_ratio = c.integer("sampling_ratio", 0);
  attributes.spatial_scale = c.real("spatial_scale", 1);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

void import_instance_norm_plugin(NodeContext& c) {
  if (!has_all(c, {"epsilon", "scales", "bias"})) return;
  InstanceNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 0);
  ir::Value* x = c.require(0);
  ir::Value* y = c.add(attributes, {x, field_numbers(c, "scales", x->dtype()), field_numbers(c, "bias", x->dtype())});
  const double slope = c.real("alpha", 0);
  c.set_output(0, c.flag("relu", false) ? c.activation(ActivationOp::leaky_relu, y, slope) : y);
}

void import_group_norm_plugin(NodeContext& c) {
  GroupNormalizationAttrs attributes;
  attributes.groups = c.integer("num_groups", 1);
  attributes.epsilon = c.real("eps", 1e-5f);
  if (const double other = c.real("epsilon", attributes.epsilon); other != attributes.epsilon)
    return c.invalid("the plugin's field is called eps, which is {}; epsilon {} would have no effect",
                     attributes.epsilon, other);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

void import_leaky_relu_plugin(NodeContext& c) {
  if (!has_all(c, {"negSlope"})) return;
  c.set_output(0, c.activation(ActivationOp::leaky_relu, c.require(0), c.real("negSlope", 0)));
}

void import_clip_plugin(NodeContext& c) {
  if (!has_all(c, {"clipMin", "clipMax"})) return;
  c.set_output(0, c.activation(ActivationOp::clip, c.require(0), c.real("clipMin", 0), c.real("clipMax", 0)));
}

// Two channels more: where a pixel is, from -1 to 1, along y and along x.
void import_coordinates_plugin(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.failed()) return;
  if (x->rank() != 4) return c.invalid("the input has {} dimensions, expected 4", x->rank());
  std::vector<ir::Value*> parts = {x};
  ir::Value* plane = c.concat({c.shape_of(x, 0, 1), c.ints({1}), c.shape_of(x, 2, 4)}, 0);
  for (int64_t axis = 2; axis < 4; ++axis) {
    ir::Value* extent = c.squeeze(c.shape_of(x, axis, axis + 1), {0});
    ir::Value* steps = c.add(RangeAttrs{}, {c.integer_scalar(0), extent, c.integer_scalar(1)});
    ir::Value* last = c.binary(ElementwiseOp::max, c.binary(ElementwiseOp::sub, extent, 1.0), 1.0);
    ir::Value* part = c.divide(c.cast(steps, DType::f32), c.cast(last, DType::f32));
    ir::Value* at = c.binary(ElementwiseOp::sub, c.binary(ElementwiseOp::mul, part, 2.0), 1.0);
    at = c.reshape(at, axis == 2 ? Ints{-1, 1} : Ints{-1});
    parts.push_back(c.cast(c.expand(at, plane), x->dtype()));
  }
  c.set_output(0, c.concat(parts, 1));
}

// YOLOv2's last layer. For each box of a cell: x, y, width, height, whether there is an object, its classes.
void import_region_plugin(NodeContext& c) {
  const int64_t boxes = c.require_integer("num"), classes = c.require_integer("classes");
  const int64_t coordinates = c.require_integer("coords"), numbers = coordinates + 1 + classes;
  ir::Value* x = c.require(0);
  if (c.failed()) return;
  if (coordinates != 4 || boxes < 1 || classes < 1)
    return c.invalid("{} boxes of {} coordinates and {} classes; expected some of 4 coordinates", boxes, coordinates,
                     classes);
  if (x->rank() != 4) return c.invalid("the input has {} dimensions, expected 4", x->rank());
  ir::Value* image = c.shape_of(x, 2, 4);
  ir::Value* split = c.reshape(x, c.concat({c.shape_of(x, 0, 1), c.ints({boxes, numbers}), image}, 0));
  const auto part = [&](int64_t begin, int64_t end) { return c.slice(split, 2, begin, end); };
  ir::Value* y = c.concat({c.activation(ActivationOp::sigmoid, part(0, 2)), part(2, 4),
                           c.activation(ActivationOp::sigmoid, part(4, 5)), c.softmax(part(5, numbers), 2)},
                          2);
  c.set_output(0, c.reshape(y, c.shape_of(x)));
}

void import_scatter_elements_plugin(NodeContext& c) {
  ScatterElementsAttrs attributes;
  const std::string name = c.string("reduction", "");
  if (name == "add")
    attributes.reduction = ScatterReduction::add;
  else if (name == "mul")
    attributes.reduction = ScatterReduction::mul;
  else if (name == "min")
    attributes.reduction = ScatterReduction::min;
  else if (name == "max")
    attributes.reduction = ScatterReduction::max;
  else
    return c.unsupported("reduction '{}' is not supported; add, mul, min and max are", name);
  attributes.axis = c.integer("axis", 0);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

// Classes and scores are cut off.
void import_special_slice_plugin(NodeContext& c) {
  ir::Value* x = c.require(0);
  c.set_output(0, c.slice(x, x->rank() - 1, 0, 4));
}

// As TensorFlow's CropAndResize: samples lie at and between the corners, those outside of the image are 0.
void import_crop_and_resize_plugin(NodeContext& c) {
  const int64_t extents[] = {c.require_integer("crop_height"), c.require_integer("crop_width")};
  ir::Value *x = c.require(0), *regions = c.require(1);
  if (c.failed()) return;
  if (extents[0] < 1 || extents[1] < 1) return c.invalid("crops of {} x {} have no pixels", extents[0], extents[1]);
  if (x->rank() != 4 || regions->rank() != 4)
    return c.invalid("the input and the regions have {} and {} dimensions, expected 4", x->rank(), regions->rank());
  ir::Value *grid[2], *inside = nullptr;
  for (int64_t d = 0; d < 2; ++d) {  // y, x: [N, B, height, width, 1], in extents of the image less a pixel
    std::vector<double> steps;
    const int64_t extent = extents[d];
    for (int64_t i = 0; i < extent; ++i)
      steps.push_back(extent == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(extent - 1));
    Result<Tensor> tensor = Tensor::allocate(DType::f32, d == 0 ? Dims{extent, 1, 1} : Dims{1, extent, 1});
    if (tensor) from_doubles(steps, *tensor);
    ir::Value* from = c.unsqueeze(c.slice(regions, 2, d, d + 1), {4});
    ir::Value* to = c.unsqueeze(c.slice(regions, 2, d + 2, d + 3), {4});
    ir::Value* at = c.plus(from, c.mul(c.minus(to, from), c.constant(std::move(tensor))));
    ir::Value* in = c.binary(ElementwiseOp::logical_and, c.binary(ElementwiseOp::greater_equal, at, 0.0),
                             c.binary(ElementwiseOp::less_equal, at, 1.0));
    inside = inside ? c.binary(ElementwiseOp::logical_and, inside, in) : in;
    at = c.binary(ElementwiseOp::sub, c.binary(ElementwiseOp::mul, at, 2.0), 1.0);
    grid[d] = c.expand(at, c.ints({1, 1, extents[0], extents[1], 1}));
  }
  GridSample how;
  how.aligns_corners = true;
  ir::Value* points = c.reshape(c.concat({grid[1], grid[0]}, 4), {0, -1, extents[1], 2});
  ir::Value* crops = grid_sample(c, x, points, how);  // [N, C, B * height, width]
  ir::Value* split = c.reshape(crops, {0, 0, -1, extents[0], extents[1]});
  ir::Value* y = c.transpose(split, {0, 2, 1, 3, 4});
  inside = c.unsqueeze(c.squeeze(inside, {4}), {2});
  c.set_output(0, c.select(inside, y, c.scalar_like(0, y)));
}

void import_deformable_convolution_plugin(NodeContext& c) {
  if (!has_all(c, {"stride", "padding", "dilation", "group", "deformable_group"})) return;
  const Ints stride = c.integers("stride"), padding = c.integers("padding"), dilation = c.integers("dilation");
  const int64_t groups = c.require_integer("group"), offset_groups = c.require_integer("deformable_group");
  ir::Value *x = c.require(0), *offset = c.require(1), *mask = c.require(2), *weight = c.require(3);
  if (c.failed()) return;
  const std::optional<Dims> kernel = as_constant(weight->shape());
  if (!kernel) return c.unsupported("the dimensions of its weights are not known while building");
  for (const ir::Value* value : {x, offset, mask, weight})
    if (value->rank() != 4) return c.invalid("an input has {} dimensions, expected 4", value->rank());
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 || groups < 1 || offset_groups < 1 ||
      ((*kernel)[1] * groups) % offset_groups != 0)
    return c.invalid(
        "{} strides, {} paddings and {} dilations in {} groups and {} groups of offsets; expected 2 of each, "
        "and groups that divide the channels",
        stride.size(), padding.size(), dilation.size(), groups, offset_groups);
  c.set_output(0, deformable_convolution(c, {x, weight, offset, c.input(4), mask},
                                         {stride, padding, dilation, groups, offset_groups}));
}

}  // namespace lathe::onnx
