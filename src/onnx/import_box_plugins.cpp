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

constexpr int64_t kMostMaps = 64, kLargestMap = 2048;  // beyond all reason

// The extents of the boxes at a place, in pixels of the image: height, width.
std::vector<std::array<double, 2>> prior_extents(NodeContext& c) {
  const std::vector<double> least = c.reals("minSize"), most = c.reals("maxSize");
  const bool flip = c.flag("flip", true);
  std::vector<double> ratios = {1};
  for (const double ratio : c.reals("aspectRatios")) {
    if (!(ratio > 0))
      return c.invalid("aspectRatios has {}, expected more than 0", ratio), std::vector<std::array<double, 2>>();
    if (std::ranges::any_of(ratios, [&](double known) { return std::fabs(ratio - known) < 1e-6; })) continue;
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1 / ratio);
  }
  std::vector<std::array<double, 2>> extents;
  const auto all_positive = [](const std::vector<double>& sizes) {
    return std::ranges::all_of(sizes, [](double size) { return size > 0; });
  };
  if (least.empty() || !all_positive(least) || !all_positive(most) || (!most.empty() && most.size() != least.size())) {
    c.invalid("{} sizes in minSize and {} in maxSize; expected one or more above 0, and none or as many", least.size(),
              most.size());
    return extents;
  }
  for (size_t i = 0; i < least.size(); ++i)
    for (size_t r = 0; r < ratios.size(); ++r) {
      extents.push_back({least[i] / std::sqrt(ratios[r]), least[i] * std::sqrt(ratios[r])});
      if (const double both = most.empty() ? 0 : std::sqrt(least[i] * most[i]); r == 0 && both > 0)
        extents.push_back({both, both});
    }
  return extents;
}

// Height and width of an image, where they are known.
std::optional<std::array<int64_t, 2>> image_size(NodeContext& c, ir::Value* x) {
  if (!c.failed() && x->rank() != 4) c.invalid("an input has {} dimensions, expected 4", x->rank());
  if (c.failed()) return std::nullopt;
  const std::optional<int64_t> height = c.dim(x, 2).as_constant(), width = c.dim(x, 3).as_constant();
  if (height && width) return std::array{*height, *width};
  c.unsupported("the height and width of its inputs are not known while building");
  return std::nullopt;
}

// Where the boxes of a map lie: its places are `step` pixels apart.
struct Places {
  std::array<double, 2> step;
  double offset = 0;  // of the first one, in steps
  std::array<double, 2> image;
  bool clip = false;
};

// Corners in parts of the image, x and y, for each place of the map.
std::vector<double> boxes_of(const std::vector<std::array<double, 2>>& extents, const std::array<int64_t, 2>& map,
                             const Places& places) {
  std::vector<double> corners;
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
  if (variance.size() != 4) return c.invalid("variance has {} numbers, expected 4", variance.size());
  const size_t half = numbers.size();
  for (size_t i = 0; i < half; ++i) numbers.push_back(variance[i % 4]);
  Result<Tensor> boxes = Tensor::allocate(DType::f32, {1, 2, static_cast<int64_t>(half), 1});
  if (boxes) from_doubles(numbers, *boxes);
  ir::Value* shape = c.concat({c.shape_of(c.require(0), 0, 1), c.ints({1, 1, 1})}, 0);
  c.set_output(output, c.expand(c.constant(std::move(boxes)), shape));
}

}  // namespace

// SSD's boxes for each place of a feature map, as parts of the image, and behind them what their regressions are
// multiplied by.
void import_prior_box_plugin(NodeContext& c) {
  const std::vector<std::array<double, 2>> extents = prior_extents(c);
  const bool clip = c.flag("clip", false);
  const double offset = c.real("offset", 0.5);
  const auto map = image_size(c, c.require(0)), data = image_size(c, c.require(1));
  if (c.failed()) return;
  std::array<double, 2> image{static_cast<double>(c.integer("imgH", 0)), static_cast<double>(c.integer("imgW", 0))};
  if (image[0] == 0 || image[1] == 0) image = {static_cast<double>((*data)[0]), static_cast<double>((*data)[1])};
  std::array<double, 2> step{c.real("stepH", 0), c.real("stepW", 0)};
  if (step[0] == 0 || step[1] == 0)
    step = {image[0] / static_cast<double>((*map)[0]), image[1] / static_cast<double>((*map)[1])};
  set_boxes(c, 0, boxes_of(extents, *map, {step, offset, image, clip}));
}

// SSD's boxes for each place of several feature maps: the same ones, larger from map to map.
void import_grid_anchor_plugin(NodeContext& c) {
  const bool has_pairs = c.op() == "GridAnchorRect_TRT";
  const auto maps = static_cast<size_t>(std::clamp<int64_t>(c.integer("numLayers", 6), 0, kMostMaps));
  const double least = c.real("minSize", 0.2), most = c.real("maxSize", 0.95);
  const std::vector<double> ratios = c.reals("aspectRatios");
  const Ints shapes = c.integers("featureMapShapes");
  constexpr size_t kFirstRatios = 3;  // of the first map
  if (maps < 2 || maps == kMostMaps || shapes.size() != maps * (has_pairs ? 2 : 1) || ratios.size() < kFirstRatios ||
      std::ranges::any_of(ratios, [](double ratio) { return !(ratio > 0); }) ||
      std::ranges::any_of(shapes, [](int64_t extent) { return extent < 1 || extent > kLargestMap; }))
    return c.invalid(
        "{} maps, {} numbers in featureMapShapes and {} aspectRatios; expected 2 or more, {} for each from 1 to "
        "{}, and {} or more above 0",
        maps, shapes.size(), ratios.size(), has_pairs ? 2 : 1, kLargestMap, kFirstRatios);
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
    if (c.wants(map)) set_boxes(c, map, boxes_of(extents, {height, width}, {step, 0.5, {1, 1}, false}));
  }
}

// Pixels of a block of an image become channels, which lie outside of those that there are.
void import_reorg_plugin(NodeContext& c) {
  const int64_t stride = c.require_integer("stride");
  ir::Value* x = c.require(0);
  if (c.failed()) return;
  if (x->rank() != 4) return c.invalid("the input has {} dimensions, expected 4", x->rank());
  if (stride < 1) return c.invalid("stride {} is not above 0", stride);
  const auto extent = [&](int64_t axis) {
    return c.binary(ElementwiseOp::div, c.shape_of(x, axis, axis + 1), static_cast<double>(stride));
  };
  ir::Value *front = c.shape_of(x, 0, 2), *height = extent(2), *width = extent(3), *block = c.ints({stride});
  ir::Value* split = c.reshape(x, c.concat({front, height, block, width, block}, 0));
  ir::Value* y = c.transpose(split, {0, 3, 5, 1, 2, 4});
  c.set_output(0, c.reshape(y, c.concat({c.shape_of(x, 0, 1), c.ints({-1}), height, width}, 0)));
}

}  // namespace lathe::onnx
