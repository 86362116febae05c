// SPDX-License-Identifier: Apache-2.0
// Convolution as an implicit matrix product: output pixels by output channels.
#include "kernels/cuda/conv/shuffle_tactic.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"

namespace lathe::cuda {
namespace {

using cpu::ConvAttributes;
using gemm::Tile;

// How the input's pixels are read.
enum class Reading {
  dense,   // as a matrix of pixels by channels: every output pixel reads the input pixel at its place
  window,  // vectors of channels
  gather,  // element by element
};

struct Plan {
  ConvAttributes attributes;
  Reading reading = Reading::gather;
  int width = 1;         // channels copied at once
  int64_t channels = 0;  // of a group
  int64_t padded = 0;    // as K counts them
  int64_t outputs = 0;   // channels of a group
  int64_t taps = 1;
  Expr pixels;     // of the output, over the whole batch
  Operand output;  // with the op's own dimensions
  conv::Shuffle shuffle;
  int64_t k() const { return taps * padded; }
};

Reading reading_of(const Operand& x, const ConvAttributes& a, int width, int64_t pixels) {
  const std::array<int64_t, 3> ones = {1, 1, 1}, zeros = {0, 0, 0};
  const bool channels_last = x.strides[1] == Expr(1) || x.dims[1] == Expr(1);
  if (!channels_last || static_cast<size_t>(width) * size_of(x.dtype) < 4) return Reading::gather;
  if (a.kernel == ones && a.stride == ones && a.pad == zeros && conv::has_one_pitch(x)) return Reading::dense;
  return conv::fits_window_loader(x, pixels) ? Reading::window : Reading::gather;
}

std::optional<std::string> make_plan(const Problem& problem, Plan& plan) {
  if (!problem.is(OpKind::convolution)) return "not a convolution";
  plan.output = problem.outputs[0];
  plan.output.dims = whole_dims(problem.outputs[0]), plan.output.opt_dims = opt_whole_dims(problem.outputs[0]);
  const Operand &x = problem.inputs[0], &w = problem.inputs[1], &y = plan.output;
  if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
  if (!w.constant) return "the weights are not constant";
  if (auto reason = cpu::resolve(problem, plan.attributes)) return reason;
  const ConvAttributes& a = plan.attributes;
  const Dims& dims = w.constant->dims();
  plan.channels = dims[1];
  plan.outputs = dims[0] / a.groups;
  plan.taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  if (plan.channels == 0 || plan.outputs == 0 || plan.taps == 0) return "an empty dimension";
  if (plan.taps * plan.channels > (1 << 24)) return "more than 16 million weights for an output channel";
  Shape strides;  // of the beginnings of pixels
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (d != 1 && x.dims[d] != Expr(1)) strides.push_back(x.strides[d]);
  if (a.groups > 1) strides.push_back(plan.channels);
  strides.push_back(x.offset);
  plan.width = gemm::copy_width(x.dtype, strides);
  int64_t pixels = 1;  // of an image
  for (size_t d = 2; d < y.opt_dims.size(); ++d) pixels *= y.opt_dims[d];
  plan.reading = reading_of(x, a, plan.width, pixels);
  if (problem.has_prologue() && (plan.reading != Reading::dense || a.groups > 1))
    return "a program before a window of several elements";
  if (auto reason = gemm::refuse_prologue(problem, 1)) return reason;
  const int64_t unit = plan.reading == Reading::window ? plan.width : 1;
  plan.padded = (plan.channels + unit - 1) / unit * unit;
  plan.pixels = y.dims[0];
  for (size_t d = 2; d < y.dims.size(); ++d) plan.pixels *= y.dims[d];
  return conv::describe_shuffle(problem, plan.shuffle);
}

// Declares the loader `a`.
std::string input_loader(Source& source, const Problem& problem, const Plan& plan, const Tile& tile,
                         Emission& emission) {
  if (plan.reading == Reading::dense) {
    const std::string group = fmt::format(" + batch * {}L", plan.channels);
    return gemm::left_loader(source, problem, 1,
                             {"a", "A", plan.attributes.groups > 1 ? group : "", conv::pixel_pitch(problem.inputs[0]),
                              plan.width, false, plan.pixels, plan.k()},
                             tile, emission);
  }
  std::string text = fmt::format("using Window = {};\n  ", conv::window_type(plan.attributes));
  text += plan.reading == Reading::window
              ? fmt::format("conv::WindowLoader<A, Tile::PanelA, Tile::kThreads, {}, Window, {}, {}> a;\n  ",
                            plan.width, plan.channels, plan.padded)
              : fmt::format("conv::GatherLoader<A, Tile::PanelA, Tile::kThreads, Window, {}> a;\n  ", plan.channels);
  return text +
         fmt::format("a.start(A_, {}, batch * {}, block, m);\n  ", conv::pixels(source, plan.output), plan.channels);
}

class ConvTactic final : public Tactic {
 public:
  std::string_view name() const override { return "conv"; }
  bool takes_prologue(size_t input) const override { return input == 0; }
  bool writes_parts() const override { return true; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    Plan plan;
    return make_plan(problem, plan);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    Plan plan;
    make_plan(problem, plan);  // refuse() has seen to it that this works
    gemm::Extent e = gemm::extent_of(problem, false);
    e.gathered = plan.reading == Reading::gather;
    e.copy_width = plan.reading == Reading::window ? plan.width : 0;
    e.m = conv::opt_pixels(plan.output), e.taps = plan.taps;
    e.n = plan.outputs, e.k = plan.k(), e.batch = plan.attributes.groups;
    return gemm::configs(e);
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    Plan plan;
    if (const auto refusal = make_plan(problem, plan)) return fail(ErrorCode::internal, "conv: {}", *refusal);
    const Tile tile = gemm::decode(config);
    const DType dtype = problem.inputs[0].dtype;
    Emission emission;
    emission.with_program = false;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    Tensor weights = *problem.inputs[1].constant;
    if (!plan.shuffle.order.empty()) {
      LATHE_ASSIGN(weights, conv::in_order(weights, plan.shuffle.order));
    }
    LATHE_ASSIGN(Tensor packed, conv::pack_weights(weights, plan.padded));
    const int64_t pitch = packed.dims()[1];
    Source source("conv/conv.cuh");
    source.input(0, problem.inputs[0], "A");
    source.input(1, gemm::packed_operand(packed), "B");
    emission.packed.push_back(std::move(packed));
    LATHE_TRY(conv::add_operands(plan.shuffle, emission));
    std::string body =
        fmt::format("using Tile = {};\n  const long m = {}, n = {}L, k = {}L;\n  ",
                    gemm::tile_type(tile, dtype, false, false), source.number(plan.pixels), plan.outputs, plan.k());
    body += gemm::declare_block(tile);
    body += input_loader(source, problem, plan, tile, emission);
    body += gemm::dense_loader(source,
                               {"b", "B", fmt::format(" + batch * n * {}", pitch), pitch,
                                static_cast<int>(16 / size_of(dtype)), false, plan.outputs, plan.k()},
                               tile);
    const conv::Shuffle& shuffle = plan.shuffle;
    gemm::Ending ending{shuffle.problem,        dtype, shuffle.dimension, plan.pixels, plan.outputs,
                        plan.attributes.groups, {}};
    ending.parts = shuffle.parts;
    ending.rows = [&](Source&) { return fmt::format("gemm::AllRows<{}, {}>{{0L}}", shuffle.dimension, shuffle.parts); };
    if (plan.attributes.groups > 1) ending.column = "batch * n";
    ending.weights_first = true;
    gemm::finish(source, std::move(body), tile, ending, emission);
    return emission;
  }
};

}  // namespace

const Tactic& conv_tactic() {
  static const ConvTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
