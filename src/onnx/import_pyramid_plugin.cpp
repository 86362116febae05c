// SPDX-License-Identifier: Apache-2.0
// TensorRT's standard plugin of regions that are cut from a pyramid of images. Names and defaults of fields are theirs.
#include <array>

#include "compose/count_up.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

// How parts of the image become coordinates on a map, as the plugin numbers it. With `points`, parts are multiplied by
// the number of pixels less one: 0 and 1 are the centres of the first and the last one. The others multiply by the
// number of pixels. `centres` subtracts half a pixel, and, as `output_centres` does, takes samples in the middle of
// equal parts of a bin; with `points` and `corners` they lie where these parts begin.
enum Transform : int64_t { points = -1, corners = 0, output_centres = 1, centres = 2 };

struct Pyramid {
  int64_t size = 7, samples = 0, transform = centres;
  bool absolute = true, swapped = false, plus_one = false;
  Ints image{1024, 1024};  // height, width
  double threshold = 0;    // the largest area, in parts of the image, of regions that are cut from the finest map
};

Pyramid read_fields(NodeContext& c) {
  Pyramid p;
  p.size = c.integer("pooled_size", p.size);
  p.image = c.integers("image_size", p.image);
  const double scale = static_cast<double>(c.integer("fpn_scale", 224));
  p.samples = c.integer("sampling_ratio", p.samples);
  p.transform = c.integer("roi_coords_transform", p.transform);
  p.absolute = c.flag("roi_coords_absolute", p.absolute);
  p.swapped = c.flag("roi_coords_swap", p.swapped);
  p.plus_one = c.flag("roi_coords_plusone", p.plus_one);
  p.threshold = scale * scale / static_cast<double>(p.image[0] * p.image[1]) / 4;
  if (c.flag("legacy", false)) {  // what the plugin did before it had the other fields, but for pooled_size
    p.transform = points, p.samples = 1, p.absolute = p.plus_one = false, p.swapped = true;
    p.threshold = 224.0 * 224.0 * 2 / (1024.0 * 1024.0) / 16;
  }
  if (p.transform == points && (p.samples != 1 || p.size == 1))
    c.unsupported(
        "roi_coords_transform -1 with pooled_size {} and sampling_ratio {} is not supported; 2 or more and 1 are",
        p.size, p.samples);
  return p;
}

// Regions [N, R, 1] in parts of the image.
struct Regions {
  std::array<ir::Value*, 2> from{}, to{};  // y, x
  ir::Value* area = nullptr;
};

Regions read_regions(NodeContext& c, const Pyramid& p, ir::Value* regions) {
  Regions found;
  const auto column = [&](int64_t i) { return c.slice(regions, 2, i, i + 1); };
  for (const size_t d : {0, 1}) {
    const int64_t at = static_cast<int64_t>(p.swapped ? d : 1 - d);
    const double extent = p.absolute ? static_cast<double>(p.image[d]) : 1;
    const auto part = [&](ElementwiseOp op) {
      ir::Value* corner = c.binary(op, column(at), column(at + 2));
      corner = c.binary(ElementwiseOp::min, c.binary(ElementwiseOp::max, corner, 0.0), extent);
      return c.binary(ElementwiseOp::div, corner, extent);
    };
    found.from[d] = part(ElementwiseOp::min);
    found.to[d] = part(ElementwiseOp::max);
    ir::Value* side = c.minus(found.to[d], found.from[d]);
    if (p.plus_one) side = c.binary(ElementwiseOp::add, side, 1.0 / static_cast<double>(p.image[d]));
    found.area = found.area ? c.mul(found.area, side) : side;
  }
  return found;
}

// Where the region lies on a map along one axis, as roi_align takes it: that subtracts half a pixel, and takes samples
// in the middle of equal parts of a bin. For transforms that do neither, both are added here.
std::array<ir::Value*, 2> on_map(NodeContext& c, const Pyramid& p, const Regions& regions, ir::Value* map, size_t d) {
  using Op = ElementwiseOp;
  const auto axis = static_cast<int64_t>(2 + d);
  ir::Value* pixels = c.cast(c.squeeze(c.shape_of(map, axis, axis + 1), {0}), regions.area->dtype());
  if (p.transform == points) pixels = c.binary(Op::sub, pixels, 1.0);
  ir::Value *from = c.mul(regions.from[d], pixels), *to = c.mul(regions.to[d], pixels);
  ir::Value* extent = c.minus(to, from);
  if (p.transform == points) {
    const auto bins = static_cast<double>(p.size);
    extent = c.binary(Op::mul, c.binary(Op::div, extent, bins - 1), bins);
  }
  if (p.transform <= corners) {  // samples lie at the beginning of their parts
    ir::Value* bin = c.binary(Op::div, extent, static_cast<double>(p.size));
    ir::Value* samples = p.samples > 0 ? c.scalar_like(static_cast<double>(p.samples), bin)
                                       : c.binary(Op::max, c.unary(UnaryOp::ceil, bin), 1.0);
    from = c.minus(from, c.binary(Op::mul, c.divide(bin, samples), 0.5));
  }
  if (p.transform != centres) from = c.binary(Op::add, from, 0.5);
  // A region without an extent is sampled at its place. It gets one that rounding leaves beside 4096 pixels.
  constexpr double kLeast = 0x1p-11;
  return {from, c.plus(from, c.binary(Op::max, extent, kLeast))};
}

// The image of each region: regions of one follow each other.
ir::Value* images_of(NodeContext& c, ir::Value* regions) {
  ir::Value* images = c.unsqueeze(count_up(c, c.shape_of(regions, 0, 1)), {1});
  return c.reshape(c.expand(images, c.shape_of(regions, 0, 2)), Ints{-1});
}

}  // namespace

// A region's size says of which map it is: each is cut from all of them, and one is taken.
void import_pyramid_roi_align_plugin(NodeContext& c) {
  const Pyramid p = read_fields(c);
  PluginDims dims(c);
  ir::Value* regions = dims.require(0, "batch, regions, 4");
  if (c.failed()) return;
  // In 16 bits, places would be pixels apart.
  const DType type = regions->dtype(), inner = size_of(type) < size_of(DType::f32) ? DType::f32 : type;
  const Regions parts = read_regions(c, p, c.cast(regions, inner));
  ir::Value *images = images_of(c, regions), *area = c.reshape(parts.area, Ints{-1, 1, 1, 1});
  RoiAlignAttrs attributes;
  attributes.half_pixel = true;
  attributes.height = attributes.width = p.size;
  attributes.sampling_ratio = p.samples;
  double threshold = p.threshold;
  ir::Value* chosen = nullptr;
  for (size_t level = 0; level < 4; ++level) {
    ir::Value* map = dims.require(1 + level, fmt::format("batch, channels, height {0}, width {0}", level));
    if (c.failed()) return;
    if (map->dtype() != type)
      return c.invalid("input {} has type {}, expected {}, as input 0", 1 + level, name_of(map->dtype()),
                       name_of(type));
    map = c.cast(map, inner);
    const auto rows = on_map(c, p, parts, map, 0), columns = on_map(c, p, parts, map, 1);
    ir::Value* corners = c.concat({columns[0], rows[0], columns[1], rows[1]}, 2);
    ir::Value* cut = c.add(attributes, {map, c.reshape(corners, Ints{-1, 4}), images});
    if (c.failed()) return;
    chosen = chosen ? c.select(c.binary(ElementwiseOp::greater, area, threshold), cut, chosen) : cut;
    if (level > 0) threshold *= 4;
  }
  ir::Value* shape = c.concat({c.shape_of(regions, 0, 2), c.shape_of(chosen, 1)}, 0);
  c.set_output(0, c.cast(c.reshape(chosen, shape), type));
}

}  // namespace lathe::onnx
