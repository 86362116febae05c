// SPDX-License-Identifier: Apache-2.0
// Operators of object detectors.
#include "onnx/importer.h"

namespace lathe::onnx {

void import_non_max_suppression(NodeContext& c) {
  NonMaxSuppressionAttrs attributes;
  attributes.center_point_box = c.flag("center_point_box", false);
  std::vector<ir::Value*> inputs = {c.require(0), c.require(1)};
  for (size_t i = 2; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  c.set_output(0, c.add(attributes, std::move(inputs)));
}

// Before version 16 there were no half pixels.
void import_roi_align(NodeContext& c) {
  RoiAlignAttrs attributes;
  const std::string mode = c.string("mode", "avg");
  if (mode != "avg" && mode != "max") return c.invalid("mode '{}' is unknown, expected avg or max", mode);
  attributes.mode = mode == "max" ? PoolingOp::max : PoolingOp::average;
  const std::string fallback = c.version() < 16 ? "output_half_pixel" : "half_pixel";
  const std::string coordinates = c.version() < 16 ? fallback : c.string("coordinate_transformation_mode", fallback);
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return c.invalid("coordinate_transformation_mode '{}' is unknown, expected half_pixel or output_half_pixel",
                     coordinates);
  attributes.half_pixel = coordinates == "half_pixel";
  attributes.height = c.integer("output_height", 1);
  attributes.width = c.integer("output_width", 1);
  attributes.sampling_ratio = c.integer("sampling_ratio", 0);
  attributes.spatial_scale = c.real("spatial_scale", 1);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

}  // namespace lathe::onnx
