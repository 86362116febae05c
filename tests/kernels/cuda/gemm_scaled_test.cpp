// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit floats with scales by blocks of K: every tile, and what scales may be like.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/divide.h"
#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda {

const Tactic& gemm_scaled_tactic();

namespace {

using gemm::TileShape;

struct Sizes {
  int64_t m, n, k;
};

// Few multiprocessors: blocks take several tiles, and go round the ring.
Target small_device() {
  Target target = test_target();
  target.cores = 3;
  return target;
}

class GemmScaled : public testing::Test {
 protected:
  // Which of the factors have scales.
  enum Scaled { kBoth, kRows, kColumns };

  Problem product(const Sizes& s, Scaled scaled = kBoth, DType type = DType::f8e4m3fn) const {
    const int64_t blocks = ceil_div(s.k, attrs_.block);
    Problem problem =
        op_problem(attrs_,
                   {operand(type, {s.m, s.k}), operand(type, {s.n, s.k}), operand(DType::f32, {s.m, blocks}),
                    operand(DType::f32, {ceil_div(s.n, attrs_.columns), blocks})},
                   {operand(DType::f32, {s.m, s.n})});
    if (scaled == kRows) problem.inputs.pop_back();
    if (scaled == kColumns) problem.inputs[2] = {}, problem.inputs[2].omitted = true;
    problem.target = small_device();
    return problem;
  }

  // Small integers and powers of two, whose sums are exact.
  static CheckOptions exact(const Problem& problem) {
    CheckOptions options;
    options.tolerance = 0;
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      const Operand& input = problem.inputs[i];
      if (input.omitted)
        options.inputs.emplace_back();
      else
        options.inputs.push_back(i < 2 ? small_weights(input.dtype, input.opt_dims) : powers_of_two(input.opt_dims));
    }
    return options;
  }

  static Tensor powers_of_two(const Dims& dims) {
    Tensor scales = *Tensor::allocate(DType::f32, dims);
    for (int64_t i = 0; i < scales.volume(); ++i)
      scales.mutable_as<float>()[i] = std::ldexp(i % 3 == 1 ? -1.0f : 1.0f, static_cast<int>(i * 7 % 5) - 2);
    return scales;
  }

  void check(const Problem& problem, const Config& config, const CheckOptions& options) {
    const Result<> result = check_kernel(test_backend(), gemm_scaled_tactic(), problem, config, options);
    ++(result ? agree_ : spilled_);
    EXPECT_TRUE(result || spills_registers(result))
        << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
  }
  void TearDown() override { EXPECT_GT(agree_, 0) << "of " << spilled_ << " kernels that spill registers"; }
  void check(const Problem& problem, const Config& config) { check(problem, config, exact(problem)); }

  std::vector<Config> every_config(const Sizes& s, DType type = DType::f8e4m3fn) const {
    gemm::Extent extent;
    extent.dtype = type, extent.output = DType::f32;
    extent.target = test_target();
    extent.copied = attrs_.block % 128 == 0 && s.k % 16 == 0;
    extent.scaled_block = attrs_.block, extent.scaled_columns = attrs_.columns == 1;
    extent.m = s.m, extent.n = s.n, extent.k = s.k;
    return gemm::every_config(extent);
  }

  Config pipeline(int64_t m, int64_t n, int64_t peers, int64_t splits = 1) const {
    TileShape tile{TileShape::pipeline, m, n, 128, 16, n, 1, 4, splits, false, peers};
    tile.scales_bytes = gemm::scales_bytes(n, attrs_.columns == 1);
    return {.text = fmt::format("{}x{} peers={} splits={}", m, n, peers, splits), .predicted_us = 1, .choice = tile};
  }

  ScaledMatmulAttrs attrs_;
  int agree_ = 0, spilled_ = 0;  // kernels
};

// A matrix's rows, columns and K end within a tile and a block.
TEST_F(GemmScaled, EveryTile) {
  for (const int64_t columns : {128, 1}) {
    attrs_.columns = columns;
    const Sizes large = {150, 264, 272}, small = {37, 136, 272};
    int64_t pipelines = 0;
    for (const Config& config : every_config(large)) {
      const auto& tile = config.as<TileShape>();
      if (tile.unit != TileShape::pipeline || tile.splits > 1) continue;
      ++pipelines;
      check(product(large), config);
    }
    EXPECT_GE(pipelines, columns == 1 ? 5 : 7);
    std::set<std::tuple<int64_t, int64_t, int64_t>> seen;  // scales do not ask for more of a tile of mma
    for (const Config& config : every_config(small)) {
      const auto& tile = config.as<TileShape>();
      if (tile.unit == TileShape::tensor_core && tile.splits == 1 &&
          seen.insert({tile.warp_m, tile.warp_n, tile.slices}).second)
        check(product(small), config);
    }
  }
}

TEST_F(GemmScaled, SharedColumnsOfEachTile) {
  for (const int64_t columns : {128, 256, 384}) {
    attrs_.columns = columns;
    check(product({70, 648, 272}), pipeline(128, 192, 1));
  }
}

TEST_F(GemmScaled, OneFactorIsScaled) {
  attrs_.columns = 128;
  for (const Scaled scaled : {kRows, kColumns})
    for (const DType type : {DType::f8e4m3fn, DType::f8e5m2}) {
      const Problem problem = product({70, 200, 272}, scaled, type);
      check(problem, pipeline(64, 64, 1));
      check(problem, configs_of(gemm_scaled_tactic(), product({5, 24, 272}, scaled, type)).front());
    }
}

TEST_F(GemmScaled, SplitsOfK) {
  attrs_.columns = 128;
  const Sizes sizes = {70, 136, 1552};
  for (const int64_t splits : {2, 3}) check(product(sizes), pipeline(128, 128, 1, splits));
  const std::vector<Config> configs = every_config(sizes);
  const auto shares_panels = std::ranges::find_if(configs, [](const Config& config) {
    const auto& tile = config.as<TileShape>();
    return tile.unit == TileShape::tensor_core && tile.splits == 2 && tile.slices == 2;
  });
  ASSERT_NE(shares_panels, configs.end());
  check(product(sizes), *shares_panels);
}

// What one instruction multiplies has its own scales.
TEST_F(GemmScaled, ShortBlocks) {
  for (const int64_t block : {32, 64, 96, 256}) {
    attrs_.block = block;
    const Sizes sizes = {37, 72, 272};
    const std::vector<Config> configs = configs_of(gemm_scaled_tactic(), product(sizes));
    ASSERT_FALSE(configs.empty());
    for (const Config& config : configs)
      if (config.as<TileShape>().splits == 1) check(product(sizes), config);
  }
}

TEST_F(GemmScaled, ConstantWeightsAndAProgramBehind) {
  for (const int64_t columns : {128, 1}) {
    attrs_.columns = columns;
    Problem problem = product({70, 200, 272});
    const CheckOptions contents = exact(problem);
    for (const size_t i : {size_t{1}, size_t{3}})
      problem.inputs[i].constant = problem.inputs[i].weights = &contents.inputs[i];
    problem.operands = {operand(DType::f32, {200})};
    problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
    problem.outputs[0].dtype = DType::f16;
    CheckOptions options;
    options.inputs = contents.inputs;
    for (const Config& config : {pipeline(128, 64, 1), configs_of(gemm_scaled_tactic(), problem).front()})
      check(problem, config, options);
  }
}

TEST_F(GemmScaled, RowsOfSeveralDimensionsAndOpenNumbers) {
  attrs_.columns = 128;
  const Expr rows = Expr::symbol(0);
  const int64_t values[] = {23};
  Problem problem =
      op_problem(attrs_,
                 {symbolic_operand(DType::f8e4m3fn, {3, rows, 272}, values), operand(DType::f8e4m3fn, {72, 272}),
                  symbolic_operand(DType::f32, {3, rows, 3}, values), operand(DType::f32, {1, 3})},
                 {symbolic_operand(DType::f32, {3, rows, 72}, values)});
  problem.symbols = {23};
  problem.target = small_device();
  CheckOptions options = exact(problem);
  options.symbols = {23};
  check(problem, pipeline(64, 64, 1), options);
  for (const Config& config : configs_of(gemm_scaled_tactic(), problem)) check(problem, config, options);
}

class GemmScaledRefusals : public GemmScaled {
 protected:
  void TearDown() override {}  // nothing is run
};

TEST_F(GemmScaledRefusals, Say) {
  const Tactic& tactic = gemm_scaled_tactic();
  EXPECT_EQ(refusal_of(tactic, product({70, 200, 272})), std::nullopt);
  attrs_.block = 16;
  EXPECT_EQ(refusal_of(tactic, product({70, 200, 272})), "blocks of 16, which are no multiple of 32");
  attrs_.block = 128, attrs_.columns = 64;
  EXPECT_EQ(refusal_of(tactic, product({70, 200, 272})), "scales of 64 columns, which are no multiple of 128");
  attrs_.columns = 1;
  Problem other = product({70, 200, 272});
  other.target.limits.float8 = false;
  EXPECT_EQ(refusal_of(tactic, other), "8-bit floats that no matrix units multiply");
}

}  // namespace
}  // namespace lathe::cuda
