// SPDX-License-Identifier: Apache-2.0
// Convolution of images of few channels, whose windows overlap: tiles of pixels and, if the problem has it, the program
// that computes them.
#include <algorithm>
#include <array>

#include "base/divide.h"
#include "kernels/conv_shape_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/tile_cost_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMostChannels = 4, kMostSteps = 32, kStepWords = 8, kWarp = 32;

struct Stem {
  ConvShape attributes;
  DType dtype = DType::f16;  // of what is multiplied
  int64_t channels = 0, outputs = 0;
  // As WindowWords in conv_stem/window_words.cuh has them, in elements.
  int64_t per_word = 2, pitch = 0;
  bool whole_rows = true;
  int64_t run() const { return round_up(pitch * (whole_rows ? attributes.kernel[2] : 1), per_word); }
  int64_t row() const { return run() * (whole_rows ? 1 : attributes.kernel[2]); }
  int64_t tap() const { return whole_rows ? pitch : run(); }
  int64_t steps() const { return ceil_div(attributes.kernel[1] * row(), kStepWords * per_word); }
  int64_t k() const { return steps() * kStepWords * per_word; }
};

// A block's pixels, those of a warp, and its channels.
struct Tile {
  int64_t h, w, warp, n;
  int64_t rows(const Stem& s) const { return extent_of(s, 1, h); }
  int64_t columns(const Stem& s) const { return extent_of(s, 2, w); }
  int64_t threads() const { return h * w / warp * kWarp; }
  // Elements of pixels that a thread copies.
  int64_t held(const Stem& s) const { return ceil_div(rows(s) * columns(s), threads()) * s.channels; }
  int64_t shared_bytes(const Stem& s) const {
    const auto size = static_cast<int64_t>(size_of(s.dtype));
    const int64_t behind = s.pitch % s.per_word == 0 ? 0 : 2 * (s.per_word - 1);
    return n * s.k() * size + rows(s) * ((columns(s) * s.pitch + behind) / s.per_word) * 4;
  }

 private:
  static int64_t extent_of(const Stem& s, size_t axis, int64_t pixels) {
    const ConvShape& a = s.attributes;
    return (pixels - 1) * a.stride[axis] + (a.kernel[axis] - 1) * a.dilation[axis] + 1;
  }
};

// Those that registers and shared memory have room for.
std::vector<Tile> tiles_of(const Problem& problem, const Stem& stem) {
  static constexpr auto kImages = std::to_array<Tile>(
      {{8, 16, 32, 0}, {4, 32, 32, 0}, {8, 32, 64, 0}, {8, 32, 32, 0}, {16, 16, 64, 0}, {16, 16, 32, 0}});
  static constexpr auto kLines = std::to_array<Tile>({{1, 128, 32, 0}, {1, 256, 64, 0}, {1, 256, 32, 0}});
  constexpr int64_t kLeast = 16, kMost = 64, kMostHeld = 64;  // channels; registers
  int64_t widest = kLeast;
  while (widest < std::min(stem.outputs, kMost)) widest *= 2;
  std::vector<Tile> tiles;
  for (Tile tile : stem.attributes.spatial == 1 ? std::span<const Tile>(kLines) : std::span<const Tile>(kImages))
    for (tile.n = widest; tile.n >= std::max(kLeast, widest / 2); tile.n /= 2)
      if (tile.held(stem) <= kMostHeld && tile.shared_bytes(stem) <= problem.target.limits.shared_bytes)
        tiles.push_back(tile);
  return tiles;
}

// Pixels so far from each other that words begin where windows and their taps do.
int64_t pitch_of(const Stem& s) {
  const ConvShape& a = s.attributes;
  const auto fits = [&](int64_t pitch) {
    return a.stride[2] * pitch % s.per_word == 0 && (s.whole_rows || pitch % s.per_word == 0);
  };
  int64_t pitch = s.channels;
  while (!fits(pitch)) ++pitch;
  return pitch;
}

std::optional<std::string> refuse_types(const Problem& problem) {
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  if (w.dtype != DType::i8 && !is_matrix_half(problem.target, w.dtype))
    return fmt::format("weights of type {}", name_of(w.dtype));
  if (!x.is_computed()) return x.dtype == w.dtype ? std::nullopt : std::optional<std::string>("factors of two types");
  if (is_short_float(x.dtype) || (is_integer(x.dtype) && size_of(x.dtype) <= 2)) return std::nullopt;
  return fmt::format("a program on elements of type {}", name_of(x.dtype));
}

std::optional<std::string> describe(const Problem& problem, Stem& stem) {
  if (auto reason = unsupported_feature(problem, {.mixed_factors = true, .prologues = 1})) return reason;
  if (!problem.is(OpKind::convolution)) return "not a convolution";
  if (!problem.inputs[1].weights) return "the weights are not constant";
  if (auto reason = refuse_types(problem)) return reason;
  if (auto reason = resolve_conv_shape(problem, stem.attributes)) return reason;
  const ConvShape& a = stem.attributes;
  const Dims& dims = problem.inputs[1].weights->dims();
  stem.dtype = problem.inputs[1].dtype;
  stem.channels = dims[1], stem.outputs = dims[0];
  if (stem.channels * stem.outputs * a.volume() == 0) return "an empty dimension";
  if (a.groups > 1 || stem.channels > kMostChannels)
    return fmt::format("{} channels of {} groups, of one {} at most are handled", stem.channels, a.groups,
                       kMostChannels);
  if (a.spatial > 2) return "windows of three dimensions";
  if (problem.outputs[0].strides[1] != Expr(1)) return "channels are not side by side in the result";
  stem.per_word = 4 / static_cast<int64_t>(size_of(stem.dtype));
  stem.whole_rows = a.dilation[2] == 1;
  stem.pitch = pitch_of(stem);
  if (stem.steps() > kMostSteps) return fmt::format("a window of {} elements", a.volume() * stem.channels);
  if (tiles_of(problem, stem).empty()) return "windows too far apart";
  return std::nullopt;
}

// Blocks that a multiprocessor runs at the same time. No more are launched, for each takes tiles in turns.
int64_t blocks_at_once(const Target& target, const Stem& stem, const Tile& tile) {
  // Pixels wait beside sums where both are so many registers of a thread at most (conv_stem.cuh).
  constexpr int64_t kMostAhead = 112;
  const int64_t sums = tile.warp * tile.n / kWarp, both = sums + tile.held(stem);
  // What the cost model chooses spills on no architecture then (NVRTC 13.0).
  const int64_t registers = tile.threads() * ((both <= kMostAhead ? both : sums) * 6 / 5 + 70);
  const int64_t resident =
      std::min({target.limits.core_registers / registers, target.limits.core_shared_bytes / tile.shared_bytes(stem),
                target.limits.core_threads / tile.threads()});
  return std::max<int64_t>(resident, 1);
}

// Clocks that a block's parts take, which those of other blocks overlap with in part.
double predict(const Problem& problem, const Stem& stem, const Tile& tile) {
  constexpr double kMultiplyShare = 0.6, kSharedShare = 0.8, kPixelClocks = 0.5, kSumClocks = 0.06,
                   kFunctionClocks = 0.1, kStartClocks = 1500, kLaunchShare = 0.4;
  const Target& target = problem.target;
  const Dims &x = problem.inputs[0].opt_dims, &y = problem.outputs[0].opt_dims;
  const auto size = static_cast<double>(size_of(stem.dtype));
  const int64_t height = y.size() > 3 ? y[2] : 1, tiles = y[0] * ceil_div(height, tile.h) * ceil_div(y.back(), tile.w);
  const int64_t blocks = tiles * ceil_div(stem.outputs, tile.n);
  const auto pixels = static_cast<double>(tile.h * tile.w), n = static_cast<double>(tile.n),
             k = static_cast<double>(stem.k());
  const double multiply = pixels * n * k / (kMultiplyShare * target.matrix_products(stem.dtype));
  const double shared =
      (pixels + n * pixels / static_cast<double>(tile.warp)) * k * size / (kSharedShare * target.shared_clock_bytes);
  const double load = static_cast<double>(tile.rows(stem) * tile.columns(stem)) * kPixelClocks;
  const double end =
      pixels * n * (kSumClocks + kFunctionClocks * static_cast<double>(gemm::dear_functions(problem.program)));
  const int64_t each = ceil_div(blocks, std::max<int64_t>(target.cores, 1));
  const double busy = static_cast<double>(each) * (std::max(multiply, shared) + load + end);
  double bytes =
      static_cast<double>(stem.outputs * tiles) * pixels * static_cast<double>(size_of(problem.outputs[0].dtype));
  double elements = 1;
  for (const int64_t dim : x) elements *= static_cast<double>(dim);
  bytes += elements * static_cast<double>(size_of(problem.inputs[0].dtype));
  return std::max((busy + kStartClocks) / target.clock_mhz, gemm::memory_us(bytes, target)) +
         kLaunchShare * target.launch_us;
}

std::vector<Config> configs(const Problem& problem, const Stem& stem) {
  return configs_of(
      tiles_of(problem, stem),
      [](const Tile& tile) { return fmt::format("{}x{} pixels warp={}x{}", tile.h, tile.w, tile.warp, tile.n); },
      [&](const Tile& tile) { return predict(problem, stem, tile); });
}

Result<Packed> pack_weights(const Operand& weights, const Stem& stem) {
  const int64_t kernel_h = stem.attributes.kernel[1], kernel_w = stem.attributes.kernel[2], taps = kernel_h * kernel_w;
  return pack(Known{*weights.weights, weights.derivation}, {stem.outputs, stem.k()},
              {{stem.outputs, stem.channels * taps, stem.k()},
               {stem.channels, taps, 1},
               {kernel_h, kernel_w, stem.row()},
               {kernel_w, 1, stem.tap()}});
}

// The input, and the program that computes it.
std::string declare_input(Source& source, const Problem& problem, Emission& emission) {
  const Operand& x = problem.inputs[0];
  source.input(0, x, "X");
  if (!x.is_computed()) return "X_";
  std::vector<Operand> views = {x};
  for (const Operand& operand : x.operands) views.push_back(broadcast(operand, x));
  const size_t first = emission.inputs.size();
  add_prologue_inputs(problem, 0, emission);
  source.prologue(x.program, views, first);
  return "Computed<X, Prologue>{X_, prologue_}";
}

Result<Emission> emit(const Problem& problem, const Stem& stem, const Config& config) {
  const auto& tile = config.as<Tile>();
  LATHE_ASSIGN(Packed packed, pack_weights(problem.inputs[1], stem));
  Source source("conv_stem/conv_stem.cuh");
  source.input(1, packed_operand(packed), "B");
  Emission emission = with_weights(std::move(packed));
  add_operand_inputs(problem, emission);
  const std::string input = declare_input(source, problem, emission);
  const Operand& y = problem.outputs[0];
  gemm::Ending ending{problem, stem.dtype, 1, 1, stem.outputs, 1, {}};
  ending.rows = [](Source&) { return std::string("rows"); };
  const gemm::Sink sink = gemm::fused_sink(source, ending);
  const int64_t neighbours = std::min<int64_t>(tile.n / 4, 8);
  const std::string form =
      fmt::format("conv_stem::Form<{}, {}, {}, {}, {}, {}, {}, {}>", device_type(stem.dtype),
                  conv::window_type(stem.attributes), stem.channels, stem.pitch, tile.h, tile.w, tile.warp, tile.n);
  const std::string call = fmt::format(
      "conv_stem::run<{}, {}>({}, B_, {}, {}L, [&](const auto& rows) {{\n"
      "    return {};\n"
      "  }});",
      form, stem.outputs % neighbours == 0, input, conv::pixels(source, y), stem.outputs, sink.text);
  const Expr height = y.rank() > 3 ? y.dims[2] : Expr(1);
  const Expr tiles = y.dims[0] * ceildiv(height, tile.h) * ceildiv(y.dims.back(), tile.w);
  const int64_t columns = ceil_div(stem.outputs, tile.n), resident = blocks_at_once(problem.target, stem, tile);
  const Expr blocks = min(tiles, ceil_div(problem.target.cores * resident, columns)) * columns;
  emission.launches.push_back(source.finish(call, {blocks, 1, 1}, static_cast<uint32_t>(tile.threads()),
                                            static_cast<uint32_t>(tile.shared_bytes(stem)),
                                            static_cast<int>(resident)));
  return emission;
}

}  // namespace

Matched match_conv_stem(const Problem& problem) {
  Stem stem;
  if (auto reason = describe(problem, stem)) return refuse(*std::move(reason));
  return match_form(problem, stem, configs, emit);
}

}  // namespace lathe::cuda
