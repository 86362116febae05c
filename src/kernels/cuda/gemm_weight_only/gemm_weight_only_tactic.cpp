// SPDX-License-Identifier: Apache-2.0
// Products by constant weights of 4 and 8 bits, at the speed of memory where rows are few.
#include <algorithm>

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/gemm_weight_only/apart_tactic.h"
#include "kernels/cuda/gemm_weight_only/streamed_weights_tactic.h"
#include "kernels/cuda/gemv/normalized_tactic.h"
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
  bool normalizes = false;  // Operand::normalization
};

// Tiles of rows, each of more than the one before has where their number is open; many are multiplied apart. The first
// tile, or those for many, were chosen for the optimum: where the number is known, as it is where candidates are
// checked, that alone runs.
struct Blocks {
  std::vector<StreamTile> tiles;
  std::optional<ManyRows> many;
  bool chose_many = false;
  bool rows_apart = false;  // rows are normalised by a launch of their own for all tiles
};

// Of rows as they are, or as a launch has normalised them.
weight_only::Apart apart(const Problem& problem, const WeightOnly& form) {
  Problem plain = problem;
  if (form.normalizes) plain.inputs[0] = gemv::NormalizedRows(problem, 0).written();
  return {plain, form.weights, problem.attrs<MatmulAttrs>().transpose_b, match_gemm_in_workspace};
}

// Bytes of shared memory of a tile that normalises its rows, before them; nullopt = it does not.
std::optional<int64_t> bytes_before_rows(const Problem& problem, const WeightOnly& form, const StreamTile& tile) {
  constexpr int64_t kMostRows = 16;  // as gemv has them
  if (!form.normalizes || tile.rows > kMostRows) return std::nullopt;
  const gemv::PanelStream stream = form.weights.stream(tile.blocks);
  const int64_t before = gemv::NormalizedRows(problem, 0).shared_bytes(tile.rows, stream.panels, tile.threads());
  if (stream.staged_bytes(tile.rows, before + tile.sums_bytes(), problem.target) == 0) return std::nullopt;
  return before;
}

// Of the launches that normalise rows for others, if there are any.
double normalizing_apart_us(const Problem& problem, const WeightOnly& form) {
  return form.normalizes ? gemv::NormalizedRows(problem, 0).predicted_us() : 0;
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
  const double normalizing_us = normalizing_apart_us(problem, form);
  for (Config& each : configs) {
    each.choice = Blocks{tiles, ManyRows{each.as<weight_only::ApartChoice>(), each.text, above}, true};
    each.predicted_us += normalizing_us;
  }
  return configs;
}

// What streams weights, if its blocks normalise their rows first. Measured: nothing hides that, for a block has few
// bytes of weights on their way meanwhile, the fewer where its warps do not hold all of their panels.
Config normalizing(const Problem& problem, const WeightOnly& form, const StreamTile& tile, Config config) {
  constexpr double kShare = 2, kInTurns = 4;  // of the clocks that a block by itself would take
  const double clocks = gemv::NormalizedRows(problem, 0).clocks(form.opt_m, tile.threads());
  const gemv::PanelStream stream = form.weights.stream(tile.blocks);
  const double share = stream.panels <= stream.warps * stream.ahead() ? kShare : kInTurns;
  config.predicted_us += share * clocks * static_cast<double>(stream.waves(problem.target)) / problem.target.clock_mhz;
  return config;
}

std::vector<Config> configs(const Problem& problem, const WeightOnly& form) {
  const std::optional<ManyRows> many = form.product.m.is_constant() ? std::nullopt : many_rows(problem, form);
  const double normalizing_us = normalizing_apart_us(problem, form);
  std::vector<Config> configs;
  const auto add_choice = [&](Config config, Blocks own) {
    if (own.rows_apart) config.text += " rows apart";
    if (own.many) {
      own.many->above = std::max(many->above, form.opt_m);
      config.text += fmt::format(", above {} rows {}", own.many->above, many->text);
    }
    config.choice = std::move(own);
    configs.push_back(std::move(config));
  };
  const auto add = [&](const std::vector<Config>& streamed, int64_t rows) {
    for (const Config& each : streamed) {
      const StreamTile tile{rows, each.as<StreamBlocks>()};
      Blocks own{tiles_from(problem, form, tile), many};
      if (!form.normalizes) {
        add_choice(each, std::move(own));
        continue;
      }
      if (bytes_before_rows(problem, form, tile)) add_choice(normalizing(problem, form, tile, each), own);
      own.rows_apart = true;
      Config in_two = each;
      in_two.predicted_us += normalizing_us;
      add_choice(std::move(in_two), std::move(own));
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

// What a launch reads of A: as it lies, or as a launch before has written it to the workspace.
struct RowsOf {
  const gemv::NormalizedRows* normalized = nullptr;
  std::optional<Expr> workspace = {};  // where it begins
};

// The text of a tile's rows, their reader, and the bytes of shared memory that both have.
struct RowsText {
  std::string rows, reader;
  int64_t shared = 0;
};

RowsText declare_rows(const Problem& problem, const WeightOnly& form, const StreamTile& tile, const RowsOf& of,
                      Source& source) {
  const PackedStream& weights = form.weights;
  const gemm::Product& p = form.product;
  const int64_t k = weights.first().k();
  const std::string type = fmt::format("gemv::Rows<{}>", device_type(form.dtype));
  const int64_t rows = p.m.is_constant() ? std::min(form.opt_m, tile.rows) : tile.rows;
  if (of.workspace) {
    source.workspace("rows", *of.workspace, device_type(form.dtype));
    const int64_t staged = weights.staged_bytes(tile, rows, form.width, problem.target);
    return {fmt::format("{}{{rows, {}, 1, m, {}}}", type, source.number(of.normalized->pitch()), k),
            weights.reader(tile, type, form.width, staged), staged};
  }
  source.input(0, problem.inputs[0], "A");
  const std::string plain = fmt::format("{}{{A_.data{}, {}, {}, m, {}}}", type, gemm::batch_offset(source, p, p.a),
                                        source.number(form.row), source.number(form.element), k);
  if (of.normalized) {
    const int64_t before = *bytes_before_rows(problem, form, tile),
                  staged = weights.stream(tile.blocks).staged_bytes(rows, before + tile.sums_bytes(), problem.target);
    return {of.normalized->rows(source, plain), of.normalized->reader(tile.rows, tile.threads()), before + staged};
  }
  const int64_t staged = weights.staged_bytes(tile, rows, form.width, problem.target);
  return {plain, weights.reader(tile, type, form.width, staged), staged};
}

SourceLaunch launch_of(const Problem& problem, const WeightOnly& form, const StreamTile& tile, const RowsOf& of,
                       const Expr& is_wanted, Emission& emission) {
  const PackedStream& weights = form.weights;
  const int64_t n = weights.first().n(), k = weights.first().k();
  const gemm::Product& p = form.product;
  Source source(weights.header(tile));
  const RowsText rows = declare_rows(problem, form, tile, of, source);
  weights.declare(source, emission);
  gemm::Ending ending{p.problem, form.dtype, p.problem.outputs[0].rank() - 1, p.m, p.n, volume(p.batch), {}};
  ending.column_dims = p.column_dims();
  ending.first_operand = 1 + weights.inputs();
  const gemm::Sink sink = gemm::declare_sink(source, ending, 1, emission);
  const gemv::PanelStream stream = weights.stream(tile.blocks);
  const std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long m = {1}, n = {2}, k = {3};\n"
      "  const gemm::Block block = gemm::block_of<Tile>(m, n, k, 1);\n"
      "  const long batch = block.batch;\n"
      "  Tile tile;\n"
      "  tile.run({4}, {5}, block, n, {6});\n"
      "  gemv::finish<{7}, {8}>(tile, {9}, block, m, n, reinterpret_cast<float*>(dynamic_shared() + {10}));",
      weights.tile_type(tile, rows.reader, form.width), source.number(p.m), n, k, weights.argument(""), rows.rows,
      stream.cached(problem.target), std::min<int64_t>(sink.vector, gemv::kStreamColumns), tile.blocks.warps, sink.text,
      rows.shared);
  const Expr blocks = ceildiv(p.m, tile.rows) * stream.blocks() * volume(p.batch) * is_wanted;
  return source.finish(call, {blocks, 1, 1}, static_cast<uint32_t>(tile.threads()),
                       static_cast<uint32_t>(rows.shared + tile.sums_bytes()),
                       weights.min_blocks(tile, problem.target));
}

// A tile and where it runs.
struct TileLaunch {
  StreamTile tile;
  Expr is_wanted;
};

// Of tiles each of which has more rows than the one before; `are_many` are none of theirs.
std::vector<TileLaunch> launches_of(const std::vector<StreamTile>& tiles, const std::optional<ManyRows>& many,
                                    const Expr& m, const Expr& are_many) {
  std::vector<TileLaunch> launches;
  Expr is_left = 1;  // to this tile and those behind it
  for (size_t i = 0; i < tiles.size(); ++i) {
    const bool is_last = i + 1 == tiles.size() || (many && tiles[i].rows >= many->above);
    const Expr are_left = is_last ? are_many : are_more(m, tiles[i].rows);
    launches.push_back({tiles[i], is_left - are_left});
    is_left = are_left;
    if (is_last) break;
  }
  std::erase_if(launches, [](const TileLaunch& each) { return each.is_wanted == Expr(0); });
  return launches;
}

// Where the rows are open there is a launch for each tile and those for many rows: what a run does not need has no
// blocks. What does not normalise its rows itself reads those that a launch before it has.
Result<Emission> emit(const Problem& problem, const WeightOnly& form, const Config& config) {
  auto [tiles, many, chose_many, rows_apart] = config.as<Blocks>();
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
  std::optional<gemv::NormalizedRows> normalized;
  if (form.normalizes) normalized.emplace(problem, emission.inputs.size());
  add_prologue_inputs(problem, 0, emission);
  const Expr are_many = many ? are_more(m, many->above) : Expr(0);
  const std::vector<TileLaunch> launches = launches_of(tiles, many, m, are_many);
  const auto reads_written = [&](const TileLaunch& each) {
    return normalized && (rows_apart || !bytes_before_rows(problem, form, each.tile));
  };
  std::optional<Expr> rows;
  Expr are_written = normalized ? are_many : Expr(0);
  for (const TileLaunch& each : launches)
    if (reads_written(each)) are_written += each.is_wanted;
  if (are_written != Expr(0)) {
    LATHE_ASSIGN(rows, normalized->add_launches(are_written, emission));
  }
  for (const TileLaunch& each : launches) {
    RowsOf of;
    if (normalized) of.normalized = &*normalized;
    if (reads_written(each)) of.workspace = rows;
    emission.launches.push_back(launch_of(problem, form, each.tile, of, each.is_wanted, emission));
  }
  if (many) LATHE_TRY(apart(problem, form).add_launches(many->choice, are_many, emission, rows));
  return emission;
}

std::optional<std::string> refuse_normalization(const Problem& problem, const WeightOnly& form) {
  if (!form.normalizes) return std::nullopt;
  if (form.weights.is_scalar()) return fmt::format("normalised rows of type {}", name_of(form.dtype));
  if (!form.product.batch.empty()) return "a batch of normalised rows";
  if (form.width != 8) return "normalised rows do not begin at vectors";
  return gemv::refuse_normalization(problem);
}

}  // namespace

Matched match_gemm_weight_only(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  const Features supported{.reassociated_result = true,
                           .pairs = true,
                           .reassociated_inputs = 1,
                           .packed_weights = true,
                           .normalized_rows = true};
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
  form.normalizes = problem.inputs[0].normalization != nullptr;
  if (auto reason = refuse_normalization(problem, form)) return refuse(*std::move(reason));
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
