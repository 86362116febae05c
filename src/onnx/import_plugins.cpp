// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT. Names and defaults of fields are theirs.
#include <algorithm>
#include <cmath>

#include "compose/count_up.h"
#include "compose/grid_sample.h"
#include "onnx/deformable_operands.h"
#include "onnx/plugins.h"
#include "ops/rules.h"

namespace lathe::onnx {
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
  c.set_output(0, c.activation(ActivationOp::leaky_relu, c.require(0), c.real("negSlope", 0)));
}

void import_clip_plugin(NodeContext& c) {
  c.set_output(0, c.activation(ActivationOp::clip, c.require(0), c.real("clipMin", 0), c.real("clipMax", 0)));
}

// Two channels more, as TensorRT's documentation has them: where a pixel is, from -1 to 1, along y and along x. Its
// kernel does the same for squares alone. Where there is one pixel, it is at -1.
void import_coordinates_plugin(NodeContext& c) {
  ir::Value* x = c.require(0);
  require_rank(c, 0, x, "batch, channels, height, width");
  if (c.failed()) return;
  std::vector<ir::Value*> parts = {x};
  ir::Value* plane = c.concat({c.shape_of(x, 0, 1), c.ints({1}), c.shape_of(x, 2, 4)}, 0);
  for (int64_t axis = 2; axis < 4; ++axis) {
    ir::Value *extent = c.shape_of(x, axis, axis + 1), *steps = count_up(c, extent);
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
  if (coordinates != 4) return c.unsupported("coords {} is not supported; 4 is", coordinates);
  PluginDims dims(c);
  dims.set("num x (coords + 1 + classes)", boxes * numbers);
  ir::Value* x = dims.require(0, "batch, num x (coords + 1 + classes), height, width");
  if (c.failed()) return;
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
  if (!c.failed() && x->rank() < 1) return c.invalid("input 0 has no dimensions, expected 1 or more");
  c.set_output(0, c.slice(x, x->rank() - 1, 0, 4));
}

// As TensorFlow's CropAndResize: samples lie at and between the corners, those outside of the image are 0.
void import_crop_and_resize_plugin(NodeContext& c) {
  const int64_t extents[] = {c.require_integer("crop_height"), c.require_integer("crop_width")};
  PluginDims dims(c);
  ir::Value *x = dims.require(0, "batch, channels, height, width"), *regions = dims.require(1, "batch, regions, 4, 1");
  if (c.failed() || !require_product(c, "pixels of a crop", {extents[0], extents[1]}, 1 << 24)) return;
  ir::Value *grid[2], *inside = nullptr;
  for (int64_t d = 0; d < 2; ++d) {  // y, x: [N, B, height, width, 1], in extents of the image less a pixel
    std::vector<double> steps;
    const int64_t extent = extents[d];
    for (int64_t i = 0; i < extent; ++i)
      steps.push_back(extent == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(extent - 1));
    ir::Value* from = c.unsqueeze(c.slice(regions, 2, d, d + 1), {4});
    ir::Value* to = c.unsqueeze(c.slice(regions, 2, d + 2, d + 3), {4});
    ir::Value* at = c.plus(
        from, c.mul(c.minus(to, from), f32_constant(c, steps, d == 0 ? Dims{extent, 1, 1} : Dims{1, extent, 1})));
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
  const Ints stride = c.integers("stride"), padding = c.integers("padding"), dilation = c.integers("dilation");
  const DeformableConvolution how{stride, padding, dilation, c.require_integer("group"),
                                  c.require_integer("deformable_group")};
  DeformableOperands operands{c.require(0), c.require(3), c.require(1), c.input(4), c.require(2)};
  if (c.failed()) return;
  if (!as_constant(operands.weight->shape()))
    return c.unsupported("the dimensions of its weights are not known while building");
  for (const size_t i : {0, 1, 2, 3}) require_rank(c, i, c.require(i), "batch, channels, height, width");
  if (c.failed()) return;
  require_operands(c, operands, how, padding);
  if (!c.failed()) c.set_output(0, deformable_convolution(c, operands, how));
}

// Pixels are repeated along the last two dimensions, or left out.
void import_resize_nearest_plugin(NodeContext& c) {
  const double scale = c.real("scale", 1);
  ir::Value* x = c.require(0);
  if (c.failed()) return;
  if (x->rank() < 2) return c.invalid("input 0 has {} dimensions, expected 2 or more", x->rank());
  ResizeAttrs attributes;
  attributes.coordinates = CoordinateMode::asymmetric;
  attributes.nearest = NearestMode::floor;
  attributes.axes = {-2, -1};
  const auto factor = static_cast<float>(scale);
  c.set_output(0, c.add(attributes, {x, nullptr, c.constant(Tensor::of<float>({2}, {factor, factor}))}));
}

// All dimensions but the first become one, the `axis`, along which the inputs lie behind each other.
void import_flatten_concat_plugin(NodeContext& c) {
  const int64_t axis = c.require_integer("axis");
  std::vector<ir::Value*> rows;
  for (size_t i = 0; i < std::max<size_t>(c.num_inputs(), 1); ++i) {
    ir::Value* x = c.require(i);
    require_rank(c, i, x, "batch, channels, height, width");
    if (c.failed()) return;
    if (c.flag("ignoreBatch", false) && c.dim(x, 0) != Expr(1))
      return c.unsupported("ignoreBatch 1 with a first dimension of {} is not supported; 1 is",
                           c.dim(x, 0).to_string());
    for (int64_t d = 1; d < axis; ++d)
      if (c.dim(x, d) != Expr(1))
        return c.unsupported("axis {} with a dimension {} of {} before it is not supported; 1 is", axis, d,
                             c.dim(x, d).to_string());
    rows.push_back(c.reshape(x, {0, -1}));
  }
  Ints others{1, 2, 3};
  std::erase(others, axis);
  c.set_output(0, c.unsqueeze(c.concat(rows, 1), others));
}

// SSD's normalisation by the root of a sum of squares: of the channels of a pixel, or of an image.
void import_normalize_plugin(NodeContext& c) {
  const bool across = c.flag("acrossSpatial", false), shared = c.flag("channelShared", false);
  ir::Value* x = c.require(0);
  ir::Value* scales = c.reshape(field_numbers(c, "weights", x->dtype()), {-1, 1, 1});
  if (const int64_t count = c.integer("nbWeights", 1); count != 1) c.invalid("nbWeights is {}, expected 1", count);
  require_rank(c, 0, x, "batch, channels, height, width");
  if (c.failed()) return;
  if (shared && c.dim(scales, 0) != Expr(1))
    return c.invalid("weights has {} numbers, expected 1 with channelShared", c.dim(scales, 0).to_string());
  ir::Value* sum = c.reduce(ReduceOp::sum, c.mul(x, x), across ? Ints{1, 2, 3} : Ints{1});
  ir::Value* root = c.unary(UnaryOp::sqrt, c.binary(ElementwiseOp::add, sum, c.real("eps", 0)));
  ir::Value* y = c.divide(x, root);
  // TensorRT divides by scales of channels in this case.
  c.set_output(0, across && !shared ? c.divide(y, scales) : c.mul(y, scales));
}

void import_scatter_nd_plugin(NodeContext& c) {
  c.set_output(0, c.add(ScatterNdAttrs{}, {c.require(0), c.require(1), c.require(2)}));
}

// ONNX's TopK but for the type of indices.
void import_topk_plugin(NodeContext& c) {
  TopkAttrs attributes;
  attributes.axis = c.integer("axis", -1);
  attributes.largest = c.flag("is_largest", true);
  const int64_t type = c.require_integer("type_id"), count = c.require_integer("k");
  ir::Value* x = c.require(0);
  if (c.failed()) return;
  static constexpr std::pair<int64_t, DType> kTypes[] = {
      {0, DType::f32}, {1, DType::f16}, {3, DType::i32}, {7, DType::bf16}};
  if (std::ranges::find(kTypes, std::pair(type, x->dtype())) == std::end(kTypes))
    return c.invalid("type_id is {}, and the input {}; expected 0, 1, 3 or 7, for f32, f16, i32 and bf16", type,
                     name_of(x->dtype()));
  const std::vector<ir::Value*> found = c.add_all(attributes, {x, c.ints({count})}, 2);
  c.set_outputs({found[0], c.cast(found[1], DType::i32)});
}

}  // namespace lathe::onnx
