// SPDX-License-Identifier: Apache-2.0
// Products of few rows by constant weights, at the speed of memory; convolutions of few pixels by one tap are such.
#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/gemv/normalized_tactic.h"
#include "kernels/cuda/gemv/stream_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"

namespace lathe::cuda {
namespace {

using gemv::kStreamColumns, gemv::kStreamPanel;

constexpr int64_t kDotColumns = 4, kDotPanel = 128;  // as DotTile in gemv.cuh has them

struct Gemv {
  Problem problem;    // the output and the operands as the epilogue sees them
  int dimension = 0;  // of the output: the last of the columns'
  size_t column_dims = 1;
  Expr pitch;               // elements between rows
  bool stream = false;      // 16-bit elements on tensor cores; otherwise f32
  bool normalizes = false;  // Operand::normalization
  Expr m;
  int64_t opt_m = 0, n = 0, k = 0;  // M under the shapes that the tuner measures
  int64_t rows() const {            // of a tile; where M is larger, the weights are read for each of several
    if (stream) return round_up(opt_m, 8);
    return opt_m <= 2 ? opt_m : round_up(opt_m, 4);
  }
  Expr tiles() const { return ceildiv(m, rows()) * column_tiles(); }
  int64_t column_tiles() const { return ceil_div(n, columns()); }
  int64_t columns() const { return stream ? kStreamColumns : kDotColumns; }
  int64_t panel() const { return stream ? kStreamPanel : kDotPanel; }
};

std::optional<std::string> describe_product(const Problem& problem, Gemv& gemv) {
  gemm::Product p;
  if (auto reason = gemm::describe(problem, p)) return reason;
  if (!p.weights) return "the weights are not constant";
  if (!p.batch.empty()) return "a batch of weights";
  gemv.m = p.m, gemv.n = *p.n.as_constant(), gemv.k = *p.k.as_constant();
  if (p.a.major == gemm::Major::mn) return "the elements of a row are not neighbours";
  if (p.a.has_several_strides()) return "collapsed columns";
  gemv.pitch = p.a.pitch;
  gemv.dimension = p.problem.outputs[0].rank() - 1;
  gemv.column_dims = p.column_dims();
  gemv.problem = std::move(p.problem);
  return std::nullopt;
}

std::optional<std::string> describe_convolution(const Problem& problem, Gemv& gemv) {
  const Operand &x = problem.inputs[0], &y = problem.outputs[0];
  if (!y.reassociation.empty()) return "a collapsed result of a convolution";
  if (!problem.inputs[1].constant) return "the weights are not constant";
  ConvShape attributes;
  if (auto reason = resolve_conv_shape(problem, attributes)) return reason;
  const std::array<int64_t, 3> ones = {1, 1, 1}, zeros = {0, 0, 0};
  if (attributes.groups != 1 || attributes.kernel != ones || attributes.pad != zeros || !conv::keeps_pixels(x, y))
    return "more than one tap, groups or strides";
  if ((x.strides[1] != Expr(1) && x.dims[1] != Expr(1)) || !conv::has_one_pitch(x))
    return "the elements of a row are not neighbours";
  Expr pixels = y.dims[0];
  for (size_t d = 2; d < y.dims.size(); ++d) pixels *= y.dims[d];
  const Dims& weights = problem.inputs[1].constant->dims();
  gemv.m = pixels, gemv.n = weights[0], gemv.k = weights[1];
  gemv.pitch = conv::pixel_pitch(x);
  gemv.dimension = 1;
  gemv.problem = problem;
  return std::nullopt;
}

std::optional<std::string> describe(const Problem& problem, Gemv& gemv) {
  const bool is_convolution = problem.is(OpKind::convolution);
  if (!is_convolution && !problem.is(OpKind::matmul)) return "not a matrix product";
  const Operand& a = problem.inputs[0];
  gemv.stream = is_matrix_half(problem.target, a.dtype);
  if (!gemv.stream && a.dtype != DType::f32) return fmt::format("elements of type {}", name_of(a.dtype));
  gemv.normalizes = a.normalization != nullptr;
  if (gemv.normalizes && !gemv.stream) return fmt::format("normalised rows of type {}", name_of(a.dtype));
  if (auto reason = gemv::refuse_normalization(problem)) return reason;
  if (auto reason = is_convolution ? describe_convolution(problem, gemv) : describe_product(problem, gemv))
    return reason;
  const int64_t most = gemv.stream ? 16 : 8;
  gemv.opt_m = gemv.m.evaluate(problem.symbols).value_or(0);
  if (gemv.opt_m < 1 || gemv.opt_m > most) return fmt::format("the rows are not 1 to {}", most);
  if (gemv.n == 0 || gemv.k == 0) return "an empty dimension";
  const auto vector = static_cast<int64_t>(16 / size_of(a.dtype));
  if (gemm::copy_width(a.dtype, Shape{gemv.pitch, a.offset}) != vector) return "the rows do not begin at vectors";
  return std::nullopt;
}

// Rows of weights, padded to 16 bytes: [1][n][pitch].
Result<Packed> pack_rows(const Problem& problem, const Gemv& gemv) {
  if (!problem.is(OpKind::convolution)) return gemm::pack_weights(problem);
  LATHE_ASSIGN(Packed rows, conv::pack_weights(Known{*problem.inputs[1].constant, nullptr}, gemv.k));
  const int64_t pitch = rows.dims()[1];
  return reshaped(std::move(rows), {1, gemv.n, pitch});
}

// B as StreamTile reads it: what each lane multiplies in each step lies together.
Result<Packed> pack_stream(const Problem& problem, const Gemv& gemv) {
  LATHE_ASSIGN(const Packed as_rows, pack_rows(problem, gemv));
  const Tensor& rows = as_rows.content();
  const int64_t pitch = rows.dims()[2];
  const int64_t columns = ceil_div(gemv.n, kStreamColumns), panels = ceil_div(gemv.k, kStreamPanel);
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(rows.dtype(), {columns, panels, 4, 32, 8}));
  std::memset(packed.mutable_data(), 0, packed.bytes());
  const auto* from = static_cast<const uint16_t*>(rows.data());
  auto* to = static_cast<uint16_t*>(packed.mutable_data());
  constexpr int64_t kPanelSize = kStreamColumns * kStreamPanel;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t panel = 0; panel < panels; ++panel, to += kPanelSize)
      for (int64_t n = 0; n < std::min(kStreamColumns, gemv.n - column * kStreamColumns); ++n) {
        const int64_t first = panel * kStreamPanel, count = std::min(kStreamPanel, gemv.k - first);
        const uint16_t* row = from + (column * kStreamColumns + n) * pitch + first;
        for (int64_t k = 0; k < count; ++k)
          to[(k % 16 / 4 * 32 + n % 8 * 4 + k / 16) * 8 + k % 4 / 2 * 4 + n / 8 * 2 + k % 2] = row[k];
      }
  return packed;
}

// The choice.
struct Blocks {
  int64_t warps = 4, splits = 1;
  bool apart = false;  // rows are normalised by a launch of their own
  int64_t threads() const { return 32 * warps; }
};

int64_t sums_bytes(const Gemv& gemv, const Blocks& blocks) { return 4 * blocks.warps * gemv.rows() * gemv.columns(); }

// A warp of a DotTile holds one panel at a time.
gemv::PanelStream stream_of(const Gemv& gemv, const Blocks& blocks) {
  const int64_t all = ceil_div(gemv.k, gemv.panel()), panels = ceil_div(all, blocks.splits);
  return {.panel_bytes = 2 * kStreamColumns * kStreamPanel,
          .slices = gemv.column_tiles() * blocks.splits,
          .panels = gemv.stream ? panels : std::min(panels, blocks.warps),
          .warps = blocks.warps,
          .is_even = all % blocks.splits == 0};
}

// Bytes of shared memory for the rows of a block; 0 = they are read where they lie.
int64_t staged_bytes(const Problem& problem, const Gemv& gemv, const Blocks& blocks, int64_t before) {
  const int64_t most = gemv.m.is_constant() ? std::min(gemv.opt_m, gemv.rows()) : gemv.rows();
  return stream_of(gemv, blocks).staged_bytes(most, before + sums_bytes(gemv, blocks), problem.target);
}

std::vector<Config> configs(const Problem& problem, const Gemv& gemv) {
  const int64_t panels = ceil_div(gemv.k, gemv.panel());
  const double bytes = static_cast<double>(gemv.n * gemv.k) * static_cast<double>(size_of(problem.inputs[0].dtype));
  const Target& target = problem.target;
  std::optional<gemv::NormalizedRows> normalized;
  if (gemv.normalizes) normalized.emplace(problem, 0);
  const double apart_us = normalized ? normalized->predicted_us() : 0;
  std::vector<Config> configs;
  const auto add = [&](const Blocks& blocks, double time) {
    configs.push_back(
        {.text = fmt::format("warps={} splits={}{}", blocks.warps, blocks.splits, blocks.apart ? " apart" : ""),
         .predicted_us = (blocks.splits > 1 ? target.launch_us : 0) + (blocks.apart ? apart_us : 0) + time,
         .choice = blocks});
  };
  for (int64_t splits : {1, 2, 4})
    for (int64_t warps : {4, 8, 16, 2}) {
      if (warps == 2 && gemv.column_tiles() < 4 * target.cores) continue;
      if (splits > 1 && (gemv.column_tiles() * splits > 4 * target.cores || panels < 2 * splits)) continue;
      Blocks blocks{warps, splits};
      gemv::PanelStream stream = stream_of(gemv, blocks);
      const double time = stream.predicted_us(bytes, target);
      if (normalized && splits == 1 &&
          staged_bytes(problem, gemv, blocks, normalized->shared_bytes(gemv.rows(), panels, blocks.threads())) > 0) {
        stream.block_clocks = normalized->clocks(gemv.opt_m, blocks.threads());
        add(blocks, stream.predicted_us(bytes, target));
      }
      blocks.apart = normalized.has_value();
      add(blocks, time);
    }
  return best_first(std::move(configs));
}

// What a launch reads of A: as it lies, which it may normalise, or as a launch before has written it to the workspace.
struct RowsOf {
  const gemv::NormalizedRows* normalized = nullptr;
  std::optional<Expr> workspace;  // where it begins
};

// A launch's tile: its type, what it is run with, and bytes of shared memory that its rows take.
struct Tile {
  std::string type, run;
  int64_t staged = 0;
};

Tile stream_tile(const Problem& problem, const Gemv& gemv, const Blocks& blocks, const RowsOf& of, Source& source) {
  const std::string_view type = device_type(problem.inputs[0].dtype);
  const gemv::PanelStream stream = stream_of(gemv, blocks);
  const bool normalizes = of.normalized && !of.workspace;
  const int64_t before = normalizes ? of.normalized->shared_bytes(gemv.rows(), stream.panels, blocks.threads()) : 0;
  const int64_t staged = staged_bytes(problem, gemv, blocks, before);
  if (of.workspace) source.workspace("rows", *of.workspace, type);
  std::string rows = fmt::format("{{{}, {}, 1, m, {}}}", of.workspace ? "rows" : "A_.data",
                                 source.number(of.workspace ? of.normalized->pitch() : gemv.pitch), gemv.k);
  if (normalizes) rows = of.normalized->rows(source, rows);
  const std::string reader =
      normalizes   ? of.normalized->reader(gemv.rows(), blocks.threads())
      : staged > 0 ? fmt::format("SharedRows<gemv::Rows<{}>, {}, {}>", type, gemv.rows(), blocks.threads())
                   : fmt::format("GlobalRows<gemv::Rows<{}>, 8>", type);
  return {fmt::format("gemv::StreamTile<gemv::HalfColumns<{0}, {1}>, {0}, {2}, 1, {3}, {4}, {5}, gemv::{6}>", type,
                      gemv.k, blocks.warps, gemv.rows() / 8, stream.ahead(), stream.own(), reader),
          fmt::format("B_.data, {}, block, n, 0", rows), before + staged};
}

Tile dot_tile(const Gemv& gemv, const Blocks& blocks, int64_t weights_pitch, Source& source) {
  return {fmt::format("gemv::DotTile<{}, {}>", blocks.warps, gemv.rows()),
          fmt::format("B_.data, {0}, A_.data + block.row * {1}, {1}, m - block.row, n, k, block", weights_pitch,
                      source.number(gemv.pitch))};
}

gemm::Ending ending_of(const Problem& problem, const Gemv& gemv) {
  gemm::Ending ending{gemv.problem, problem.inputs[0].dtype, gemv.dimension, gemv.m, gemv.n, 1, {}};
  ending.column_dims = gemv.column_dims;
  if (problem.is(OpKind::convolution)) ending.rows = [](Source&) { return std::string("gemm::AllRows<1>{0L}"); };
  return ending;
}

// In a grid that is multiplied by `is_wanted`.
SourceLaunch launch_of(const Problem& problem, const Gemv& gemv, const Blocks& blocks, const RowsOf& of,
                       const Expr& is_wanted, Emission& emission) {
  const Packed& packed = emission.packed[0];
  Source source("gemv/gemv.cuh");
  if (!of.workspace) source.input(0, problem.inputs[0], "A");
  source.input(1, packed_operand(packed), "B");
  const gemm::Sink sink = gemm::declare_sink(source, ending_of(problem, gemv), blocks.splits, emission);
  const Tile tile =
      gemv.stream ? stream_tile(problem, gemv, blocks, of, source) : dot_tile(gemv, blocks, packed.dims()[2], source);
  const std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long m = {1}, n = {2}, k = {3}, batch = 0;\n"
      "  const gemm::Block block = gemm::block_of<Tile>(m, n, k, {4});\n"
      "  Tile tile;\n"
      "  tile.run({5});\n"
      "  gemv::finish<{6}, {7}>(tile, {8}, block, m, n, reinterpret_cast<float*>(dynamic_shared() + {9}));",
      tile.type, source.number(gemv.m), gemv.n, gemv.k, blocks.splits, tile.run,
      std::min<int64_t>(sink.vector, gemv.columns()), blocks.warps, sink.text, tile.staged);
  return source.finish(call, {gemv.tiles() * blocks.splits * is_wanted, 1, 1}, static_cast<uint32_t>(blocks.threads()),
                       static_cast<uint32_t>(tile.staged + sums_bytes(gemv, blocks)));
}

// A tile's rows are normalised by each block, unless a launch of their own is chosen; more are by that one, for each
// block would normalise only some of them again.
Result<> add_normalizing(const Problem& problem, const Gemv& gemv, const Blocks& blocks, Emission& emission) {
  const gemv::NormalizedRows normalized(problem, emission.inputs.size());
  add_prologue_inputs(problem, 0, emission);
  const Expr are_many = gemv::are_more(gemv.m, gemv.rows()), is_apart = blocks.apart ? Expr(1) : are_many;
  if (!blocks.apart)
    emission.launches.push_back(launch_of(problem, gemv, blocks, {&normalized, {}}, Expr(1) - are_many, emission));
  if (is_apart == Expr(0)) return {};
  emission.workspace = gemm::partial_bytes(ending_of(problem, gemv), blocks.splits);
  LATHE_ASSIGN(const Expr rows, normalized.add_launches(is_apart, emission));
  Expr workspace = emission.workspace;  // a product that is split leaves that of its parts alone there
  emission.launches.push_back(launch_of(problem, gemv, blocks, {&normalized, rows}, is_apart, emission));
  emission.workspace = std::move(workspace);
  return {};
}

Result<Emission> emit(const Problem& problem, const Gemv& gemv, const Config& config) {
  const auto blocks = config.as<Blocks>();
  LATHE_ASSIGN(Packed packed, gemv.stream ? pack_stream(problem, gemv) : pack_rows(problem, gemv));
  Emission emission = with_weights(std::move(packed));
  add_operand_inputs(problem, emission);
  if (gemv.normalizes) {
    LATHE_TRY(add_normalizing(problem, gemv, blocks, emission));
  } else {
    emission.launches.push_back(launch_of(problem, gemv, blocks, {}, 1, emission));
  }
  gemm::add_reduction(ending_of(problem, gemv), blocks.splits, emission);
  return emission;
}

}  // namespace

Matched match_gemv(const Problem& problem) {
  const Features supported{
      .reassociated_result = true, .pairs = true, .reassociated_inputs = 1, .normalized_rows = true};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  Gemv gemv;
  if (auto reason = describe(problem, gemv)) return refuse(*std::move(reason));
  return match_form(problem, std::move(gemv), configs, emit);
}

}  // namespace lathe::cuda
