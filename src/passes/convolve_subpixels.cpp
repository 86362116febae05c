// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions of levels become convolutions, which kernels of integers take: each pixel of x makes a block
// of as many pixels as the strides say, and these are channels until they are moved to their places.
//
//   y[s * i + r] = sum over j of x[i - j] * w[s * j + r]
#include <algorithm>
#include <numeric>

#include "base/divide.h"
#include "ops/windows.h"
#include "passes/linear.h"
#include "passes/match.h"
#include "passes/pins.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

// One spatial dimension: how the convolution is padded, and how many pixels are cut off its result.
struct SubpixelAxis {
  int64_t stride = 1, dilation = 1, taps = 1;  // of the transposed one
  int64_t kernel = 1;                          // of the convolution
  int64_t pad_begin = 0, pad_end = 0, cut_begin = 0, cut_end = 0;
};

SubpixelAxis subpixel_axis(int64_t taps, int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end) {
  SubpixelAxis axis{stride, dilation, taps};
  const int64_t reach = (taps - 1) * dilation + 1;
  axis.kernel = ceil_div(reach, stride);
  // Of x with kernel - 1 zeros before it, as many as make pixels that stay, at least in part.
  axis.pad_begin = std::max<int64_t>(axis.kernel - 1 - pad_begin / stride, 0);
  axis.cut_begin = pad_begin - (axis.kernel - 1 - axis.pad_begin) * stride;
  axis.pad_end = std::max<int64_t>(ceil_div(reach - pad_end, stride) - 1, 0);
  axis.cut_end = (axis.pad_end + 1) * stride - (reach - pad_end);
  return axis;
}

// Of weights [C, O / groups, kernel...].
struct Subpixels {
  std::vector<SubpixelAxis> axes;
  int64_t groups = 1;
  int64_t channels = 1, outputs = 1;  // of a group

  int64_t product(int64_t SubpixelAxis::*member) const {
    return std::accumulate(axes.begin(), axes.end(), int64_t{1},
                           [&](int64_t so_far, const SubpixelAxis& axis) { return so_far * axis.*member; });
  }
  int64_t block() const { return product(&SubpixelAxis::stride); }
  int64_t count() const { return groups * outputs * block(); }  // of the convolution's output channels
  // Channels are blocks of outputs, so that runs of them are moved; those of groups outputs of blocks.
  bool has_runs() const { return groups == 1; }
  int64_t channel(int64_t output, int64_t pixel) const {
    return has_runs() ? pixel * outputs + output : output * block() + pixel;
  }
  int64_t output_of(int64_t channel) const { return (has_runs() ? channel : channel / block()) % outputs; }
};

std::optional<Subpixels> subpixels_of(const ir::Node& node, const Dims& w) {
  const auto& attrs = node.attrs<DeconvolutionAttrs>();
  const size_t rank = w.size() - 2;
  const Result<WindowAttrs> window = window_attrs(attrs, rank);
  if (!window || window->mode != PaddingMode::explicit_round_down || !attrs.output_shape.empty()) return std::nullopt;
  Subpixels result;
  result.groups = attrs.groups;
  result.channels = w[0] / attrs.groups;
  result.outputs = w[1];
  for (size_t i = 0; i < rank; ++i) {
    const int64_t added = attrs.output_padding.empty() ? 0 : attrs.output_padding[i];
    result.axes.push_back(subpixel_axis(w[i + 2], window->stride[i], window->dilation[i], window->pads_begin[i],
                                        window->pads_end[i] - added));
  }
  return result;
}

// What each output channel has, for all pixels of its block.
Result<Tensor> repeated(const std::vector<double>& values, DType dtype, const Subpixels& to, int rank) {
  Dims dims(static_cast<size_t>(rank), 1);
  dims[0] = to.count();
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(dtype, dims));
  std::vector<double> all;
  for (int64_t c = 0; c < to.count(); ++c) all.push_back(values[static_cast<size_t>(to.output_of(c))]);
  from_doubles(all, tensor);
  return tensor;
}

// Weights [count, C / groups, kernel...] of the convolution. Where a block's pixel meets no weight, there is the
// level that stands for 0.
Result<Tensor> convolved_weights(const Tensor& w, const std::vector<double>& zeros, const Subpixels& to) {
  const int64_t taps = to.product(&SubpixelAxis::taps), kernel = to.product(&SubpixelAxis::kernel);
  Dims dims{to.count(), to.channels};
  for (const SubpixelAxis& axis : to.axes) dims.push_back(axis.kernel);
  std::vector<double> levels(static_cast<size_t>(dims[0] * to.channels * kernel));
  for (size_t i = 0; i < levels.size(); ++i)
    levels[i] = zeros[static_cast<size_t>(to.output_of(static_cast<int64_t>(i) / (to.channels * kernel)))];
  const std::vector<double> from = to_doubles(w);
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t pixel = 0, place = 0, rest = tap, inner = taps;
    for (const SubpixelAxis& axis : to.axes) {
      inner /= axis.taps;
      const int64_t at = rest / inner * axis.dilation;
      rest %= inner;
      pixel = pixel * axis.stride + at % axis.stride;
      place = place * axis.kernel + axis.kernel - 1 - at / axis.stride;
    }
    for (int64_t g = 0; g < to.groups; ++g)
      for (int64_t c = 0; c < to.channels; ++c)
        for (int64_t o = 0; o < to.outputs; ++o)
          levels[static_cast<size_t>((to.channel(g * to.outputs + o, pixel) * to.channels + c) * kernel + place)] =
              from[static_cast<size_t>(((g * to.channels + c) * to.outputs + o) * taps + tap)];
  }
  LATHE_ASSIGN(Tensor result, Tensor::allocate(w.dtype(), std::move(dims)));
  from_doubles(levels, result);
  return result;
}

// A number for each output channel of a group; nullopt where there are others.
std::optional<std::vector<double>> channel_numbers(const ir::Value* value, const ir::Value* w, int64_t outputs) {
  if (!value) return std::vector<double>(static_cast<size_t>(outputs), 0);
  if (const std::optional<double> one = scalar_of(value))
    return std::vector<double>(static_cast<size_t>(outputs), *one);
  return along_axis(value, w, 1);
}

// [N, count, P...] to [N, O, P * strides...].
ir::Value* moved(Rewrite& r, ir::Value* y, const Subpixels& by) {
  const size_t rank = by.axes.size();
  if (by.block() == 1) return y;
  if (rank == 2 && by.axes[0].stride == by.axes[1].stride) {
    DepthToSpaceAttrs attrs;
    attrs.block = by.axes[0].stride;
    attrs.mode = by.has_runs() ? DepthToSpaceMode::dcr : DepthToSpaceMode::crd;
    return r.add(attrs, {y});
  }
  const int64_t outputs = by.groups * by.outputs;
  const size_t first = by.has_runs() ? 1 : 2;  // of the block's dimensions
  Ints cut{0}, order{0, by.has_runs() ? static_cast<int64_t>(rank) + 1 : 1}, joined{0, outputs};
  for (const SubpixelAxis& axis : by.axes) cut.push_back(axis.stride);
  cut.insert(by.has_runs() ? cut.end() : cut.begin() + 1, outputs);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t places = y->shape()[i + 2].as_constant().value_or(-1);
    cut.push_back(places);
    joined.push_back(places < 0 ? -1 : places * by.axes[i].stride);
    order.insert(order.end(), {static_cast<int64_t>(2 + rank + i), static_cast<int64_t>(first + i)});
  }
  return r.reshape(r.transpose(r.reshape(y, cut), order), joined);
}

ir::Value* convolution_of(Rewrite& r, const Dequantized& w, const std::vector<double>& scales,
                          const std::vector<double>& zeros, const Subpixels& to) {
  const auto operand = [&](ir::Value* value, const std::vector<double>& numbers) {
    return scalar_of(value) ? value : r.constant(repeated(numbers, value->dtype(), to, w.integers->rank()));
  };
  std::vector<ir::Value*> levels{r.constant(convolved_weights(*w.integers->constant(), zeros, to)),
                                 operand(w.node->input(1), scales)};
  if (w.zero_point) levels.push_back(operand(w.zero_point, zeros));
  std::vector<ir::Value*> operands{r.input(0), r.add(w.node->attributes(), std::move(levels))};
  if (ir::Value* bias = r.input(2)) {
    const int64_t outputs = to.groups * to.outputs;
    ir::Value* repeated = to.has_runs() ? r.expand(r.unsqueeze(bias, {0}), r.ints({to.block(), outputs}))
                                        : r.expand(r.unsqueeze(bias, {1}), r.ints({outputs, to.block()}));
    operands.push_back(r.reshape(repeated, Ints{-1}));
  }
  ConvolutionAttrs attrs;
  attrs.groups = to.groups;
  for (const SubpixelAxis& axis : to.axes) {
    attrs.pads_begin.push_back(axis.pad_begin);
    attrs.pads_end.push_back(axis.pad_end);
  }
  return r.add(attrs, std::move(operands));
}

// Whether reshapes can say where pixels go: one dimension may be open, or two that a depth-to-space takes.
bool can_move(const ir::Node& node, const Subpixels& by) {
  const Shape& x = node.input(0)->shape();
  const auto open = std::count_if(x.begin() + 2, x.end(), [](const Expr& size) { return !size.is_constant(); });
  return open <= 1 || by.block() == 1 || (by.axes.size() == 2 && by.axes[0].stride == by.axes[1].stride);
}

Result<bool> convolve(Rewrite& r) {
  if (keeps_floats(*r.node, r.context) || !r.context.arithmetic.integer_products) return false;
  const std::optional<Dequantized> x = dequantized(r.input(0)), w = dequantized(r.input(1));
  if (!x || !w || !is_byte_integer(w->integers->dtype()) || !w->integers->constant()) return false;
  const std::optional<Subpixels> to = subpixels_of(*r.node, w->integers->constant()->dims());
  if (!to || !can_move(*r.node, *to)) return false;
  const auto scales = channel_numbers(w->node->input(1), w->integers, to->outputs),
             zeros = channel_numbers(w->zero_point, w->integers, to->outputs);
  if (!scales || !zeros) return false;
  ir::Value* y = convolution_of(r, *w, *scales, *zeros, *to);
  if (r.failed()) return false;
  std::string why;
  if (!quantized_product(*y->producer(), r.context, &why)) {
    r.context.notes[r.output()->name()] = "multiplies floats: as a convolution, " + why;
    return false;
  }
  r.context.notes.erase(r.output()->name());
  y = moved(r, y, *to);
  for (size_t i = 0; i < to->axes.size(); ++i) {
    const SubpixelAxis& axis = to->axes[i];
    if (axis.cut_begin == 0 && axis.cut_end == 0) continue;
    y = r.slice(y, static_cast<int64_t>(i) + 2, axis.cut_begin, axis.cut_end == 0 ? INT64_MAX : -axis.cut_end);
  }
  r.absorb(w->node);
  return r.finish(y);
}

}  // namespace

Result<bool> convolve_subpixels(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"deconv(dequantize(p, s), dequantize(q, t), b) = move(conv(dequantize(p, s), dequantize(q', t'), b'))",
       OpKind::deconvolution, convolve},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
