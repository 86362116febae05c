// SPDX-License-Identifier: Apache-2.0
#include "ops/windows.h"

namespace lathe {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 31;  // keeps products of window attributes far from overflow

Result<> complete_one(Ints& values, size_t spatial_rank, int64_t default_value, int64_t least, std::string_view name) {
  if (values.empty()) values.assign(spatial_rank, default_value);
  if (values.size() != spatial_rank)
    return fail(ErrorCode::attribute_invalid,
                "{} has {} values, but the input has {} spatial axes; give one value per axis", name, values.size(),
                spatial_rank);
  for (int64_t value : values)
    if (value < least || value > kMaxWindow)
      return fail(ErrorCode::attribute_invalid, "{} has the value {}, but it must be {} or more", name, value, least);
  return {};
}

}  // namespace

Result<> complete(WindowAttrs& attrs, size_t spatial_rank) {
  LATHE_TRY(complete_one(attrs.stride, spatial_rank, 1, 1, "stride"));
  LATHE_TRY(complete_one(attrs.dilation, spatial_rank, 1, 1, "dilation"));
  LATHE_TRY(complete_one(attrs.pads_begin, spatial_rank, 0, -kMaxWindow, "pads_begin"));
  return complete_one(attrs.pads_end, spatial_rank, 0, -kMaxWindow, "pads_end");
}

Shape window_positions(std::span<const Expr> input, std::span<const Expr> kernel, const WindowAttrs& attrs) {
  Shape positions;
  for (size_t i = 0; i < input.size(); ++i) {
    Expr dim = window_rule(input[i], kernel[i], attrs.stride[i], attrs.dilation[i], attrs.pads_begin[i],
                           attrs.pads_end[i], attrs.mode)
                   .output;
    if (input[i] == Expr(0) && dim.is_constant()) dim = max(dim, 0);
    positions.push_back(std::move(dim));
  }
  return positions;
}

Result<Shape> window_outputs(InferContext& context, std::span<const Expr> input, std::span<const Expr> kernel,
                             const WindowAttrs& attrs) {
  Shape positions = window_positions(input, kernel, attrs);
  for (size_t i = 0; i < input.size(); ++i) {
    if (!context.assume(Relation::at_most, 1, kernel[i]) || !context.assume(Relation::at_most, kernel[i], kMaxWindow))
      return fail(ErrorCode::shape_mismatch,
                  "the window has the extent {} on spatial axis {}, but it must be 1 or more", kernel[i].to_string(),
                  i);
    // An empty image gives an empty result; any other must have a place for the window.
    const Expr least = context.range(input[i]).min > 0 ? Expr(1) : min(input[i], 1);
    if (!context.assume(Relation::at_most, least, positions[i]))
      return fail(
          ErrorCode::shape_mismatch,
          "a window of extent {} and dilation {} does not fit into spatial axis {} of extent {} with padding {} and "
          "{}; enlarge the input or the padding",
          kernel[i].to_string(), attrs.dilation[i], i, input[i].to_string(), attrs.pads_begin[i], attrs.pads_end[i]);
  }
  return positions;
}

std::vector<WindowAxis> window_axes(std::span<const int64_t> input, std::span<const int64_t> output,
                                    std::span<const int64_t> kernel, const WindowAttrs& attrs) {
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < input.size(); ++i) {
    const Window window = window_rule(input[i], kernel[i], attrs.stride[i], attrs.dilation[i], attrs.pads_begin[i],
                                      attrs.pads_end[i], attrs.mode);
    axes.push_back({input[i], output[i], kernel[i], attrs.stride[i], attrs.dilation[i],
                    window.pad_begin.as_constant().value_or(0)});
  }
  return axes;
}

}  // namespace lathe
