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

}  // namespace

// SSD's boxes for each place of a feature map, as parts of the image, and behind them what their regressions are
// multiplied by.
void import_prior_box_plugin(NodeContext& c) {
  const std::vector<std::array<double, 2>> extents = prior_extents(c);
  const std::vector<double> variance = c.reals("variance");
  const bool clip = c.flag("clip", false);
  const double offset = c.real("offset", 0.5);
  const auto map = image_size(c, c.require(0)), data = image_size(c, c.require(1));
  if (c.failed()) return;
  if (variance.size() != 4) return c.invalid("variance has {} numbers, expected 4", variance.size());
  std::array<double, 2> image{static_cast<double>(c.integer("imgH", 0)), static_cast<double>(c.integer("imgW", 0))};
  if (image[0] == 0 || image[1] == 0) image = {static_cast<double>((*data)[0]), static_cast<double>((*data)[1])};
  std::array<double, 2> step{c.real("stepH", 0), c.real("stepW", 0)};
  if (step[0] == 0 || step[1] == 0)
    step = {image[0] / static_cast<double>((*map)[0]), image[1] / static_cast<double>((*map)[1])};
  std::vector<double> numbers;
  for (int64_t i = 0; i < (*map)[0] * (*map)[1]; ++i) {
    const std::array<double, 2> at{(static_cast<double>(i / (*map)[1]) + offset) * step[0],
                                   (static_cast<double>(i % (*map)[1]) + offset) * step[1]};
    for (const auto& extent : extents)
      for (const double side : {-0.5, 0.5})
        for (const size_t d : {1, 0}) {
          const double corner = (at[d] + side * extent[d]) / image[d];
          numbers.push_back(clip ? std::clamp(corner, 0.0, 1.0) : corner);
        }
  }
  const size_t half = numbers.size();
  for (size_t i = 0; i < half; ++i) numbers.push_back(variance[i % 4]);
  Result<Tensor> boxes = Tensor::allocate(DType::f32, {1, 2, static_cast<int64_t>(half), 1});
  if (boxes) from_doubles(numbers, *boxes);
  c.set_output(
      0, c.expand(c.constant(std::move(boxes)), c.concat({c.shape_of(c.require(0), 0, 1), c.ints({1, 1, 1})}, 0)));
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
