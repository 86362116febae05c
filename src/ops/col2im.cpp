// SPDX-License-Identifier: Apache-2.0
#include "ops/symbolic.h"
#include "ops/windows.h"

namespace lathe {
namespace {

Result<WindowAttrs> windows_of(const Col2ImAttrs& attrs, size_t spatial) {
  WindowAttrs windows{attrs.stride, attrs.pads_begin, attrs.pads_end, attrs.dilation};
  LATHE_TRY(complete(windows, spatial));
  return windows;
}

// That the block fits, and has as many positions as there are columns.
Result<> check_positions(InferContext& context, const Shape& image, const Shape& block, const WindowAttrs& windows) {
  LATHE_ASSIGN(const Shape positions, window_outputs(context, image, block, windows));
  const Expr& columns = context.shape(0)[2];
  if (!context.assume_equal(columns, volume(positions)))
    return fail(ErrorCode::shape_mismatch,
                "col2im: input 0 has {} columns, but a block of shape {} has {} positions {} in an image of shape {}; "
                "check strides, pads and dilations",
                columns.to_string(), to_string(block), volume(positions).to_string(), to_string(positions),
                to_string(image));
  return {};
}

// What the block's taps add to each pixel. T holds sums of the elements.
template <class T>
std::vector<T> sum_columns(std::span<const T> columns, int64_t planes, std::span<const WindowAxis> axes) {
  int64_t pixels = 1, positions = 1;
  for (const WindowAxis& axis : axes) pixels *= axis.input, positions *= axis.output;
  std::vector<T> image(static_cast<size_t>(planes * pixels), T{0});
  const T* column = columns.data();
  for (int64_t p = 0; p < planes; ++p)
    for_each_tap(axes, [&](std::span<const int64_t> tap, int64_t) {
      T* plane = image.data() + p * pixels;
      for_each_run(axes, tap, [&](int64_t pixel, int64_t position, int64_t count, int64_t step) {
        for (int64_t i = 0; i < count; ++i) plane[pixel + i * step] += column[position + i];
      });
      column += positions;
    });
  return image;
}

}  // namespace

Result<> infer_col2im(InferContext& context) {
  LATHE_TRY(require_rank(context, 0, 3, 3));
  LATHE_ASSIGN(const int64_t spatial, list_length(context, 1, "col2im: image shape"));
  LATHE_ASSIGN(const int64_t length, list_length(context, 2, "col2im: block shape"));
  if (spatial != length || spatial < 1)
    return fail(ErrorCode::shape_mismatch,
                "col2im: the image has {} spatial axes and the block {}; they must be as many, and at least one",
                spatial, length);
  LATHE_ASSIGN(const WindowAttrs windows, windows_of(context.attrs<Col2ImAttrs>(), static_cast<size_t>(spatial)));
  const std::vector<Expr>*image = context.elements(1), *block = context.elements(2);
  const Shape& columns = context.shape(0);
  Shape output = {columns[0]};
  if (block) {
    const Expr taps = volume(*block), channels = floordiv(columns[1], taps);
    if (!context.assume_equal(channels * taps, columns[1]))
      return fail(ErrorCode::shape_mismatch,
                  "col2im: input 0 has shape {}, but its dimension 1 must be a multiple of the {} taps of a block of "
                  "shape {}",
                  to_string(columns), taps.to_string(), to_string(*block));
    output.push_back(channels);
  } else {
    output.push_back(context.new_symbol("col2im_channels"));
  }
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    output.push_back(image ? (*image)[i] : context.new_symbol("col2im_extent", i));
    if (image && !context.assume(Relation::at_most, 0, (*image)[i]))
      return fail(ErrorCode::shape_mismatch, "col2im: the image shape is {}, but no extent may be negative",
                  to_string(*image));
  }
  if (image && block) LATHE_TRY(check_positions(context, *image, *block, windows));
  context.set(0, context.dtype(0), std::move(output));
  return {};
}

Result<> eval_col2im(EvalContext& context) {
  const Tensor& columns = context.input(0);
  Tensor& output = context.output(0);
  const Ints image = to_ints(context.input(1)), block = to_ints(context.input(2));
  LATHE_ASSIGN(const WindowAttrs windows, windows_of(context.attrs<Col2ImAttrs>(), image.size()));
  const Shape positions = window_positions(to_shape(image), to_shape(block), windows);
  const std::vector<WindowAxis> axes = window_axes(image, *as_constant(positions), block, windows);
  const int64_t planes = output.dims()[0] * output.dims()[1];
  if (is_floating(columns.dtype())) {
    from_doubles(sum_columns<double>(to_doubles(columns), planes, axes), output);
    return {};
  }
  const Ints values = to_ints(columns);
  const std::vector<uint64_t> bits(values.begin(), values.end()), sums = sum_columns<uint64_t>(bits, planes, axes);
  from_ints(Ints(sums.begin(), sums.end()), output);
  return {};
}

}  // namespace lathe
