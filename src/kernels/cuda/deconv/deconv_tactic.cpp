// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, its phases as a batch of matrix products.
#include <array>
#include <cstring>
#include <numeric>

#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"

namespace lathe::cuda {
namespace {

using cpu::ConvAttributes;
using gemm::Tile;

constexpr int64_t kMaxPhases = 64;

struct Plan {
  ConvAttributes whole;           // of the op
  ConvAttributes phase;           // the convolution of each phase
  std::array<int64_t, 3> step{};  // between the taps of a phase
  int64_t phases = 1, taps = 1;
  int64_t channels = 0, padded = 0, outputs = 0;  // of a group
  int width = 1;                                  // channels copied at once; 0 = element by element
  std::array<Expr, 3> extent;                     // outputs of a phase
  Expr rows;
  int64_t k() const { return taps * padded; }
};

int64_t value_at(const Ints& values, size_t i, int64_t fallback) { return i < values.size() ? values[i] : fallback; }

// The padding in front, which may follow from the output's extent.
std::optional<int64_t> pad_of(const Problem& problem, size_t axis, const ConvAttributes& a, size_t d) {
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  if (attrs.padding_mode == PaddingMode::explicit_round_down && attrs.output_shape.empty())
    return value_at(attrs.pads_begin, axis, 0);
  const auto in = problem.inputs[0].dims[2 + axis].as_constant(), out = problem.outputs[0].dims[2 + axis].as_constant();
  if (!in || !out) return std::nullopt;
  const int64_t full =
      (*in - 1) * a.stride[d] + (a.kernel[d] - 1) * a.dilation[d] + 1 + value_at(attrs.output_padding, axis, 0);
  const int64_t total = std::max<int64_t>(full - *out, 0);
  return attrs.padding_mode == PaddingMode::same_upper ? total / 2 : total - total / 2;
}

std::optional<std::string> resolve(const Problem& problem, Plan& plan) {
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  const Dims& w = problem.inputs[1].constant->dims();
  ConvAttributes &whole = plan.whole, &phase = plan.phase;
  whole.spatial = phase.spatial = static_cast<int>(w.size()) - 2;
  whole.groups = attrs.groups;
  plan.rows = problem.outputs[0].dims[0];
  for (size_t d = 0; d < 3; ++d) {
    const size_t lead = 5 - w.size();
    plan.extent[d] = 1, plan.step[d] = 1;
    if (d < lead) continue;
    const size_t axis = d - lead;
    whole.kernel[d] = w[2 + axis];
    whole.stride[d] = value_at(attrs.stride, axis, 1);
    whole.dilation[d] = value_at(attrs.dilation, axis, 1);
    const auto pad = pad_of(problem, axis, whole, d);
    if (!pad) return "the padding depends on a dynamic dimension";
    whole.pad[d] = *pad;
    const int64_t common = std::gcd(whole.stride[d], whole.dilation[d]);
    plan.step[d] = whole.stride[d] / common;
    phase.kernel[d] = (whole.kernel[d] + plan.step[d] - 1) / plan.step[d];
    phase.dilation[d] = whole.dilation[d] / common;
    phase.pad[d] = 1;  // so that all pixels are looked at: where a phase begins is known on the device only
    plan.taps *= phase.kernel[d];
    plan.phases *= whole.stride[d];
    plan.extent[d] = ceildiv(problem.outputs[0].dims[2 + axis], whole.stride[d]);
    plan.rows *= plan.extent[d];
  }
  if (plan.phases > kMaxPhases) return fmt::format("a stride of more than {} phases", kMaxPhases);
  return std::nullopt;
}

std::optional<std::string> make_plan(const Problem& problem, Plan& plan) {
  if (!problem.is(OpKind::deconvolution)) return "not a transposed convolution";
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
  if (!w.constant) return "the weights are not constant";
  if (auto reason = resolve(problem, plan)) return reason;
  plan.channels = w.constant->dims()[0] / plan.whole.groups;
  plan.outputs = w.constant->dims()[1];
  if (plan.channels == 0 || plan.outputs == 0 || plan.taps == 0) return "an empty dimension";
  if (plan.taps * plan.channels > (1 << 24)) return "more than 16 million weights for an output channel";
  Shape strides;  // of the beginnings of pixels
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (d != 1 && x.dims[d] != Expr(1)) strides.push_back(x.strides[d]);
  if (plan.whole.groups > 1) strides.push_back(plan.channels);
  strides.push_back(x.offset);
  const int width = gemm::copy_width(x.dtype, strides);
  const bool vectors = static_cast<size_t>(width) * size_of(x.dtype) >= 4;
  int64_t pixels = 1;  // of an image, in a phase
  for (size_t d = 2; d < problem.outputs[0].opt_dims.size(); ++d) pixels *= problem.outputs[0].opt_dims[d];
  pixels /= plan.phases;
  plan.width = x.strides[1] == Expr(1) && vectors && conv::fits_window_loader(x, pixels) ? width : 0;
  const int64_t unit = std::max(plan.width, 1);
  plan.padded = (plan.channels + unit - 1) / unit * unit;
  return std::nullopt;
}

// The op's tap along an axis that is tap `tap` of a phase; -1 = none.
int64_t source_tap(const Plan& plan, size_t axis, int64_t phase, int64_t tap) {
  const ConvAttributes& a = plan.whole;
  for (int64_t first = 0; first < plan.step[axis]; ++first) {
    if ((phase + a.pad[axis] - first * a.dilation[axis]) % a.stride[axis] != 0) continue;
    const int64_t at = first + plan.step[axis] * (plan.phase.kernel[axis] - 1 - tap);
    return at < a.kernel[axis] ? at : -1;
  }
  return -1;
}

// [phase][output of all groups][tap][channel], rows padded to 16 bytes. `tensor` is [C, O / groups, taps...].
Result<Tensor> pack_weights(const Plan& plan, const Tensor& tensor) {
  const ConvAttributes &whole = plan.whole, &phase = plan.phase;
  const size_t size = size_of(tensor.dtype());
  const auto vector = static_cast<int64_t>(16 / size);
  const int64_t pitch = (plan.k() + vector - 1) / vector * vector, rows = whole.groups * plan.outputs;
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(tensor.dtype(), {plan.phases * rows, pitch}));
  std::memset(packed.mutable_data(), 0, packed.bytes());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(packed.mutable_data());
  const auto unflatten = [](int64_t index, const std::array<int64_t, 3>& extent) {
    return std::array{index / (extent[1] * extent[2]), index / extent[2] % extent[1], index % extent[2]};
  };
  const int64_t whole_taps = whole.kernel[0] * whole.kernel[1] * whole.kernel[2];
  for (int64_t p = 0; p < plan.phases; ++p)
    for (int64_t tap = 0; tap < plan.taps; ++tap) {
      const auto place = unflatten(p, whole.stride), at = unflatten(tap, phase.kernel);
      int64_t source = 0;
      for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t one = source_tap(plan, axis, place[axis], at[axis]);
        source = one < 0 || source < 0 ? -1 : source * whole.kernel[axis] + one;
      }
      if (source < 0) continue;
      for (int64_t o = 0; o < rows; ++o)
        for (int64_t c = 0; c < plan.channels; ++c) {
          const int64_t channel = o / plan.outputs * plan.channels + c;
          std::memcpy(
              to + static_cast<size_t>((p * rows + o) * pitch + tap * plan.padded + c) * size,
              from + static_cast<size_t>((channel * plan.outputs + o % plan.outputs) * whole_taps + source) * size,
              size);
        }
    }
  return packed;
}

class DeconvTactic final : public Tactic {
 public:
  std::string_view name() const override { return "deconv"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    Plan plan;
    return make_plan(problem, plan);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    Plan plan;
    make_plan(problem, plan);  // refuse() has seen to it that this works
    gemm::Extent e = gemm::extent_of(problem, false);
    e.gathered = plan.width == 0;
    e.copy_width = plan.width;
    e.m = (conv::opt_pixels(problem.outputs[0]) + plan.phases - 1) / plan.phases, e.taps = plan.taps;
    e.n = plan.outputs, e.k = plan.k(), e.batch = plan.phases * plan.whole.groups;
    return gemm::configs(e);
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    Plan plan;
    if (const auto refusal = make_plan(problem, plan)) return fail(ErrorCode::internal, "deconv: {}", *refusal);
    const Tile tile = gemm::decode(config);
    const DType dtype = problem.inputs[0].dtype;
    Emission emission;
    emission.with_program = false;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    LATHE_ASSIGN(Tensor packed, pack_weights(plan, *problem.inputs[1].constant));
    const int64_t pitch = packed.dims()[1];
    Source source("deconv/deconv.cuh");
    source.input(0, problem.inputs[0], "A");
    source.input(1, gemm::packed_operand(packed), "B");
    emission.packed.push_back(std::move(packed));
    std::string body =
        fmt::format("using Tile = {};\n  const long m = {}, n = {}L, k = {}L;\n  ",
                    gemm::tile_type(tile, dtype, false, false), source.number(plan.rows), plan.outputs, plan.k());
    body += gemm::declare_block(tile);
    body += input_loader(source, plan);
    body += gemm::dense_loader(source,
                               {"b", "B", fmt::format(" + batch * n * {}", pitch), pitch,
                                static_cast<int>(16 / size_of(dtype)), false, plan.outputs, plan.k()},
                               tile);
    gemm::Ending ending{problem, dtype, 1, plan.rows, plan.outputs, plan.phases * plan.whole.groups, {}};
    ending.header = "deconv/deconv.cuh";
    ending.weights_first = true;
    ending.rows = [&plan](Source& to) {
      return fmt::format("deconv::rows_of({}, {})", phase_text(plan), extents(to, plan));
    };
    if (plan.whole.groups > 1) ending.column = fmt::format("batch % {} * n", plan.whole.groups);
    gemm::finish(source, std::move(body), tile, ending, emission);
    return emission;
  }

 private:
  static std::string phase_text(const Plan& plan) {
    return fmt::format("deconv::Phase<{}, {}>(batch / {})", conv::window_type(plan.whole),
                       conv::window_type(plan.phase), plan.whole.groups);
  }

  static std::string extents(Source& source, const Plan& plan) {
    return fmt::format("{}, {}, {}", source.number(plan.extent[0]), source.number(plan.extent[1]),
                       source.number(plan.extent[2]));
  }

  static std::string input_loader(Source& source, const Plan& plan) {
    const std::string window = conv::window_type(plan.phase);
    std::string text =
        plan.width > 0
            ? fmt::format("conv::WindowLoader<A, Tile::PanelA, Tile::kThreads, {}, {}, {}, {}> a;\n  ", plan.width,
                          window, plan.channels, plan.padded)
            : fmt::format("conv::GatherLoader<A, Tile::PanelA, Tile::kThreads, {}, {}> a;\n  ", window, plan.channels);
    return text + fmt::format("a.start(A_, {}.pixels({}), batch % {} * {}, block, m);\n  ", phase_text(plan),
                              extents(source, plan), plan.whole.groups, plan.channels);
  }
};

}  // namespace

const Tactic& deconv_tactic() {
  static const DeconvTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
