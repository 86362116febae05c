// SPDX-License-Identifier: Apache-2.0
// Convolution as an implicit matrix product: output pixels by output channels.
#include "base/divide.h"
#include "kernels/cuda/conv/shuffle_tactic.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"

namespace lathe::cuda {
namespace {

using gemm::TileShape;

// How the input's pixels are read.
enum class PixelLoad {
  dense,   // as a matrix of pixels by channels: every output pixel reads the input pixel at its place
  window,  // vectors of channels
  gather,  // element by element
};

struct ImplicitGemm {
  ConvShape attributes;
  PixelLoad load = PixelLoad::gather;
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

PixelLoad load_of(const Operand& x, const ConvShape& a, int width, int64_t pixels) {
  const std::array<int64_t, 3> ones = {1, 1, 1}, zeros = {0, 0, 0};
  const bool channels_last = x.strides[1] == Expr(1) || x.dims[1] == Expr(1);
  if (!channels_last || static_cast<size_t>(width) * size_of(x.dtype) < 4) return PixelLoad::gather;
  if (a.kernel == ones && a.stride == ones && a.pad == zeros && conv::has_one_pitch(x)) return PixelLoad::dense;
  return conv::fits_window_loader(x, pixels) ? PixelLoad::window : PixelLoad::gather;
}

std::optional<std::string> describe(const Problem& problem, ImplicitGemm& form) {
  if (!problem.is(OpKind::convolution)) return "not a convolution";
  form.output = problem.outputs[0];
  form.output.dims = whole_dims(problem.outputs[0]), form.output.opt_dims = opt_whole_dims(problem.outputs[0]);
  const Operand &x = problem.inputs[0], &w = problem.inputs[1], &y = form.output;
  if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
  if (!w.constant) return "the weights are not constant";
  if (auto reason = resolve_conv_shape(problem, form.attributes)) return reason;
  const ConvShape& a = form.attributes;
  const Dims& dims = w.constant->dims();
  form.channels = dims[1];
  form.outputs = dims[0] / a.groups;
  form.taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  if (form.channels == 0 || form.outputs == 0 || form.taps == 0) return "an empty dimension";
  if (form.taps * form.channels > (1 << 24)) return "more than 16 million weights for an output channel";
  form.width = conv::copy_width(x, a.groups, form.channels);
  int64_t pixels = 1;  // of an image
  for (size_t d = 2; d < y.opt_dims.size(); ++d) pixels *= y.opt_dims[d];
  form.load = load_of(x, a, form.width, pixels);
  if (problem.inputs[0].is_computed() && (form.load != PixelLoad::dense || a.groups > 1))
    return "a program before a window of several elements";
  if (auto reason = gemm::refuse_prologue(problem, 1)) return reason;
  const int64_t unit = form.load == PixelLoad::window ? form.width : 1;
  form.padded = round_up(form.channels, unit);
  form.pixels = y.dims[0];
  for (size_t d = 2; d < y.dims.size(); ++d) form.pixels *= y.dims[d];
  return conv::describe_shuffle(problem, form.shuffle);
}

// Declares the loader `a`.
std::string input_loader(Source& source, const Problem& problem, const ImplicitGemm& form, const TileShape& tile,
                         Emission& emission) {
  if (form.load == PixelLoad::dense) {
    const std::string group = fmt::format(" + batch * {}L", form.channels);
    return gemm::left_loader(source, problem, 1,
                             {"a", "A", form.attributes.groups > 1 ? group : "", conv::pixel_pitch(problem.inputs[0]),
                              form.width, gemm::Major::k, form.pixels, form.k()},
                             tile, emission);
  }
  std::string text = fmt::format("using Window = {};\n  ", conv::window_type(form.attributes));
  text += form.load == PixelLoad::window
              ? fmt::format("conv::WindowLoader<A, Tile::PanelA, Tile::kThreads, {}, Window, {}, {}> a;\n  ",
                            form.width, form.channels, form.padded)
              : fmt::format("conv::GatherLoader<A, Tile::PanelA, Tile::kThreads, Window, {}> a;\n  ", form.channels);
  return text +
         fmt::format("a.start(A_, {}, batch * {}, block, m);\n  ", conv::pixels(source, form.output), form.channels);
}

class ConvMatch final : public Match {
 public:
  ConvMatch(const Problem& problem, ImplicitGemm form) : problem_(problem), form_(std::move(form)) {}

  std::vector<Config> configs() const override {
    gemm::Extent e = gemm::extent_of(problem_);
    e.gathered = form_.load == PixelLoad::gather;
    e.copy_width = form_.load == PixelLoad::window ? form_.width : 0;
    e.m = conv::opt_pixels(form_.output), e.taps = form_.taps;
    e.n = form_.outputs, e.k = form_.k(), e.batch = form_.attributes.groups;
    return gemm::configs(e);
  }

  Result<Emission> emit(const Config& config) const override {
    const auto& tile = config.as<TileShape>();
    const DType dtype = problem_.inputs[0].dtype;
    const conv::Shuffle& shuffle = form_.shuffle;
    Emission emission;
    emission.with_program = false;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    Tensor weights = *problem_.inputs[1].constant;
    if (!shuffle.order.empty()) {
      LATHE_ASSIGN(weights, conv::in_order(weights, shuffle.order));
    }
    LATHE_ASSIGN(Tensor packed, conv::pack_weights(weights, form_.padded));
    const Operand b = gemm::packed_operand(packed);
    Source source("conv/conv.cuh");
    source.input(0, problem_.inputs[0], "A");
    source.input(1, b, "B");
    emission.packed.push_back(std::move(packed));
    LATHE_TRY(conv::add_operands(shuffle, emission));
    std::string body = gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, gemm::Major::k, gemm::Major::k),
                                             form_.pixels, form_.outputs, form_.k());
    body += input_loader(source, problem_, form_, tile, emission);
    body += conv::weights_loader(source, b, form_.outputs, form_.k(), tile);
    const int64_t groups = form_.attributes.groups;
    gemm::Ending ending{shuffle.problem, dtype, shuffle.dimension, form_.pixels, form_.outputs, groups, {}};
    ending.column_dims = shuffle.channel_dims;
    ending.rows = [&](Source&) {
      return fmt::format("gemm::AllRows<{}, {}>{{0L}}", shuffle.dimension, shuffle.channel_dims);
    };
    if (groups > 1) ending.column = "batch * n";
    ending.weights_first = true;
    gemm::finish(source, std::move(body), tile, ending, emission);
    return emission;
  }

 private:
  const Problem& problem_;
  ImplicitGemm form_;
};

}  // namespace

Matched match_conv(const Problem& problem) {
  if (auto reason = unsupported_feature(problem, {.reassociated_result = true, .prologues = 1}))
    return refuse(*std::move(reason));
  ImplicitGemm form;
  if (auto reason = describe(problem, form)) return refuse(*std::move(reason));
  return std::make_unique<ConvMatch>(problem, std::move(form));
}

}  // namespace lathe::cuda
