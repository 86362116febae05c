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

using weight_only::are_more;
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

// Tiles of `few` rows, and of more where their number is open; many are multiplied apart.
struct Blocks {
  StreamTile few;
  std::optional<ManyRows> many;
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

// Of all rows, or where their number is open of as many as `many` says, and as are measured.
std::vector<Config> apart_configs(const Problem& problem, const WeightOnly& form, const std::optional<ManyRows>& many) {
  const int64_t few = form.weights.tile_rows(1),
                above = std::min(many ? many->above : form.weights.most_rows(), form.opt_m - 1);
  const StreamTile tile{few, form.weights.configs(problem.target, few)[0].as<StreamBlocks>()};
  std::vector<Config> configs = apart(problem, form).configs(form.opt_m);
  for (Config& each : configs)
    each.choice = Blocks{
        tile, ManyRows{each.as<weight_only::ApartChoice>(), each.text, form.product.m.is_constant() ? 0 : above}};
  return configs;
}

std::vector<Config> configs(const Problem& problem, const WeightOnly& form) {
  const std::optional<ManyRows> many = form.product.m.is_constant() ? std::nullopt : many_rows(problem, form);
  const int64_t rows = form.weights.tile_rows(form.opt_m);
  std::vector<Config> configs = form.weights.configs(problem.target, form.opt_m);
  Config alone = configs[0];  // for a workspace without room for the weights
  alone.choice = Blocks{{rows, alone.as<StreamBlocks>()}, {}};
  for (Config& each : configs) {
    Blocks own{{rows, each.as<StreamBlocks>()}, many};
    if (own.many) {
      own.many->above = std::max(many->above, form.opt_m);
      each.text += fmt::format(", above {} rows {}", own.many->above, many->text);
    }
    each.choice = std::move(own);
  }
  std::ranges::move(apart_configs(problem, form, many), std::back_inserter(configs));
  configs = best_first(std::move(configs));
  alone.predicted_us = configs.back().predicted_us;
  if (many) configs.push_back(std::move(alone));
  return configs;
}

SourceLaunch launch_of(const Problem& problem, const WeightOnly& form, const StreamTile& tile, const Expr& is_wanted,
                       Emission& emission) {
  const PackedStream& weights = form.weights;
  const int64_t n = weights.first().n(), k = weights.first().k();
  const gemm::Product& p = form.product;
  Source source("gemm_weight_only/gemm_weight_only.cuh");
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
                       static_cast<uint32_t>(staged + tile.sums_bytes()));
}

// Where the rows are open there are launches for few, as they are measured, for more, and for many: those that a run
// does not need have no blocks.
Result<Emission> emit(const Problem& problem, const WeightOnly& form, const Config& config) {
  const auto& [few, many] = config.as<Blocks>();
  const PackedStream& weights = form.weights;
  const Expr& m = form.product.m;
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}};
  LATHE_TRY(weights.pack_into(emission));
  add_operand_inputs(problem, emission);
  const StreamTile more{weights.most_rows(), {.warps = 4}};
  const Expr are_many = many ? are_more(m, many->above) : Expr(0);
  const Expr are_some = m.is_constant() || few.rows == more.rows ? are_many : are_more(m, few.rows);
  const auto add = [&](const StreamTile& tile, const Expr& is_wanted) {
    if (is_wanted != Expr(0)) emission.launches.push_back(launch_of(problem, form, tile, is_wanted, emission));
  };
  add(few, Expr(1) - are_some);
  add(more, are_some - are_many);
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
