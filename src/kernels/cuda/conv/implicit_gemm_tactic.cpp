// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/implicit_gemm_tactic.h"

#include <array>

#include "base/divide.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/conv/window_copies_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"

namespace lathe::cuda::conv {

using gemm::TileShape;

namespace {

PixelLoad load_of(const Operand& x, const Operand& y, const ConvShape& a, int width, int64_t pixels) {
  const std::array<int64_t, 3> ones = {1, 1, 1}, zeros = {0, 0, 0};
  const bool channels_last = x.strides[1] == Expr(1) || x.dims[1] == Expr(1);
  if (!channels_last || static_cast<size_t>(width) * size_of(x.dtype) < 4) return PixelLoad::gather;
  if (a.kernel == ones && a.stride == ones && a.pad == zeros && keeps_pixels(x, y) && has_one_pitch(x))
    return PixelLoad::dense;
  return fits_window_loader(x, pixels) ? PixelLoad::window : PixelLoad::gather;
}

}  // namespace

int64_t ImplicitGemm::copied_channels(DType dtype) const {
  constexpr int64_t kRowBytes = 128;  // of a panel
  return load == PixelLoad::window ? round_up(channels, kRowBytes / static_cast<int64_t>(size_of(dtype))) : padded;
}

std::optional<std::string> describe(const Problem& problem, ImplicitGemm& form) {
  if (auto reason = unsupported_feature(problem, {.reassociated_result = true, .prologues = 1})) return reason;
  if (!problem.is(OpKind::convolution)) return "not a convolution";
  form.output = problem.outputs[0];
  form.output.dims = whole_dims(problem.outputs[0]), form.output.opt_dims = opt_whole_dims(problem.outputs[0]);
  const Operand &x = problem.inputs[0], &w = problem.inputs[1], &y = form.output;
  if (!w.weights) return "the weights are not constant";
  if (auto reason = resolve_conv_shape(problem, form.attributes)) return reason;
  const ConvShape& a = form.attributes;
  const Dims& dims = w.weights->dims();
  form.channels = dims[1];
  form.outputs = dims[0] / a.groups;
  form.taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  if (form.channels == 0 || form.outputs == 0 || form.taps == 0) return "an empty dimension";
  if (form.taps * form.channels > (1 << 24)) return "more than 16 million weights for an output channel";
  form.width = copy_width(x, a.groups, form.channels);
  int64_t pixels = 1;  // of an image
  for (size_t d = 2; d < y.opt_dims.size(); ++d) pixels *= y.opt_dims[d];
  form.load = load_of(x, y, a, form.width, pixels);
  if (problem.inputs[0].is_computed() && (form.load != PixelLoad::dense || a.groups > 1))
    return "a program before a window of several elements";
  if (auto reason = gemm::refuse_prologue(problem, 1)) return reason;
  const int64_t unit = form.load == PixelLoad::window ? form.width : 1;
  form.padded = round_up(form.channels, unit);
  form.pixels = y.dims[0];
  for (size_t d = 2; d < y.dims.size(); ++d) form.pixels *= y.dims[d];
  if (auto reason = describe_shuffle(problem, form.shuffle)) return reason;
  merge_pixels(form.shuffle);
  if (!w.constant && !form.shuffle.order.empty()) return "weights that can be replaced, in another order";
  return std::nullopt;
}

std::string input_loader(Source& source, const Problem& problem, const ImplicitGemm& form, const TileShape& tile,
                         Emission& emission) {
  if (form.load == PixelLoad::dense) {
    const std::string group = fmt::format(" + batch * {}L", form.channels);
    return gemm::left_loader(source, problem, 1,
                             {"a", "A", form.attributes.groups > 1 ? group : "", pixel_pitch(problem.inputs[0]),
                              form.width, gemm::Major::k, form.pixels, form.k()},
                             tile, emission);
  }
  std::string text =
      fmt::format("using Window = {};\n  ",
                  window_type(form.attributes, axes_inside(form.attributes, problem.inputs[0], form.output)));
  text += form.load == PixelLoad::window
              ? fmt::format("conv::WindowLoader<A, Tile::PanelA, Tile::kThreads, {}, Window, {}, {}> a;\n  ",
                            form.width, form.channels, form.padded)
              : fmt::format("conv::GatherLoader<A, Tile::PanelA, Tile::kThreads, Window, {}> a;\n  ", form.channels);
  return text + fmt::format("a.start(A_, {}, batch * {}, block, m);\n  ", pixels(source, form.output), form.channels);
}

gemm::Extent extent_of(const Problem& problem, const ImplicitGemm& form) {
  gemm::Extent e = gemm::extent_of(problem);
  e.gathered = form.load == PixelLoad::gather;
  e.copy_width = form.load == PixelLoad::window ? form.width : 0;
  e.m = opt_pixels(form.output), e.taps = form.taps;
  e.n = form.outputs, e.k = form.k(), e.batch = form.attributes.groups;
  return e;
}

std::optional<gemm::Product> product_of(const Problem& problem, const ImplicitGemm& form) {
  const bool has_windows = can_copy_windows(problem, form);
  if (!has_windows && (form.load != PixelLoad::dense || form.attributes.groups > 1)) return std::nullopt;
  gemm::Product p;
  p.m = form.pixels, p.n = form.outputs;
  p.k = has_windows ? form.taps * form.copied_channels(problem.inputs[0].dtype) : form.k();
  if (has_windows)
    p.declare_a = [&](Source& source, const TileShape& tile) { return declare_windows(source, problem, form, tile); };
  p.a.pitch = pixel_pitch(problem.inputs[0]), p.a.width = form.width;
  p.b.width = static_cast<int>(16 / size_of(problem.inputs[1].dtype));
  p.b.pitch = ceildiv(p.k, p.b.width) * p.b.width;  // as weights are packed
  p.weights = true;
  return p;
}

std::string declare_product(Source& source, const TileShape& tile, DType dtype, const ImplicitGemm& form) {
  return gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, gemm::Major::k, gemm::Major::k), form.pixels,
                               form.outputs, form.k());
}

gemm::Ending ending_of(const ImplicitGemm& form, DType dtype) {
  const Shuffle& shuffle = form.shuffle;
  const int64_t groups = form.attributes.groups;
  gemm::Ending ending{shuffle.problem, dtype, shuffle.dimension, form.pixels, form.outputs, groups, {}};
  ending.column_dims = shuffle.channel_dims;
  ending.rows = [&shuffle](Source&) {
    return fmt::format("gemm::AllRows<{}, {}>{{0L}}", shuffle.dimension, shuffle.channel_dims);
  };
  if (groups > 1) ending.column = "batch * n";
  ending.weights_first = true;
  ending.next_begins = "kAtTheEnd";
  return ending;
}

}  // namespace lathe::cuda::conv
