// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT whose boxes depend on sizes alone, and what lies before them. Names and defaults of
// fields are theirs.
#include <algorithm>
#include <array>
#include <cmath>

#include "onnx/plugins.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostBoxes = 1 << 20, kMostExtents = 4096;  // of a map, of a place; models have thousands, and ten

// The extents of the boxes at a place, in pixels of the image: height, width.
std::vector<std::array<double, 2>> prior_extents(NodeContext& c) {
  const std::vector<double> least = c.reals("minSize"), most = c.reals("maxSize"), given = c.reals("aspectRatios");
  const bool flip = c.flag("flip", true);
  std::vector<std::array<double, 2>> extents;
  if (!most.empty() && most.size() != least.size())
    c.invalid("field 'maxSize' has {} numbers, expected none or {}, as many as minSize", most.size(), least.size());
  if (!require_product(c, "minSize and aspectRatios",
                       {static_cast<int64_t>(least.size()), static_cast<int64_t>(given.size())}, kMostExtents))
    return extents;
  std::vector<double> ratios = {1};
  for (const double ratio : given) {
    if (std::ranges::any_of(ratios, [&](double known) { return std::fabs(ratio - known) < 1e-6; })) continue;
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1 / ratio);
  }
  for (size_t i = 0; i < least.size(); ++i)
    for (size_t r = 0; r < ratios.size(); ++r) {
      extents.push_back({least[i] / std::sqrt(ratios[r]), least[i] * std::sqrt(ratios[r])});
      if (const double both = most.empty() ? 0 : std::sqrt(least[i] * most[i]); r == 0 && both > 0)
        extents.push_back({both, both});
    }
  return extents;
}

// Height and width of the images of an input; none after an error.
std::array<int64_t, 2> image_size(NodeContext& c, size_t input) {
  const ir::Value* x = c.require(input);
  require_rank(c, input, x, "batch, channels, height, width");
  if (c.failed()) return {};
  const std::optional<int64_t> height = c.dim(x, 2).as_constant(), width = c.dim(x, 3).as_constant();
  if (height && width) return {*height, *width};
  c.unsupported("height and width of input {} are not known while building", input);
  return {};
}

// Where the boxes of a map lie: its places are `step` pixels apart.
struct Places {
  std::array<double, 2> step;
  double offset = 0;  // of the first one, in steps
  std::array<double, 2> image;
  bool clip = false;
};

// Corners in parts of the image, x and y, for each place of the map.
std::vector<double> boxes_of(NodeContext& c, const std::vector<std::array<double, 2>>& extents,
                             const std::array<int64_t, 2>& map, const Places& places) {
  std::vector<double> corners;
  if (!require_product(c, "boxes of a map", {map[0], map[1], static_cast<int64_t>(extents.size())}, kMostBoxes))
    return corners;
  for (int64_t i = 0; i < map[0] * map[1]; ++i) {
    const int64_t row = i / map[1], column = i % map[1];
    const std::array<double, 2> at{(static_cast<double>(row) + places.offset) * places.step[0],
                                   (static_cast<double>(column) + places.offset) * places.step[1]};
    for (const auto& extent : extents)
      for (const double side : {-0.5, 0.5})
        for (const size_t d : {1, 0}) {
          const double corner = (at[d] + side * extent[d]) / places.image[d];
          corners.push_back(places.clip ? std::clamp(corner, 0.0, 1.0) : corner);
        }
  }
  return corners;
}

// The boxes, and behind them what their regressions are multiplied by, for each image of input 0.
void set_boxes(NodeContext& c, size_t output, std::vector<double> numbers) {
  const std::vector<double> variance = c.reals("variance");
  const size_t half = numbers.size();
  for (size_t i = 0; i < half; ++i) numbers.push_back(variance[i % 4]);
  ir::Value* shape = c.concat({c.shape_of(c.require(0), 0, 1), c.ints({1, 1, 1})}, 0);
  c.set_output(output, c.expand(f32_constant(c, numbers, {1, 2, static_cast<int64_t>(half), 1}), shape));
}

}  // namespace

// SSD's boxes for each place of a feature map, as parts of the image, and behind them what their regressions are
// multiplied by.
void import_prior_box_plugin(NodeContext& c) {
  const std::vector<std::array<double, 2>> extents = prior_extents(c);
  const bool clip = c.flag("clip", false);
  const double offset = c.real("offset", 0.5);
  const std::array<int64_t, 2> map = image_size(c, 0), data = image_size(c, 1);
  const auto as_doubles = [](std::array<int64_t, 2> x) {
    return std::array{static_cast<double>(x[0]), static_cast<double>(x[1])};
  };
  std::array<double, 2> image = as_doubles({c.integer("imgH", 0), c.integer("imgW", 0)});
  if (image[0] == 0 || image[1] == 0) image = as_doubles(data);
  std::array<double, 2> step{c.real("stepH", 0), c.real("stepW", 0)};
  if (step[0] == 0 || step[1] == 0)
    for (const size_t d : {0, 1}) step[d] = image[d] / static_cast<double>(map[d]);
  if (!c.failed() && (image[0] == 0 || image[1] == 0)) c.invalid("input 1 is an image without pixels");
  set_boxes(c, 0, boxes_of(c, extents, map, {step, offset, image, clip}));
}

// SSD's boxes for each place of several feature maps: the same ones, larger from map to map.
void import_grid_anchor_plugin(NodeContext& c) {
  const bool has_pairs = c.op() == "GridAnchorRect_TRT";
  const auto maps = static_cast<size_t>(c.integer("numLayers", 6));
  const double least = c.real("minSize", 0.2), most = c.real("maxSize", 0.95);
  const std::vector<double> ratios = c.reals("aspectRatios");
  const Ints shapes = c.integers("featureMapShapes");
  constexpr size_t kFirstRatios = 3;  // of the first map
  if (const size_t numbers = maps * (has_pairs ? 2 : 1); shapes.size() != numbers)
    return c.invalid("field 'featureMapShapes' has {} numbers, expected {} for {} maps", shapes.size(), numbers, maps);
  if (ratios.size() < kFirstRatios)
    return c.invalid("field 'aspectRatios' has {} numbers, expected {} or more", ratios.size(), kFirstRatios);
  const auto scale = [&](size_t map) {
    return least + (most - least) * static_cast<double>(map) / static_cast<double>(maps - 1);
  };
  for (size_t map = 0; map < maps && !c.failed(); ++map) {
    std::vector<std::array<double, 2>> extents;
    const auto add = [&](double size, double ratio) {
      extents.push_back({size / std::sqrt(ratio), size * std::sqrt(ratio)});
    };
    for (size_t r = 0; r < (map == 0 ? kFirstRatios : ratios.size()); ++r)
      add(map == 0 && r == 0 ? 0.1 : scale(map), ratios[r]);
    if (map > 0) add(std::sqrt(scale(map) * (map + 1 == maps ? 1 : scale(map + 1))), 1);
    const int64_t height = shapes[has_pairs ? 2 * map : map], width = shapes[has_pairs ? 2 * map + 1 : map];
    const std::array<double, 2> step{1 / static_cast<double>(height), 1 / static_cast<double>(width)};
    if (c.wants(map)) set_boxes(c, map, boxes_of(c, extents, {height, width}, {step, 0.5, {1, 1}, false}));
  }
}

// Pixels of a block of an image become channels, which lie outside of those that there are.
void import_reorg_plugin(NodeContext& c) {
  const int64_t stride = c.require_integer("stride");
  ir::Value* x = c.require(0);
  require_rank(c, 0, x, "batch, channels, height, width");
  if (c.failed()) return;
  const auto extent = [&](int64_t axis) {
    return c.binary(ElementwiseOp::div, c.shape_of(x, axis, axis + 1), static_cast<double>(stride));
  };
  ir::Value *front = c.shape_of(x, 0, 2), *height = extent(2), *width = extent(3), *block = c.ints({stride});
  ir::Value* split = c.reshape(x, c.concat({front, height, block, width, block}, 0));
  ir::Value* y = c.transpose(split, {0, 3, 5, 1, 2, 4});
  c.set_output(0, c.reshape(y, c.concat({c.shape_of(x, 0, 1), c.ints({-1}), height, width}, 0)));
}

}  // namespace lathe::onnx
