// SPDX-License-Identifier: Apache-2.0
// Pooling, convolution, deconvolution, resizing, images from columns.
#include <algorithm>
#include <limits>

#include "kernels/cuda/generic/op_source.h"
#include "ops/windows.h"

namespace lathe::cuda {
namespace {

Expr elements(const Operand& operand) { return volume(operand.dims); }

Shape last(const Shape& dims, size_t count) { return Shape(dims.end() - static_cast<ptrdiff_t>(count), dims.end()); }

std::string windows(OpSource& source, const Shape& window, const WindowAttrs& attrs, const Shape& pads) {
  const std::string window_list = source.list("Window", window), stride = source.list("Stride", to_shape(attrs.stride));
  return fmt::format("windows({}, {}, {}, {})", window_list, stride, source.list("Dilation", to_shape(attrs.dilation)),
                     source.list("Pad", pads));
}

struct Pads {
  Shape begin, end;
};
Pads pads_of(const Shape& input, const Shape& window, const WindowAttrs& attrs) {
  Pads pads;
  for (size_t i = 0; i < input.size(); ++i) {
    const Window rule = window_rule(input[i], window[i], attrs.stride[i], attrs.dilation[i], attrs.pads_begin[i],
                                    attrs.pads_end[i], attrs.mode);
    pads.begin.push_back(rule.pad_begin);
    pads.end.push_back(rule.pad_end);
  }
  return pads;
}

Result<Emission> emit_pooling(const Problem& problem) {
  const auto& attrs = problem.attrs<PoolingAttrs>();
  if (problem.outputs.size() > 1 && !problem.program.is_identity())
    return fail(ErrorCode::no_tactic, "nothing is fused to a pooling with indices");
  const size_t spatial = attrs.window.size();
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, spatial));
  const Pads pads = pads_of(last(problem.inputs[0].dims, spatial), to_shape(attrs.window), window);
  Emission emission;
  OpSource source("generic/windows.cuh", problem, emission);
  const std::string fusion = source.fusion(), in = source.input(0), out = source.output(0);
  const std::string win = windows(source, to_shape(attrs.window), window, pads.begin);
  std::string call;
  if (attrs.op == PoolingOp::max) {
    const std::string write =
        problem.outputs.size() > 1
            ? fmt::format("[&](const auto& c, long i) {{ element({}, c) = i; }}", source.output(1))
            : "[](const auto&, long) {}";
    call = fmt::format("max_pool<{}, {}>({}, {}, {}, {}, {});", spatial, attrs.column_major_indices, fusion, win, in,
                       out, write);
  } else {
    call = fmt::format("sum_pool<{}, {}, {}>({}, {}, {}, {}, {});", spatial, attrs.count_include_pad,
                       attrs.op == PoolingOp::lp ? attrs.p : 0, fusion, win, source.list("PadEnd", pads.end), in, out);
  }
  source.finish(call, elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_convolutions(const Problem& problem, const WindowAttrs& window, const Shape& pads, int64_t groups,
                                   bool back) {
  const size_t spatial = problem.inputs[0].dims.size() - 2;
  Emission emission;
  OpSource source("generic/windows.cuh", problem, emission);
  const std::string fusion = source.fusion(), in = source.input(0), w = source.input(1), out = source.output(0);
  const std::string bias = source.has(2) ? fmt::format("channel_bias({})", source.input(2)) : "NoChannelBias{}";
  const std::string win = windows(source, last(problem.inputs[1].dims, spatial), window, pads);
  const std::string_view wide = sum_type(problem.inputs[0].dtype);
  source.finish(fmt::format("convolution<{}, {}, {}>({}, {}, {}, {}, {}, {});", back, groups, wide, fusion, win, in, w,
                            bias, out),
                elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_convolution(const Problem& problem) {
  const auto& attrs = problem.attrs<ConvolutionAttrs>();
  const size_t spatial = problem.inputs[0].dims.size() - 2;
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, spatial));
  const Pads pads = pads_of(last(problem.inputs[0].dims, spatial), last(problem.inputs[1].dims, spatial), window);
  return emit_convolutions(problem, window, pads.begin, attrs.groups, false);
}

// What is cut off in front: given, or what is left over once the output's extent is (the odd one goes to the end for
// same_upper only).
Result<Emission> emit_deconvolution(const Problem& problem) {
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  const size_t spatial = problem.inputs[0].dims.size() - 2;
  LATHE_ASSIGN(const WindowAttrs window, window_attrs(attrs, spatial));
  const bool same = window.mode == PaddingMode::same_upper || window.mode == PaddingMode::same_lower;
  Shape pads;
  for (size_t i = 0; i < spatial; ++i) {
    if (!same && attrs.output_shape.empty()) {
      pads.push_back(window.pads_begin[i]);
      continue;
    }
    const Expr reach = (problem.inputs[1].dims[i + 2] - 1) * window.dilation[i] + 1;
    const Expr added = attrs.output_padding.empty() ? 0 : attrs.output_padding[i];
    const Expr full = (problem.inputs[0].dims[i + 2] - 1) * window.stride[i] + reach + added;
    const Expr total = max(full - problem.outputs[0].dims[i + 2], 0), half = floordiv(total, 2);
    pads.push_back(window.mode == PaddingMode::same_upper ? half : total - half);
  }
  return emit_convolutions(problem, window, pads, attrs.groups, true);
}

// Scales and region of each resized axis, as expressions of device code.
struct ResizeTexts {
  std::vector<std::string> scale, begin, end;  // by dimension
};

// Element i of a floating input: its value, or where it stands.
std::string floating_content(const Problem& problem, size_t input, size_t i) {
  if (const Tensor* constant = problem.inputs[input].constant)
    return double_text(constant->at_double(static_cast<int64_t>(i)));
  return fmt::format("widen(In{0}_.data[{1} * In{0}_.stride(0)])", input, i);
}

Result<double> aspect_scale(const Problem& problem, const Ints& axes) {
  const std::optional<Ints> sizes = known_contents(problem, 3);
  const bool smallest = problem.attrs<ResizeAttrs>().aspect == AspectPolicy::not_larger;
  double scale = smallest ? std::numeric_limits<double>::infinity() : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::optional<int64_t> dim = problem.inputs[0].dims[static_cast<size_t>(axes[i])].as_constant();
    if (!sizes || !dim) return fail(ErrorCode::no_tactic, "sizes that keep the aspect must be known while building");
    const double own = static_cast<double>((*sizes)[i]) / static_cast<double>(*dim);
    scale = smallest ? std::min(scale, own) : std::max(scale, own);
  }
  return scale;
}

Result<ResizeTexts> resize_texts(const Problem& problem, const OpSource& source) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  const auto rank = static_cast<size_t>(problem.inputs[0].rank());
  ResizeTexts texts{std::vector<std::string>(rank, "1.0"), std::vector<std::string>(rank, "0.0"),
                    std::vector<std::string>(rank, "1.0")};
  Ints axes = attrs.axes;
  for (size_t i = 0; attrs.axes.empty() && i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : axes) {
    LATHE_ASSIGN(axis, normalize_axis(axis, static_cast<int64_t>(rank)));
  }
  double aspect = 0;
  if (source.has(3) && attrs.aspect != AspectPolicy::stretch) {
    LATHE_ASSIGN(aspect, aspect_scale(problem, axes));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (!source.has(3))
      texts.scale[d] = floating_content(problem, 2, i);
    else if (attrs.aspect != AspectPolicy::stretch)
      texts.scale[d] = double_text(aspect);
    else
      texts.scale[d] = fmt::format("static_cast<double>(Out0_.dim({0})) / static_cast<double>(In0_.dim({0}))", d);
    if (attrs.coordinates != CoordinateMode::tf_crop_and_resize) continue;
    texts.begin[d] = floating_content(problem, 1, i);
    texts.end[d] = floating_content(problem, 1, i + axes.size());
  }
  return texts;
}

// "[&](int d) -> double { ... }": texts[d].
std::string choice(const std::vector<std::string>& texts) {
  std::string text = "[&](int d) -> double { return ";
  for (size_t d = 0; d < texts.size(); ++d) text += fmt::format("d == {} ? {} : ", d, texts[d]);
  return text + "1.0; }";
}

Result<Emission> emit_resize(const Problem& problem) {
  Emission emission;
  OpSource source("generic/resize.cuh", problem, emission);
  LATHE_ASSIGN(const ResizeTexts texts, resize_texts(problem, source));
  const std::string in = source.input(0), out = source.output(0);
  const bool reads_region = problem.attrs<ResizeAttrs>().coordinates == CoordinateMode::tf_crop_and_resize;
  if (reads_region && !problem.inputs[1].constant) source.input(1);
  if (!source.has(3) && !problem.inputs[2].constant) source.input(2);
  source.finish(fmt::format("resize<Attributes>({}, {}, {}, {}, {});", in, out, choice(texts.scale),
                            choice(texts.begin), choice(texts.end)),
                elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_col2im(const Problem& problem) {
  const auto& attrs = problem.attrs<Col2ImAttrs>();
  const size_t spatial = problem.outputs[0].dims.size() - 2;
  WindowAttrs window{attrs.stride, attrs.pads_begin, attrs.pads_end, attrs.dilation};
  LATHE_TRY(complete(window, spatial));
  Emission emission;
  OpSource source("generic/col2im.cuh", problem, emission);
  const std::string columns = source.input(0), block = source.contents(2, "Block"), out = source.output(0);
  const std::string stride = source.list("Stride", to_shape(window.stride));
  const std::string dilation = source.list("Dilation", to_shape(window.dilation));
  const std::string begin = source.list("PadBegin", to_shape(window.pads_begin));
  const std::string end = source.list("PadEnd", to_shape(window.pads_end));
  source.finish(fmt::format("col2im({}, {}, {}, {}, {}, {}, {});", block, stride, dilation, begin, end, columns, out),
                elements(problem.outputs[0]));
  return emission;
}

}  // namespace

std::span<const GenericOp> window_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::pooling, emit_pooling, true},
      {OpKind::convolution, emit_convolution, true},
      {OpKind::deconvolution, emit_deconvolution, true},
      {OpKind::resize, emit_resize},
      {OpKind::col2im, emit_col2im},
  };
  return kOps;
}

}  // namespace lathe::cuda
