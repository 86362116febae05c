// SPDX-License-Identifier: Apache-2.0
// Products whose panels the copy engine brings: every tile, and all that may surround it.
#include <gtest/gtest.h>

#include <set>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();

namespace {

using gemm::Major;
using gemm::TileShape;

// Few multiprocessors: blocks take several tiles, and go round the ring.
Target small_device() {
  Target target = test_target();
  target.cores = 3;
  return target;
}

class GemmPipeline : public testing::Test {
 protected:
  // Of a problem of that type and those majors, with so many splits of K at the most.
  static std::vector<Config> pipelines(DType type, Major a, Major b, int64_t most_splits = 1) {
    gemm::Extent extent;
    extent.dtype = extent.output = type;
    extent.major_a = a, extent.major_b = b;
    extent.copied = true;
    extent.target = test_target();
    extent.m = 200, extent.n = 264, extent.k = 1160;
    std::vector<Config> found;
    for (const Config& config : gemm::every_config(extent)) {
      const auto& tile = config.as<TileShape>();
      if (tile.unit == TileShape::pipeline && tile.splits <= most_splits) found.push_back(config);
    }
    return found;
  }

  static Config config_of(int64_t m, int64_t n, int64_t peers, int64_t splits = 1, DType type = DType::f16) {
    const bool wide = n > 192;
    return {.text = fmt::format("{}x{} peers={} splits={}", m, n, peers, splits),
            .predicted_us = 1,
            .choice = TileShape{TileShape::pipeline, m, n, 128 / static_cast<int64_t>(size_of(type)), 16, n, 1,
                                wide ? 3 : 4, splits, false, peers}};
  }
  // Whose groups have tiles of their own.
  static Config turns_of(int64_t m, int64_t n, int64_t peers, int64_t splits = 1, DType type = DType::f16) {
    auto tile = config_of(m, n, peers, splits, type).as<TileShape>();
    tile.warp_m = m / 4, tile.turns = true;
    return {.text = fmt::format("{}x{} peers={} splits={} turns", m, n, peers, splits), .choice = tile};
  }

  static void check(Problem problem, const Config& config, CheckOptions options = {}) {
    problem.target = small_device();
    const Result<> result = check_kernel(test_backend(), gemm_tactic(), problem, config, options);
    EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
  }

  // Small integers are exact in every type, and so are their sums.
  static CheckOptions exact(const Problem& problem) {
    CheckOptions options;
    options.tolerance = 0;
    for (size_t i = 0; i < 2; ++i)
      options.inputs.push_back(small_weights(problem.inputs[i].dtype, problem.inputs[i].opt_dims));
    return options;
  }

  static Problem product(const MatmulAttrs& attrs, DType type, int64_t m, int64_t n, int64_t k) {
    Problem problem = op_problem(attrs,
                                 {operand(type, attrs.transpose_a ? Dims{k, m} : Dims{m, k}),
                                  operand(type, attrs.transpose_b ? Dims{n, k} : Dims{k, n})},
                                 {operand(DType::f32, {m, n})});
    problem.tf32 = type == DType::f32;
    return problem;
  }

  // Whether any configuration that the tactic offers is one, of a large product.
  static bool is_offered(const Problem& problem) {
    for (const Config& config : configs_of(gemm_tactic(), problem))
      if (config.as<TileShape>().unit == TileShape::pipeline) return true;
    return false;
  }
};

TEST_F(GemmPipeline, EveryTileInEveryType) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (DType type : {DType::f16, DType::bf16, DType::f32, DType::i8, DType::f8e4m3fn, DType::f8e5m2}) {
    const std::vector<Config> configs = pipelines(type, Major::k, Major::k);
    EXPECT_GE(configs.size(), 8u);
    const Problem problem = product(attrs, type, 200, 264, size_of(type) == 1 ? 272 : 136);
    for (const Config& config : configs)
      if (type != DType::f8e5m2 || config.as<TileShape>().n <= 128) check(problem, config, exact(problem));
  }
}

TEST_F(GemmPipeline, EitherMajorOrder) {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      MatmulAttrs attrs;
      attrs.transpose_a = a, attrs.transpose_b = !b;
      const Problem problem = product(attrs, DType::f16, 200, 264, 136);
      for (const Config& config : pipelines(DType::f16, a ? Major::mn : Major::k, b ? Major::mn : Major::k))
        check(problem, config, exact(problem));
    }
}

// Rings that hold all of K, and such as it goes round once more, or has fewer panels than.
TEST_F(GemmPipeline, RingsOfManyStages) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  std::set<int64_t> depths;
  for (const Config& config : pipelines(DType::f16, Major::k, Major::k)) {
    const int64_t stages = config.as<TileShape>().stages, k = 64 * stages;
    if (stages > 8 && depths.insert(stages).second)
      for (const int64_t each : {k, k + 8, k - 8, int64_t{192}})
        check(product(attrs, DType::f16, 72, 72, each), config, exact(product(attrs, DType::f16, 72, 72, each)));
  }
  EXPECT_GE(depths.size(), 2u);
}

TEST_F(GemmPipeline, SplitsAddUp) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  Problem problem = product(attrs, DType::f16, 72, 136, 1160);
  problem.operands = {operand(DType::f32, {136})};
  problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
  CheckOptions options;
  options.tolerance = 1e-4;  // of sums of a thousand products
  for (int64_t peers : {1, 2}) {
    check(problem, config_of(128, 128, peers, 3), options);
    check(problem, turns_of(128, 128, peers, 3), options);
  }
}

TEST_F(GemmPipeline, ProgramsRunOnTheSums) {
  const MatmulAttrs attrs;
  const Tensor w = small_weights(DType::f16, {72, 136});
  for (const char* text : {"in=4; r4=add r0 r1; r5=silu r4; r6=fma r5 r3 r2; out r6",
                           "in=4; r4=add r0 r1; r5=silu r4; r6=fma r5 r3 r2; r7=tanh r6; r8=mul r7 r0; r9=add r8 r2; "
                           "r10=relu r9; r11=sub r10 r1; out r11"}) {
    Problem problem = op_problem(attrs, {operand(DType::f16, {2, 100, 72}), operand(DType::f16, {72, 136})},
                                 {operand(DType::f16, {2, 100, 136})});
    problem.operands = {operand(DType::f16, {136}), operand(DType::f16, {2, 100, 136}), operand(DType::f32, {2, 1, 1})};
    problem.program = *parse_program(text);
    CheckOptions options;
    options.tolerance = 8e-3;
    check(problem, config_of(128, 128, 2), options);
    check(problem, turns_of(128, 128, 2), options);
    problem.inputs[1].constant = problem.inputs[1].weights = &w;
    check(problem, config_of(128, 64, 1), options);
    check(problem, turns_of(64, 128, 1), options);
  }
}

// Levels over their whole range, of which others are made, with a residual; each vector may be cut short.
TEST_F(GemmPipeline, IntegersAreRequantized) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (int64_t n : {144, 100})
    for (int64_t splits : {1, 3}) {
      const int64_t m = 70, k = splits == 1 ? 272 : 1552;
      Problem problem = product(attrs, DType::i8, m, n, k);
      problem.operands = {operand(DType::f32, {n}), operand(DType::i8, {m, n})};
      problem.program = *parse_program(
          "in=3; r3=mul r0 r1; r4=affine r2 0.5 -0; r5=add r3 r4; r6=relu r5; r7=constant 0.75; r8=div r6 r7; "
          "r9=round r8; r10=affine r9 1 -128; r11=clip r10 -128 127; out r11");
      problem.outputs[0].dtype = DType::i8;
      CheckOptions options;
      options.inputs = {any_levels({m, k}, 7), any_levels({n, k}, 8)};
      options.operands = {small_scales({n})};
      check(problem, config_of(128, 128, 2, splits, DType::i8), options);
      check(problem, config_of(64, 64, 1, splits, DType::i8), options);
      check(problem, turns_of(64, 128, 1, splits, DType::i8), options);
    }
}

// The same of 8-bit floats: what is beyond their range becomes their largest number.
TEST_F(GemmPipeline, FloatsAreRequantized) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (const DType type : {DType::f8e4m3fn, DType::f8e5m2})
    for (int64_t splits : {1, 3}) {
      const int64_t m = 70, n = 144, k = splits == 1 ? 272 : 1552;
      Problem problem = product(attrs, type, m, n, k);
      problem.operands = {operand(DType::f32, {n}), operand(type, {m, n})};
      problem.program = *parse_program(
          fmt::format("in=3; r3=mul r0 r1; r4=affine r2 0.5 -0; r5=add r3 r4; r6=constant 0.00390625; r7=div r5 r6; "
                      "r8=round_{} r7; out r8",
                      type == DType::f8e4m3fn ? "e4m3" : "e5m2"));
      problem.outputs[0].dtype = type;
      CheckOptions options = exact(problem);
      options.operands = {small_scales({n})};
      check(problem, config_of(128, 256, 2, splits, type), options);
      check(problem, config_of(64, 64, 1, splits, type), options);
    }
  // Finished while the matrix units multiply the next tile's first panel.
  Problem problem = product(attrs, DType::f8e4m3fn, 270, 520, 272);
  problem.program = *parse_program("in=1; r1=affine r0 16 -0; r2=round_e4m3 r1; out r2");
  problem.outputs[0].dtype = DType::f8e4m3fn;
  for (const int64_t n : {256, 128}) check(problem, config_of(128, n, 1, 1, DType::f8e4m3fn), exact(problem));
}

// Rows whose length is no multiple of what a thread writes at once.
TEST_F(GemmPipeline, ColumnsNeedNotFillVectors) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (int64_t n : {100, 66, 33})
    for (DType type : {DType::f16, DType::f32, DType::i8}) {
      Problem problem = product(attrs, DType::f16, 70, n, 64);
      problem.outputs[0].dtype = type;
      if (type == DType::i8) problem.program = *parse_program("in=1; r1=affine r0 0.25 -0; r2=round r1; out r2");
      check(problem, config_of(64, 64, 1), exact(problem));
      check(problem, turns_of(128, 64, 1), exact(problem));
    }
}

// Rows that begin where no vector is aligned are written along rows.
TEST_F(GemmPipeline, RowsMayBeginAnywhere) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (const auto& [n, type] : {std::pair(int64_t{263}, DType::f16), {262, DType::f16}, {263, DType::f32}}) {
    Problem problem = product(attrs, DType::f16, 140, n, 64);
    problem.outputs[0].dtype = type;
    problem.operands = {operand(DType::f16, {n})};
    problem.program = *parse_program("in=2; r2=add r0 r1; out r2");
    int checked = 0;
    for (Config config : pipelines(DType::f16, Major::k, Major::k)) {
      auto tile = config.as<TileShape>();
      if (tile.n != 128 || (n == 262 && tile.turns)) continue;
      tile.by_rows = true, tile.stages = 3;
      config.choice = tile;
      CheckOptions options = exact(problem);
      options.operands = {small_weights(DType::f16, {n})};
      check(problem, config, options);
      ++checked;
    }
    EXPECT_GE(checked, 3);
  }
  EXPECT_TRUE(configs_of(gemm_tactic(), product(attrs, DType::f16, 512, 50257, 768))[0].as<TileShape>().by_rows);
  EXPECT_FALSE(configs_of(gemm_tactic(), product(attrs, DType::f16, 512, 50256, 768))[0].as<TileShape>().by_rows);
}

// Columns of B that come in the order in which a thread's sums are of neighbours; the last tile reaches beyond the last
// of them.
TEST_F(GemmPipeline, ThreadsHaveNeighbouringColumns) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  const auto results = [&](DType type, DType result, int64_t n) {
    Problem problem = product(attrs, type, 140, n, size_of(type) == 1 ? 272 : 136);
    problem.outputs[0].dtype = result;
    problem.operands = {operand(result, {n}), operand(result, {140, n})};
    problem.program = *parse_program("in=3; r3=add r0 r1; r4=add r3 r2; out r4");
    return problem;
  };
  for (const auto& [type, result] : {std::pair(DType::f16, DType::f16),
                                     {DType::bf16, DType::bf16},
                                     {DType::i8, DType::f16},
                                     {DType::f8e4m3fn, DType::f16}}) {
    const Problem problem = results(type, result, 288);
    CheckOptions options = exact(problem);
    for (const Operand& each : problem.operands) options.operands.push_back(small_weights(result, each.opt_dims));
    int checked = 0;
    for (Config config : pipelines(type, Major::k, Major::k)) {
      auto tile = config.as<TileShape>();
      if (tile.n / tile.peers % gemm::neighbour_group(8) != 0) continue;
      if (type != DType::f16 && (tile.n != 128 || tile.peers != 2 || tile.turns)) continue;
      tile.neighbours = 8;
      config.choice = tile;
      check(problem, config, options);
      ++checked;
    }
    EXPECT_GE(checked, type == DType::f16 ? 12 : 1) << name_of(type);
  }
  const auto has_neighbours = [&](const Problem& problem) {
    const auto all = configs_of(gemm_tactic(), problem);
    return std::ranges::any_of(all, [](const Config& config) { return config.as<TileShape>().neighbours > 0; });
  };
  EXPECT_TRUE(has_neighbours(results(DType::f16, DType::f16, 4096)));
  EXPECT_FALSE(has_neighbours(results(DType::f16, DType::f16, 4104)));
  EXPECT_FALSE(has_neighbours(results(DType::f16, DType::f32, 4096)));  // of four columns each
  attrs.transpose_b = false;
  EXPECT_FALSE(has_neighbours(results(DType::f16, DType::f16, 4096)));  // B along N
}

TEST_F(GemmPipeline, BatchesBroadcast) {
  const MatmulAttrs attrs;
  const auto batched = [&](Dims a, Dims b, Dims c) {
    const Problem problem = op_problem(attrs, {operand(DType::f16, std::move(a)), operand(DType::f16, std::move(b))},
                                       {operand(DType::f32, std::move(c))});
    check(problem, config_of(64, 64, 1), exact(problem));
    check(problem, config_of(128, 128, 2), exact(problem));
    check(problem, turns_of(64, 64, 1), exact(problem));
  };
  batched({2, 3, 72, 80}, {2, 3, 80, 72}, {2, 3, 72, 72});
  batched({2, 1, 72, 80}, {3, 80, 72}, {2, 3, 72, 72});
  batched({72, 80}, {3, 80, 72}, {3, 72, 72});
  batched({2, 1, 2, 72, 80}, {2, 3, 1, 80, 72}, {2, 3, 2, 72, 72});
}

TEST_F(GemmPipeline, SizesMayBeSymbolic) {
  const MatmulAttrs attrs;
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  for (const std::vector<int64_t>& symbols : {std::vector<int64_t>{3, 70}, {1, 1}}) {
    const Problem rows =
        op_problem(attrs, {symbolic_operand(DType::f16, {batch, length, 72}, symbols), operand(DType::f16, {72, 136})},
                   {symbolic_operand(DType::f32, {batch, length, 136}, symbols)});
    CheckOptions options = exact(rows);
    options.symbols = symbols;
    check(rows, config_of(128, 128, 2), options);
    check(rows, turns_of(128, 128, 2), options);
  }
  // Both a batch and K that change: rows of K are aligned nonetheless.
  const std::vector<int64_t> symbols = {2, 5};
  const Problem inner = op_problem(attrs,
                                   {symbolic_operand(DType::f16, {batch, 40, length * 8}, symbols),
                                    symbolic_operand(DType::f16, {batch, length * 8, 64}, symbols)},
                                   {symbolic_operand(DType::f32, {batch, 40, 64}, symbols)});
  CheckOptions options = exact(inner);
  options.symbols = symbols;
  check(inner, config_of(64, 64, 1), options);
}

TEST_F(GemmPipeline, HeadsAreWrittenWhereTheyBelong) {
  constexpr int64_t kRows = 37, kHeads = 3, kWidth = 24;
  const MatmulAttrs attrs;
  Operand output =
      strided_operand(DType::f16, {2, kRows, kHeads, kWidth}, {kHeads * kRows * kWidth, kWidth, kRows * kWidth, 1});
  output.reassociation = {1, 1, 2};
  const Problem problem =
      op_problem(attrs, {operand(DType::f16, {2, kRows, 40}), operand(DType::f16, {40, kHeads * kWidth})}, {output});
  CheckOptions options;
  options.tolerance = 4e-3;
  check(problem, config_of(64, 64, 1), options);
}

// What follows the sums of a tile is overlapped with the products of the next one where it takes long.
TEST_F(GemmPipeline, TurnsWhereFinishingTakesLong) {
  const auto takes_turns = [](int64_t functions) {
    gemm::Extent extent;
    extent.dtype = extent.output = DType::f16;
    extent.copied = true;
    extent.target = test_target();
    extent.functions = functions;
    extent.m = 12288, extent.n = 4096, extent.k = 1024;
    return gemm::configs(extent).front().as<TileShape>().turns;
  };
  EXPECT_TRUE(takes_turns(1));
  EXPECT_TRUE(takes_turns(2));
}

// What follows the sums runs behind the next tile's begin: the widest tiles pay for few operands and instructions
// alone.
TEST_F(GemmPipeline, RunsAheadWhereRegistersAllow) {
  gemm::Extent extent;
  const auto ahead = [&](int64_t n, int64_t operands, int64_t instructions = 4) {
    extent.operands = operands, extent.instructions = instructions;
    return gemm::runs_ahead(config_of(128, n, 1).as<TileShape>(), extent);
  };
  EXPECT_FALSE(ahead(128, 0));  // whose sums are those of the matrix units
  extent.dtype = DType::f8e4m3fn;
  EXPECT_TRUE(ahead(256, 0));
  EXPECT_FALSE(ahead(256, 1));
  EXPECT_TRUE(ahead(192, 1));
  EXPECT_FALSE(ahead(192, 0, 9));
  EXPECT_TRUE(ahead(128, 2, 9));
  EXPECT_FALSE(gemm::runs_ahead(config_of(128, 128, 1, 2).as<TileShape>(), extent));
}

TEST_F(GemmPipeline, WhatTheCopyEngineCannotRead) {
  MatmulAttrs attrs;
  EXPECT_TRUE(is_offered(product(attrs, DType::f16, 2048, 2048, 2048)));
  EXPECT_FALSE(is_offered(product(attrs, DType::f32, 2048, 2048, 2048)));  // f32 whose rows do not run along K
  EXPECT_FALSE(is_offered(product(attrs, DType::f16, 2048, 2048, 2052)));  // rows at no multiple of 16 bytes
  attrs.transpose_b = true;
  EXPECT_TRUE(is_offered(product(attrs, DType::f32, 2048, 2048, 2048)));
  Problem problem = product(attrs, DType::f32, 2048, 2048, 2048);
  problem.tf32 = false;
  EXPECT_FALSE(is_offered(problem));
  EXPECT_TRUE(is_offered(product(attrs, DType::i8, 2048, 2048, 2048)));
  attrs.transpose_b = false;
  EXPECT_FALSE(is_offered(product(attrs, DType::i8, 2048, 2048, 2048)));  // bytes whose rows do not run along K
  problem = product(attrs, DType::f16, 2048, 2048, 2048);
  problem.outputs[0] = strided_operand(DType::f16, {2048, 2048}, {1, 2048});
  EXPECT_FALSE(is_offered(problem));
  problem = product(attrs, DType::f16, 2048, 2048, 2048);
  problem.target.limits.warpgroups = false;
  EXPECT_FALSE(is_offered(problem));
}

}  // namespace
}  // namespace lathe::cuda
