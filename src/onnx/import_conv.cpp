// SPDX-License-Identifier: Apache-2.0
#include "onnx/import_window.h"
#include "onnx/importer.h"

namespace lathe::onnx {

WindowAttributes read_window(NodeContext& c, int64_t spatial) {
  WindowAttributes window;
  const auto count = static_cast<size_t>(spatial);
  window.stride = c.integers("strides", Ints(count, 1));
  window.dilation = c.integers("dilations", Ints(count, 1));
  Ints pads = c.integers("pads", Ints(2 * count, 0));
  const std::string mode = c.string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER")
    window.mode = PaddingMode::same_upper;
  else if (mode == "SAME_LOWER")
    window.mode = PaddingMode::same_lower;
  else if (c.flag("ceil_mode", false))
    window.mode = PaddingMode::explicit_round_up;
  if (mode == "VALID")
    pads.assign(2 * count, 0);
  else if (mode != "NOTSET" && !mode.starts_with("SAME_"))
    c.invalid("auto_pad '{}' is unknown", mode);
  if (window.stride.size() != count || window.dilation.size() != count || pads.size() != 2 * count) {
    c.invalid("strides, dilations and pads must have {}, {} and {} entries", count, count, 2 * count);
    pads.assign(2 * count, 0);
  }
  if (mode.starts_with("SAME_")) pads.assign(2 * count, 0);
  window.pads_begin.assign(pads.begin(), pads.begin() + spatial);
  window.pads_end.assign(pads.begin() + spatial, pads.end());
  return window;
}

namespace {

// Spatial axes of x, after checking that x and w agree with each other and with kernel_shape.
int64_t spatial_axes(NodeContext& c, const ir::Value* x, const ir::Value* w) {
  const int64_t spatial = x->rank() - 2;
  if (spatial < 1 || w->rank() != x->rank()) {
    c.invalid("input and weights must have the same rank of 3 or more");
    return 1;
  }
  const Ints kernel = c.integers("kernel_shape");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const std::optional<int64_t> dim = c.dim(w, static_cast<int64_t>(i) + 2).as_constant();
    if (static_cast<int64_t>(kernel.size()) != spatial || (dim && *dim != kernel[i])) {
      c.invalid("kernel_shape does not fit the weights");
      break;
    }
  }
  return spatial;
}

template <class A>
A window_attributes(NodeContext& c, int64_t spatial) {
  WindowAttributes window = read_window(c, spatial);
  A attributes;
  attributes.stride = std::move(window.stride);
  attributes.dilation = std::move(window.dilation);
  attributes.pads_begin = std::move(window.pads_begin);
  attributes.pads_end = std::move(window.pads_end);
  attributes.padding_mode = window.mode;
  attributes.groups = c.integer("group", 1);
  return attributes;
}

}  // namespace

void import_conv(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(1);
  const auto attributes = window_attributes<ConvolutionAttrs>(c, spatial_axes(c, x, w));
  c.set_output(0, c.add(attributes, {x, w, c.input(2)}));
}

DeconvolutionAttrs deconvolution_attributes(NodeContext& c, const ir::Value* x, const ir::Value* w) {
  const int64_t spatial = spatial_axes(c, x, w);
  auto attributes = window_attributes<DeconvolutionAttrs>(c, spatial);
  attributes.output_padding = c.integers("output_padding", Ints(static_cast<size_t>(spatial), 0));
  attributes.output_shape = c.integers("output_shape");
  // Some exporters write the whole shape, batch and channels included.
  if (static_cast<int64_t>(attributes.output_shape.size()) == spatial + 2)
    attributes.output_shape.erase(attributes.output_shape.begin(), attributes.output_shape.begin() + 2);
  return attributes;
}

void import_conv_transpose(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(1);
  c.set_output(0, c.add(deconvolution_attributes(c, x, w), {x, w, c.input(2)}));
}

void import_col2im(NodeContext& c) {
  ir::Value* image = c.require(1);
  const std::optional<int64_t> spatial = image->rank() == 1 ? c.dim(image, 0).as_constant() : std::nullopt;
  if (!spatial) return c.invalid("image_shape must be a list of as many extents as the image has spatial axes");
  WindowAttributes window = read_window(c, *spatial);
  Col2ImAttrs attributes;
  attributes.stride = std::move(window.stride);
  attributes.dilation = std::move(window.dilation);
  attributes.pads_begin = std::move(window.pads_begin);
  attributes.pads_end = std::move(window.pads_end);
  c.set_output(0, c.add(attributes, {c.require(0), image, c.require(2)}));
}

}  // namespace lathe::onnx
