// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// Value of an enumeration by name, or an error.
template <class E, size_t N>
E choose(NodeContext& c, const char* attribute, const char* fallback,
         const std::pair<std::string_view, E> (&table)[N]) {
  const std::string name = c.string(attribute, fallback);
  for (const auto& [text, value] : table)
    if (text == name) return value;
  c.invalid("{} '{}' is unknown", attribute, name);
  return table[0].second;
}

constexpr std::pair<std::string_view, ResizeMode> kModes[] = {{"nearest", ResizeMode::nearest},
                                                              {"linear", ResizeMode::linear},
                                                              {"bilinear", ResizeMode::linear},
                                                              {"cubic", ResizeMode::cubic}};
constexpr std::pair<std::string_view, CoordinateMode> kCoordinates[] = {
    {"half_pixel", CoordinateMode::half_pixel},
    {"half_pixel_symmetric", CoordinateMode::half_pixel_symmetric},
    {"pytorch_half_pixel", CoordinateMode::pytorch_half_pixel},
    {"align_corners", CoordinateMode::align_corners},
    {"asymmetric", CoordinateMode::asymmetric},
    {"tf_half_pixel_for_nn", CoordinateMode::tf_half_pixel_for_nn},
    {"tf_crop_and_resize", CoordinateMode::tf_crop_and_resize}};
constexpr std::pair<std::string_view, NearestMode> kNearest[] = {
    {"round_prefer_floor", NearestMode::round_prefer_floor},
    {"round_prefer_ceil", NearestMode::round_prefer_ceil},
    {"floor", NearestMode::floor},
    {"ceil", NearestMode::ceil}};
constexpr std::pair<std::string_view, AspectPolicy> kPolicies[] = {{"stretch", AspectPolicy::stretch},
                                                                   {"not_larger", AspectPolicy::not_larger},
                                                                   {"not_smaller", AspectPolicy::not_smaller}};

// Version 11 writes an absent roi, scales or sizes as an empty tensor.
ir::Value* unless_empty(ir::Value* value) {
  if (!value) return nullptr;
  return value->rank() == 1 && value->shape()[0] == Expr(0) ? nullptr : value;
}

// Up to version 10: output coordinate over scale, rounded down.
ResizeAttrs legacy_attributes(NodeContext& c) {
  ResizeAttrs attributes;
  attributes.mode = choose(c, "mode", "nearest", kModes);
  attributes.coordinates = CoordinateMode::asymmetric;
  attributes.nearest = NearestMode::floor;
  return attributes;
}

}  // namespace

void import_resize(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.version() < 11) return c.set_output(0, c.add(legacy_attributes(c), {x, nullptr, c.require(1)}));
  ResizeAttrs attributes;
  attributes.mode = choose(c, "mode", "nearest", kModes);
  attributes.coordinates = choose(c, "coordinate_transformation_mode", "half_pixel", kCoordinates);
  attributes.nearest = choose(c, "nearest_mode", "round_prefer_floor", kNearest);
  attributes.aspect = choose(c, "keep_aspect_ratio_policy", "stretch", kPolicies);
  attributes.cubic_a = c.real("cubic_coeff_a", -0.75);
  attributes.exclude_outside = c.flag("exclude_outside", false);
  attributes.extrapolation = c.real("extrapolation_value", 0);
  attributes.antialias = c.flag("antialias", false);
  attributes.axes = c.integers("axes");
  ir::Value* roi = attributes.coordinates == CoordinateMode::tf_crop_and_resize ? unless_empty(c.input(1)) : nullptr;
  ir::Value* scales = unless_empty(c.input(2));
  ir::Value* sizes = unless_empty(c.input(3));
  if (scales && sizes) scales = nullptr;  // sizes are exact
  if (!scales && !sizes) return c.invalid("it has neither scales nor sizes");
  c.set_output(0, c.add(attributes, {x, roi, scales, sizes}));
}

void import_upsample(NodeContext& c) {
  ir::Value* x = c.require(0);
  const ResizeAttrs attributes = legacy_attributes(c);
  ir::Value* scales = nullptr;
  if (c.version() >= 9) {
    scales = c.require(1);
  } else {
    std::vector<double> values = c.version() >= 7
                                     ? c.reals("scales")
                                     : std::vector<double>{1, 1, c.real("height_scale", 0), c.real("width_scale", 0)};
    const std::vector<float> floats(values.begin(), values.end());
    scales = c.constant(Tensor::from<float>({static_cast<int64_t>(floats.size())}, floats));
  }
  c.set_output(0, c.add(attributes, {x, nullptr, scales}));
}

}  // namespace lathe::onnx
