// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, its phases as a batch of matrix products.
#include <array>
#include <cstring>
#include <numeric>

#include "base/divide.h"
#include "kernels/conv_shape_tactic.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"

namespace lathe::cuda {
namespace {

using gemm::TileShape;

constexpr int64_t kMaxPhases = 64;

struct PhaseGemms {
  ConvShape whole;                // of the op
  ConvShape phase;                // the convolution of each phase
  std::array<int64_t, 3> step{};  // between the taps of a phase
  int64_t phases = 1, taps = 1;
  int64_t channels = 0, padded = 0, outputs = 0;  // of a group
  int width = 1;                                  // channels copied at once; 0 = element by element
  std::array<Expr, 3> extent;                     // outputs of a phase
  Expr rows;
  int64_t k() const { return taps * padded; }
};

std::optional<std::string> resolve(const Problem& problem, PhaseGemms& form) {
  ConvShape &whole = form.whole, &phase = form.phase;
  if (auto reason = resolve_deconv_shape(problem, whole)) return reason;
  phase.spatial = whole.spatial;
  const Shape& y = problem.outputs[0].dims;
  form.rows = y[0];
  for (size_t d = 0; d < 3; ++d) {
    const int64_t common = std::gcd(whole.stride[d], whole.dilation[d]);
    form.step[d] = whole.stride[d] / common;
    form.extent[d] = 1;
    if (static_cast<int>(d) < 3 - whole.spatial) continue;
    phase.kernel[d] = ceil_div(whole.kernel[d], form.step[d]);
    phase.dilation[d] = whole.dilation[d] / common;
    phase.pad[d] = 1;  // so that all pixels are looked at: where a phase begins is known on the device only
    form.taps *= phase.kernel[d];
    form.phases *= whole.stride[d];
    form.extent[d] = ceildiv(y[y.size() - 3 + d], whole.stride[d]);
    form.rows *= form.extent[d];
  }
  if (form.phases > kMaxPhases) return fmt::format("a stride of more than {} phases", kMaxPhases);
  return std::nullopt;
}

std::optional<std::string> describe(const Problem& problem, PhaseGemms& form) {
  if (!problem.is(OpKind::deconvolution)) return "not a transposed convolution";
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  if (!w.constant) return "the weights are not constant";
  if (auto reason = resolve(problem, form)) return reason;
  form.channels = w.constant->dims()[0] / form.whole.groups;
  form.outputs = w.constant->dims()[1];
  if (form.channels == 0 || form.outputs == 0 || form.taps == 0) return "an empty dimension";
  if (form.taps * form.channels > (1 << 24)) return "more than 16 million weights for an output channel";
  const int width = conv::copy_width(x, form.whole.groups, form.channels);
  const bool vectors = static_cast<size_t>(width) * size_of(x.dtype) >= 4;
  int64_t pixels = 1;  // of an image, in a phase
  for (size_t d = 2; d < problem.outputs[0].opt_dims.size(); ++d) pixels *= problem.outputs[0].opt_dims[d];
  pixels /= form.phases;
  form.width = x.strides[1] == Expr(1) && vectors && conv::fits_window_loader(x, pixels) ? width : 0;
  const int64_t unit = std::max(form.width, 1);
  form.padded = round_up(form.channels, unit);
  return std::nullopt;
}

// The op's tap along an axis that is tap `tap` of a phase; -1 = none.
int64_t source_tap(const PhaseGemms& form, size_t axis, int64_t phase, int64_t tap) {
  const ConvShape& a = form.whole;
  for (int64_t first = 0; first < form.step[axis]; ++first) {
    if ((phase + a.pad[axis] - first * a.dilation[axis]) % a.stride[axis] != 0) continue;
    const int64_t at = first + form.step[axis] * (form.phase.kernel[axis] - 1 - tap);
    return at < a.kernel[axis] ? at : -1;
  }
  return -1;
}

// [phase][output of all groups][tap][channel], rows padded to 16 bytes. `tensor` is [C, O / groups, taps...].
Result<Tensor> pack_weights(const PhaseGemms& form, const Tensor& tensor) {
  const ConvShape &whole = form.whole, &phase = form.phase;
  const size_t size = size_of(tensor.dtype());
  const auto vector = static_cast<int64_t>(16 / size);
  const int64_t pitch = round_up(form.k(), vector), rows = whole.groups * form.outputs;
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(tensor.dtype(), {form.phases * rows, pitch}));
  std::memset(packed.mutable_data(), 0, packed.bytes());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(packed.mutable_data());
  const auto unflatten = [](int64_t index, const std::array<int64_t, 3>& extent) {
    return std::array{index / (extent[1] * extent[2]), index / extent[2] % extent[1], index % extent[2]};
  };
  const int64_t whole_taps = whole.kernel[0] * whole.kernel[1] * whole.kernel[2];
  for (int64_t p = 0; p < form.phases; ++p)
    for (int64_t tap = 0; tap < form.taps; ++tap) {
      const auto place = unflatten(p, whole.stride), at = unflatten(tap, phase.kernel);
      int64_t source = 0;
      for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t one = source_tap(form, axis, place[axis], at[axis]);
        source = one < 0 || source < 0 ? -1 : source * whole.kernel[axis] + one;
      }
      if (source < 0) continue;
      copy_elements(
          from + static_cast<size_t>(source) * size,
          to + static_cast<size_t>(p * rows * pitch + tap * form.padded) * size, size,
          std::array{PackedAxis{whole.groups, form.channels * form.outputs * whole_taps, form.outputs * pitch},
                     PackedAxis{form.outputs, whole_taps, pitch},
                     PackedAxis{form.channels, form.outputs * whole_taps, 1}});
    }
  return packed;
}

std::string phase_text(const PhaseGemms& form) {
  return fmt::format("deconv::Phase<{}, {}>(batch / {})", conv::window_type(form.whole), conv::window_type(form.phase),
                     form.whole.groups);
}

std::string extents(Source& source, const PhaseGemms& form) {
  return fmt::format("{}, {}, {}", source.number(form.extent[0]), source.number(form.extent[1]),
                     source.number(form.extent[2]));
}

std::string input_loader(Source& source, const PhaseGemms& form) {
  const std::string window = conv::window_type(form.phase);
  std::string text =
      form.width > 0
          ? fmt::format("conv::WindowLoader<A, Tile::PanelA, Tile::kThreads, {}, {}, {}, {}> a;\n  ", form.width,
                        window, form.channels, form.padded)
          : fmt::format("conv::GatherLoader<A, Tile::PanelA, Tile::kThreads, {}, {}> a;\n  ", window, form.channels);
  return text + fmt::format("a.start(A_, {}.pixels({}), batch % {} * {}, block, m);\n  ", phase_text(form),
                            extents(source, form), form.whole.groups, form.channels);
}

std::vector<Config> configs(const Problem& problem, const PhaseGemms& form) {
  gemm::Extent e = gemm::extent_of(problem);
  e.gathered = form.width == 0;
  e.copy_width = form.width;
  e.m = (conv::opt_pixels(problem.outputs[0]) + form.phases - 1) / form.phases, e.taps = form.taps;
  e.n = form.outputs, e.k = form.k(), e.batch = form.phases * form.whole.groups;
  return gemm::configs(e);
}

Result<Emission> emit(const Problem& problem, const PhaseGemms& form, const Config& config) {
  const auto& tile = config.as<TileShape>();
  const DType dtype = problem.inputs[0].dtype;
  const int64_t groups = form.whole.groups;
  LATHE_ASSIGN(Tensor packed, pack_weights(form, *problem.inputs[1].constant));
  const Operand b = packed_operand(packed);
  Emission emission = with_weights(std::move(packed));
  add_operand_inputs(problem, emission);
  Source source("deconv/deconv.cuh");
  source.input(0, problem.inputs[0], "A");
  source.input(1, b, "B");
  std::string body = gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, gemm::Major::k, gemm::Major::k),
                                           form.rows, form.outputs, form.k());
  body += input_loader(source, form);
  body += conv::weights_loader(source, b, form.outputs, form.k(), tile);
  gemm::Ending ending{problem, dtype, 1, form.rows, form.outputs, form.phases * groups, {}};
  ending.header = "deconv/deconv.cuh";
  ending.weights_first = true;
  ending.rows = [&form](Source& to) {
    return fmt::format("deconv::rows_of({}, {})", phase_text(form), extents(to, form));
  };
  if (groups > 1) ending.column = fmt::format("batch % {} * n", groups);
  gemm::finish(source, std::move(body), tile, ending, emission);
  return emission;
}

}  // namespace

Matched match_deconv(const Problem& problem) {
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  PhaseGemms form;
  if (auto reason = describe(problem, form)) return refuse(*std::move(reason));
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
