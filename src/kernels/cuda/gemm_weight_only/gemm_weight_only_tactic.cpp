// SPDX-License-Identifier: Apache-2.0
// Products by constant weights of 4 and 8 bits, at the speed of memory where rows are few.
#include <algorithm>

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/gemm_weight_only/apart_tactic.h"
#include "kernels/cuda/gemm_weight_only/streamed_weights_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {

Matched match_gemm_in_workspace(const Problem& problem);

namespace {

using gemv::are_more;
using weight_only::ManyRows;
using weight_only::PackedStream;
using weight_only::StreamBlocks;
using weight_only::StreamTile;

struct WeightOnly {
  gemm::Product product;
  PackedStream weights;
  DType dtype = DType::f16;
  int width = 0;                // elements of A that are read at once; 0 = they lie apart
  Expr row = {}, element = {};  // A's strides
  int64_t opt_m = 0;
};

// Tiles of rows, each of more than the one before has where their number is open; many are multiplied apart. The first
// tile, or those for many, were chosen for the optimum: where the number is known, as it is where candidates are
// checked, that alone runs.
struct Blocks {
  std::vector<StreamTile> tiles;
  std::optional<ManyRows> many;
  bool chose_many = false;
};

weight_only::Apart apart(const Problem& problem, const WeightOnly& form) {
  return {problem, form.weights, problem.attrs<MatmulAttrs>().transpose_b, match_gemm_in_workspace};
}

std::optional<ManyRows> many_rows(const Problem& problem, const WeightOnly& form) {
  const Expr& m = form.product.m;
  const auto rows_of = [&](const Problem& at) { return m.evaluate(at.symbols).value_or(1); };
  return weight_only::many_rows(
      problem, m, apart(problem, form).wide_bytes(),
      [&](const Problem& at) { return apart(at, form).configs(rows_of(at)); },
      [&](const Problem& at) { return form.weights.configs(at.target, rows_of(at))[0].predicted_us; });
}

// The tile that is measured, and where the number of rows is open those for more.
std::vector<StreamTile> tiles_from(const Problem& problem, const WeightOnly& form, const StreamTile& measured) {
  const PackedStream& weights = form.weights;
  std::vector<StreamTile> tiles = {measured};
  if (form.product.m.is_constant()) return tiles;
  const int64_t few = weights.tile_rows(1);
  if (measured.rows < few) tiles.push_back({few, weights.configs(problem.target, few)[0].as<StreamBlocks>()});
  if (tiles.back().rows < weights.most_rows()) tiles.push_back({weights.most_rows(), {.warps = 4}});
  return tiles;
}

// Of all rows, or where their number is open of as many as `many` says, and as are measured.
std::vector<Config> apart_configs(const Problem& problem, const WeightOnly& form, const std::optional<ManyRows>& many) {
  const PackedStream& weights = form.weights;
  const std::vector<Config> one = weights.one_row_configs(problem.target);
  const int64_t few = one.empty() ? weights.tile_rows(1) : 1,
                above = std::min(many ? many->above : weights.most_rows(), form.opt_m - 1);
  const Config best = one.empty() ? weights.configs(problem.target, few)[0] : one[0];
  const std::vector<StreamTile> tiles = tiles_from(problem, form, {few, best.as<StreamBlocks>()});
  std::vector<Config> configs = apart(problem, form).configs(form.opt_m);
  for (Config& each : configs)
    each.choice = Blocks{tiles, ManyRows{each.as<weight_only::ApartChoice>(), each.text, above}, true};
  return configs;
}

std::vector<Config> configs(const Problem& problem, const WeightOnly& form) {
  const std::optional<ManyRows> many = form.product.m.is_constant() ? std::nullopt : many_rows(problem, form);
  std::vector<Config> configs;
  const auto add = [&](const std::vector<Config>& streamed, int64_t rows) {
    for (const Config& each : streamed) {
      Config config = each;
      Blocks own{tiles_from(problem, form, {rows, each.as<StreamBlocks>()}), many};
      if (own.many) {
        own.many->above = std::max(many->above, form.opt_m);
        config.text += fmt::format(", above {} rows {}", own.many->above, many->text);
      }
      config.choice = std::move(own);
      configs.push_back(std::move(config));
    }
  };
  const std::vector<Config> streamed = form.weights.configs(problem.target, form.opt_m);
  const int64_t rows = form.weights.tile_rows(form.opt_m);
  if (form.opt_m == 1) add(form.weights.one_row_configs(problem.target), 1);
  add(streamed, rows);
  std::ranges::move(apart_configs(problem, form, many), std::back_inserter(configs));
  configs = best_first(std::move(configs));
  if (!many) return configs;
  Config alone = streamed[0];  // for a workspace without room for the weights
  alone.choice = Blocks{tiles_from(problem, form, {rows, alone.as<StreamBlocks>()}), {}};
  alone.predicted_us = configs.back().predicted_us;
  configs.push_back(std::move(alone));
  return configs;
}

SourceLaunch launch_of(const Problem& problem, const WeightOnly& form, const StreamTile& tile, const Expr& is_wanted,
                       Emission& emission) {
  const PackedStream& weights = form.weights;
  const int64_t n = weights.first().n(), k = weights.first().k();
  const gemm::Product& p = form.product;
  Source source(weights.header(tile));
  source.input(0, problem.inputs[0], "A");
  weights.declare(source, emission);
  gemm::Ending ending{p.problem, form.dtype, p.problem.outputs[0].rank() - 1, p.m, p.n, volume(p.batch), {}};
  ending.column_dims = p.column_dims();
  ending.first_operand = 1 + weights.inputs();
  const gemm::Sink sink = gemm::declare_sink(source, ending, 1, emission);
  const int64_t rows = p.m.is_constant() ? std::min(form.opt_m, tile.rows) : tile.rows;
  const int64_t staged = weights.staged_bytes(tile, rows, form.width, problem.target);
  const gemv::PanelStream stream = weights.stream(tile.blocks);
  const std::string rows_type = fmt::format("gemv::Rows<{}>", device_type(form.dtype));
  const std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long m = {1}, n = {2}, k = {3};\n"
      "  const gemm::Block block = gemm::block_of<Tile>(m, n, k, 1);\n"
      "  const long batch = block.batch;\n"
      "  Tile tile;\n"
      "  tile.run({4}, {12}{{A_.data{5}, {6}, {7}, m, {3}}}, block, n, {8});\n"
      "  gemv::finish<{9}, {10}>(tile, {11}, block, m, n, reinterpret_cast<float*>(dynamic_shared() + {13}));",
      weights.tile_type(tile, rows_type, form.width, staged), source.number(p.m), n, k, weights.argument(""),
      gemm::batch_offset(source, p, p.a), source.number(form.row), source.number(form.element),
      stream.cached(problem.target), std::min<int64_t>(sink.vector, gemv::kStreamColumns), tile.blocks.warps, sink.text,
      rows_type, staged);
  const Expr blocks = ceildiv(p.m, tile.rows) * stream.blocks() * volume(p.batch) * is_wanted;
  return source.finish(call, {blocks, 1, 1}, static_cast<uint32_t>(tile.threads()),
                       static_cast<uint32_t>(staged + tile.sums_bytes()), weights.min_blocks(tile, problem.target));
}

// Where the rows are open there is a launch for each tile and those for many rows: what a run does not need has no
// blocks.
Result<Emission> emit(const Problem& problem, const WeightOnly& form, const Config& config) {
  auto [tiles, many, chose_many] = config.as<Blocks>();
  const Expr& m = form.product.m;
  if (m.is_constant()) {
    tiles.resize(1);
    if (chose_many)
      many->above = 0;
    else
      many.reset();
  }
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}};
  LATHE_TRY(form.weights.pack_into(emission));
  add_operand_inputs(problem, emission);
  const Expr are_many = many ? are_more(m, many->above) : Expr(0);
  Expr is_left = 1;  // to this tile and those behind it
  for (size_t i = 0; i < tiles.size(); ++i) {
    const bool is_last = i + 1 == tiles.size() || (many && tiles[i].rows >= many->above);
    const Expr are_left = is_last ? are_many : are_more(m, tiles[i].rows), is_wanted = is_left - are_left;
    if (is_wanted != Expr(0)) emission.launches.push_back(launch_of(problem, form, tiles[i], is_wanted, emission));
    is_left = are_left;
    if (is_last) break;
  }
  if (many) LATHE_TRY(apart(problem, form).add_launches(many->choice, are_many, emission));
  return emission;
}

}  // namespace

Matched match_gemm_weight_only(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  const Features supported{
      .reassociated_result = true, .pairs = true, .reassociated_inputs = 1, .packed_weights = true};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  if (!is_short_float(dtype)) return refuse(fmt::format("elements of type {}", name_of(dtype)));
  std::vector<PackedWeights> weights = packed_matrices(problem.inputs[1], problem.attrs<MatmulAttrs>().transpose_b);
  WeightOnly form{{}, PackedStream(std::move(weights), dtype, problem.target), dtype};
  if (auto reason = gemm::describe(problem, form.product)) return refuse(*std::move(reason));
  const gemm::Matrix& a = form.product.a;
  if (a.has_several_strides()) return refuse("collapsed rows of the first operand");
  const bool is_along_k = a.major == gemm::Major::k;
  form.width = is_along_k ? a.width : 0;
  form.row = is_along_k ? a.pitch : Expr(1), form.element = is_along_k ? Expr(1) : a.pitch;
  form.opt_m = form.product.m.evaluate(problem.symbols).value_or(1);
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
