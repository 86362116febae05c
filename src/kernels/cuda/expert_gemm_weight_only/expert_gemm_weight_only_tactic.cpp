// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts, of 4 and 8 bits.
#include <algorithm>

#include "kernels/cuda/expert_gemm/expert_rows_tactic.h"
#include "kernels/cuda/gemm_weight_only/apart_tactic.h"
#include "kernels/cuda/gemm_weight_only/streamed_weights_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {

Matched match_expert_gemm(const Problem& problem);

namespace {

using gemv::are_more;
using weight_only::ManyRows;
using weight_only::PackedStream;
using weight_only::StreamBlocks;
using weight_only::StreamTile;

struct ExpertWeightOnly {
  RoutedRows rows;
  PackedStream weights;
  int width = 0;                                       // elements of a row that are read at once; 0 = they lie apart
  size_t ids() const { return 1 + weights.inputs(); }  // among the emission's inputs
};

struct Blocks {
  StreamTile tile;
  bool sorts = false;
  RowParts parts() const { return {tile.rows, sorts}; }
};

// Of few rows and of more, where their number is open; many are multiplied apart. One of them was chosen for the
// optimum: where the number is known, as it is where candidates are checked, that one alone runs.
struct ByRows {
  enum class Part { few, more, many } chosen = Part::few;
  Blocks few, more;
  int64_t most_few = 0;
  std::optional<ManyRows> many;
};

weight_only::Apart apart(const Problem& problem, const ExpertWeightOnly& form) {
  return {problem, form.weights, problem.attrs<ExpertMatmulAttrs>().transpose_w, match_expert_gemm};
}

std::vector<Config> streamed_configs(const Problem& problem, const ExpertWeightOnly& form) {
  constexpr size_t kMostConfigs = 12;
  const double sort_us = 1.5 * problem.target.launch_us;
  const RoutedRows& rows = form.rows;
  std::vector<Config> configs;
  for (const Config& each : form.weights.configs(problem.target, rows.rows_of_each(), rows.used()))
    for (const int64_t more : {1, 2}) {
      const int64_t tile_rows = std::min(form.weights.tile_rows(rows.rows_of_each() * more), form.weights.most_rows());
      if (more > 1 && tile_rows == form.weights.tile_rows(rows.rows_of_each())) continue;
      const auto& own = each.as<StreamBlocks>();
      const std::string text = fmt::format("rows={} {}", tile_rows, each.text);
      const double us = each.predicted_us * (more > 1 ? 1.1 : 1);
      configs.push_back(
          {.text = text + " sorted", .predicted_us = us + sort_us, .choice = Blocks{{tile_rows, own}, true}});
      if (rows.may_be_few(tile_rows))
        configs.push_back({.text = text + " few", .predicted_us = us, .choice = Blocks{{tile_rows, own}, false}});
    }
  if (rows.rows_of_each() == 1 && rows.may_be_few(1))
    for (const Config& each : form.weights.one_row_configs(problem.target, rows.used()))
      configs.push_back({.text = each.text + " few",
                         .predicted_us = each.predicted_us,
                         .choice = Blocks{{1, each.as<StreamBlocks>()}, false}});
  return best_first(std::move(configs), kMostConfigs);
}

std::optional<ManyRows> many_rows(const Problem& problem, const ExpertWeightOnly& form) {
  const auto at_rows = [&](const Problem& at) {
    ExpertWeightOnly other = form;
    other.rows.opt_rows = form.rows.rows.evaluate(at.symbols).value_or(1);
    return other;
  };
  return weight_only::many_rows(
      problem, form.rows.rows, apart(problem, form).wide_bytes(),
      [&](const Problem& at) { return apart(at, form).configs(at_rows(at).rows.rows_of_each()); },
      [&](const Problem& at) { return streamed_configs(at, at_rows(at))[0].predicted_us; });
}

// What a number of rows that is open may also be: few, which look for their experts, and more, which are sorted.
ByRows besides(const Problem& problem, const ExpertWeightOnly& form) {
  const PackedStream& weights = form.weights;
  const auto tile_for = [&](int64_t rows, int64_t used) {
    const std::vector<Config> best = weights.configs(problem.target, rows, used);
    return StreamTile{weights.tile_rows(rows), best[0].as<StreamBlocks>()};
  };
  constexpr int64_t kMore = 16;  // of each expert
  return {.chosen = ByRows::Part::few,
          .few = {tile_for(1, 1), false},
          .more = {tile_for(kMore, form.rows.experts), true},
          .most_few = std::min(RoutedRows::kFewRows, std::max<int64_t>(form.rows.opt_rows - 1, 0)),
          .many = {}};
}

// Each has a choice for the optimum, which is measured, and besides it those that are predicted best.
std::vector<Config> configs(const Problem& problem, const ExpertWeightOnly& form) {
  const RoutedRows& rows = form.rows;
  const bool is_known = rows.rows.is_constant();
  const std::optional<ManyRows> many = is_known ? std::nullopt : many_rows(problem, form);
  const ByRows others = besides(problem, form);
  std::vector<Config> configs = streamed_configs(problem, form);
  Config alone = configs[0];  // for a workspace without room for the weights
  const auto choose = [&](Config& config, const std::optional<ManyRows>& many) {
    ByRows by = others;
    const auto& own = config.as<Blocks>();
    (own.sorts ? by.more : by.few) = own;
    by.chosen = own.sorts ? ByRows::Part::more : ByRows::Part::few;
    // Of tiles of one row each reads its matrix.
    const int64_t most_few = form.weights.is_one_row(own.tile) ? rows.experts : RoutedRows::kFewRows;
    if (!own.sorts) by.most_few = std::min(most_few, RoutedRows::kFewRows);
    if (many) {
      by.many = many;
      by.many->above = std::max(many->above, rows.opt_rows);
      config.text += fmt::format(", above {} rows {}", by.many->above, many->text);
    }
    config.choice = by;
  };
  choose(alone, {});
  for (Config& each : configs) choose(each, many);
  const int64_t above = std::min(many ? many->above : RoutedRows::kFewRows, rows.opt_rows - 1);
  for (Config& each : apart(problem, form).configs(rows.rows_of_each())) {
    ByRows by = others;
    by.many = ManyRows{each.as<weight_only::ApartChoice>(), each.text, above};
    by.chosen = ByRows::Part::many;
    each.choice = by;
    configs.push_back(std::move(each));
  }
  configs = best_first(std::move(configs));
  alone.predicted_us = configs.back().predicted_us;
  if (many) configs.push_back(std::move(alone));
  return configs;
}

SourceLaunch multiplying(const Problem& problem, const ExpertWeightOnly& form, const Blocks& blocks,
                         const Expr& is_wanted, Emission& emission) {
  const RoutedRows& rows = form.rows;
  const PackedStream& weights = form.weights;
  const StreamTile& tile = blocks.tile;
  const int64_t n = weights.first().n(), k = weights.first().k();
  Source source("expert_gemm_weight_only/expert_gemm_weight_only.cuh");
  source.include(weights.header(tile));
  source.input(0, rows.x, "A");
  weights.declare(source, emission);
  const gemm::Sink sink = gemm::declare_sink(source, rows.ending(problem, form.ids(), n), 1, emission);
  const int64_t staged = weights.staged_bytes(tile, tile.rows, form.width, problem.target);
  const int64_t shared = staged + tile.sums_bytes();
  const Expr parts = rows.parts(blocks.parts());
  const std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long rows = {1}, n = {2}, k = {3};\n"
      "  const unsigned place = static_cast<unsigned>(block_x()), parts = static_cast<unsigned>({4});\n"
      "  const int number = static_cast<int>(place % parts);\n"
      "  expert_gemm::Part part;\n"
      "  if (!{5}) return;\n"
      "  const long m = part.end;\n"
      "  const gemm::Block block = expert_gemm::block_of<Tile>(part, {6}, place / parts, 0, 1, k);\n"
      "  Tile tile;\n"
      "  if (part.expert < {6})\n"
      "    tile.run({7}, expert_gemm::StreamedRows<A>{{&A_, part.order, {8}, m, {3}}}, block, n, 0);\n"
      "  else\n"
      "    tile.clear();\n"
      "  gemv::finish<{9}, {10}>(tile, {11}, block, m, n, reinterpret_cast<float*>(dynamic_shared() + {12}));",
      weights.tile_type(tile, weights.reader(tile, "expert_gemm::StreamedRows<A>", form.width, staged), form.width),
      source.number(rows.rows), n, k, source.number(parts), rows.find(source, blocks.parts(), form.ids(), shared),
      rows.experts, weights.argument("part.expert"), source.number(rows.x.strides.back()),
      std::min<int64_t>(sink.vector, gemv::kStreamColumns), tile.blocks.warps, sink.text, staged);
  return source.finish(call, {parts * weights.stream(tile.blocks).blocks() * is_wanted, 1, 1},
                       static_cast<uint32_t>(tile.threads()),
                       static_cast<uint32_t>(shared + rows.shared_bytes(blocks.parts())));
}

// Launches that a run does not need have no blocks.
Result<Emission> emit(const Problem& problem, const ExpertWeightOnly& form, const Config& config) {
  ByRows by = config.as<ByRows>();
  const Expr& rows = form.rows.rows;
  if (const std::optional<int64_t> known = rows.as_constant()) {
    by.most_few = by.chosen == ByRows::Part::few ? *known : 0;
    if (by.chosen == ByRows::Part::many)
      by.many->above = 0;
    else
      by.many.reset();
  }
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}};
  LATHE_TRY(form.weights.pack_into(emission));
  emission.inputs.push_back({StepInput::input, 2});
  add_operand_inputs(problem, emission);
  const Expr are_many = by.many ? are_more(rows, by.many->above) : Expr(0);
  const Expr are_not_few = by.many && by.most_few >= by.many->above ? are_many : are_more(rows, by.most_few);
  const auto add = [&](const Blocks& blocks, const Expr& is_wanted) {
    if (is_wanted == Expr(0)) return;
    form.rows.add_sorting(blocks.parts(), form.ids(), is_wanted, emission);
    emission.launches.push_back(multiplying(problem, form, blocks, is_wanted, emission));
  };
  add(by.few, Expr(1) - are_not_few);
  add(by.more, are_not_few - are_many);
  if (by.many) LATHE_TRY(apart(problem, form).add_launches(by.many->choice, are_many, emission));
  return emission;
}

}  // namespace

Matched match_expert_gemm_weight_only(const Problem& problem) {
  if (!problem.is(OpKind::expert_matmul)) return refuse("not rows by matrices of experts");
  if (auto reason = unsupported_feature(problem, {.pairs = true, .packed_weights = true}))
    return refuse(*std::move(reason));
  RoutedRows rows;
  if (auto reason = describe(problem, rows)) return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  ExpertWeightOnly form{std::move(rows),
                        PackedStream(packed_matrices(problem.inputs[1], problem.attrs<ExpertMatmulAttrs>().transpose_w),
                                     dtype, problem.target)};
  if (form.rows.x.strides.back() == Expr(1)) {
    Shape strides(form.rows.x.strides.begin(), form.rows.x.strides.end() - 1);
    strides.push_back(problem.inputs[0].offset);
    form.width = gemm::copy_width(dtype, strides);
  }
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
