// SPDX-License-Identifier: Apache-2.0
// Products that normalise their rows as they read them.
#include <gtest/gtest.h>

#include <algorithm>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemv_tactic();
const Tactic& gemm_tactic();
const Tactic& gemm_weight_only_tactic();

namespace {

RmsNormalizationAttrs rms() {
  RmsNormalizationAttrs attrs;
  attrs.axis = -1, attrs.epsilon = 1e-5;
  return attrs;
}

LayerNormalizationAttrs layer() {
  LayerNormalizationAttrs attrs;
  attrs.axis = -1, attrs.epsilon = 1e-5;
  return attrs;
}

// Rows of x times constant weights, x normalised by constant vectors.
struct Product {
  Product(const Attributes& normalization, DType type, Operand x, const Shape& y, const std::vector<int64_t>& symbols,
          int64_t n = 40)
      : weights(small_weights(type, {x.opt_dims.back(), n})),
        vectors{small_weights(type, {x.opt_dims.back()}), small_weights(type, {x.opt_dims.back()})} {
    problem = op_problem(attrs, {std::move(x), operand(type, weights.dims())}, {symbolic_operand(type, y, symbols)});
    problem.inputs[1].constant = problem.inputs[1].weights = &weights;
    problem.symbols = symbols;
    Operand& rows = problem.inputs[0];
    rows.normalization = &normalization;
    for (size_t i = 0; i < (normalization.kind() == OpKind::layer_normalization ? 2U : 1U); ++i) {
      rows.operands.push_back(operand(type, vectors[i].dims()));
      rows.operands[i].constant = rows.operands[i].weights = &vectors[i];
    }
  }

  const MatmulAttrs attrs;
  const Tensor weights;
  const std::vector<Tensor> vectors;
  Problem problem;
};

// With which levels are floats of 16 bits without rounding.
Tensor scales_of(DType type, int64_t columns) {
  Tensor scales = *Tensor::allocate(type, {1, columns});
  std::vector<double> values;
  for (int64_t i = 0; i < columns; ++i) values.push_back(i % 2 == 0 ? 0x1p-6 : 0x1p-7);
  from_doubles(values, scales);
  return scales;
}

// The same by levels with a scale for each column.
struct PackedProduct : Product {
  PackedProduct(const Attributes& normalization, DType type, Operand x, const Shape& y,
                const std::vector<int64_t>& symbols)
      : Product(normalization, type, std::move(x), y, symbols),
        levels(any_levels(weights.dims(), 1)),
        scales(scales_of(type, weights.dims()[1])) {
    problem.inputs[1] = operand(DType::i8, levels.dims());
    problem.inputs[1].constant = problem.inputs[1].weights = &levels;
    put_before(problem, 1, "in=2; r2=mul r0 r1; out r2", {operand(type, scales.dims())});
    Operand& factor = problem.inputs[1].operands[0];
    factor.constant = factor.weights = &scales;
    factor.blocks = {weights.dims()[0], 1};
  }

  const Tensor levels, scales;
};

void check(const Tactic& tactic, const Problem& problem, const Config& config,
           const std::vector<int64_t>& symbols = {}) {
  CheckOptions options;
  options.tolerance = problem.outputs[0].dtype == DType::bf16 ? 1.6e-2 : 2e-3;
  options.symbols = symbols;
  const Result<> result = check_kernel(test_backend(), tactic, problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

size_t launches_of(const Tactic& tactic, const Problem& problem, const Config& config) {
  const Result<Emission> emission = emit(tactic, problem, config);
  EXPECT_TRUE(emission) << emission.error().to_string();
  return emission ? emission->launches.size() : 0;
}

// Of its launches, those that normalise the rows that they multiply.
int normalizing_launches(const Problem& problem, const Config& config) {
  const Result<Emission> emission = emit(gemm_weight_only_tactic(), problem, config);
  EXPECT_TRUE(emission) << emission.error().to_string();
  int count = 0;
  for (const SourceLaunch& each : emission->launches)
    count += each.source.find("gemv::NormalizedRows<") != std::string::npos;
  return count;
}

bool is_apart(const Config& config) { return config.text.ends_with("apart"); }

TEST(CudaNormalizedRows, InOneLaunchOrTwo) {
  const RmsNormalizationAttrs squares = rms();
  const LayerNormalizationAttrs moments = layer();
  for (const Attributes* attrs : {static_cast<const Attributes*>(&squares), static_cast<const Attributes*>(&moments)})
    for (const DType type : {DType::f16, DType::bf16})
      for (const int64_t rows : {1, 3, 16}) {
        const Product product(*attrs, type, operand(type, {rows, 256}), {rows, 40}, {});
        const std::vector<Config> configs = configs_of(gemv_tactic(), product.problem);
        EXPECT_FALSE(std::ranges::all_of(configs, is_apart));
        EXPECT_TRUE(std::ranges::any_of(configs, is_apart));
        for (const Config& config : configs) {
          if (type == DType::bf16 && !config.text.starts_with("warps=4 splits=1")) continue;
          const bool splits = config.text.find("splits=1") == std::string::npos;
          EXPECT_EQ(launches_of(gemv_tactic(), product.problem, config), 1U + is_apart(config) + splits);
          check(gemv_tactic(), product.problem, config);
        }
      }
}

// Rows that end within a vector, or a panel, whose rest is nothing that statistics see.
TEST(CudaNormalizedRows, OfAnyLength) {
  const RmsNormalizationAttrs squares = rms();
  const LayerNormalizationAttrs moments = layer();
  for (const Attributes* attrs : {static_cast<const Attributes*>(&squares), static_cast<const Attributes*>(&moments)})
    for (const int64_t k : {1, 77, 200, 1500}) {
      const int64_t pitch = (k + 7) / 8 * 8;
      const Product product(*attrs, DType::f16, strided_operand(DType::f16, {3, k}, {pitch, 1}), {3, 19}, {}, 19);
      const std::vector<Config> configs = configs_of(gemv_tactic(), product.problem);
      for (const bool apart : {false, true}) {
        const auto config = std::ranges::find(configs, apart, is_apart);
        ASSERT_NE(config, configs.end()) << k;
        check(gemv_tactic(), product.problem, *config);
      }
    }
}

// More rows than are measured are normalised by a launch of their own, whose grid is empty otherwise.
TEST(CudaNormalizedRows, OfOpenNumber) {
  const RmsNormalizationAttrs attrs = rms();
  for (const int64_t rows : {1, 9, 30}) {
    const std::vector<int64_t> measured = {1}, symbols = {rows};
    const Shape dims = {2, Expr::symbol(0), 200};
    const auto at = [&](const std::vector<int64_t>& sizes) {
      return Product(attrs, DType::f16, symbolic_operand(DType::f16, dims, sizes), {2, Expr::symbol(0), 40}, sizes);
    };
    const Product first = at(measured);
    int checked = 0;
    for (const Config& config : configs_of(gemv_tactic(), first.problem)) {
      if (!config.text.starts_with("warps=4 splits=1")) continue;
      EXPECT_EQ(launches_of(gemv_tactic(), first.problem, config), is_apart(config) ? 2U : 3U);
      Product run = at(symbols);
      run.problem.symbols = measured;  // what it is chosen for
      check(gemv_tactic(), run.problem, config, symbols);
      ++checked;
    }
    EXPECT_EQ(checked, 2);
  }
}

TEST(CudaNormalizedRows, ByPackedWeightsInOneLaunchOrTwo) {
  const RmsNormalizationAttrs squares = rms();
  const LayerNormalizationAttrs moments = layer();
  const Tactic& tactic = gemm_weight_only_tactic();
  for (const Attributes* attrs : {static_cast<const Attributes*>(&squares), static_cast<const Attributes*>(&moments)})
    for (const DType type : {DType::f16, DType::bf16})
      for (const int64_t rows : {1, 3, 16, 20}) {
        if (type == DType::bf16 && rows != 3) continue;
        const PackedProduct product(*attrs, type, operand(type, {rows, 208}), {rows, 40}, {});
        int in_one = 0;
        for (const Config& config : configs_of(tactic, product.problem)) {
          if (config.text.starts_with("apart")) continue;  // weights are dequantised before
          const bool is_written = config.text.find("rows apart") != std::string::npos;
          EXPECT_EQ(launches_of(tactic, product.problem, config), is_written ? 2U : 1U) << config.text;
          EXPECT_EQ(normalizing_launches(product.problem, config), is_written ? 0 : 1) << config.text;
          in_one += !is_written;
          if (config.text.find("warps=4") != std::string::npos) check(tactic, product.problem, config);
        }
        EXPECT_EQ(in_one > 0, rows <= 16) << rows;
      }
}

// Tiles of one row and of 8 normalise theirs. More are normalised once, for tiles that read them from the workspace and
// for products of weights that are dequantised.
TEST(CudaNormalizedRows, OfOpenNumberByPackedWeights) {
  const RmsNormalizationAttrs attrs = rms();
  const Tactic& tactic = gemm_weight_only_tactic();
  for (const int64_t rows : {1, 4, 30, 70}) {
    const std::vector<int64_t> measured = {1}, symbols = {rows};
    const Shape dims = {2, Expr::symbol(0), 208};
    const auto at = [&](const std::vector<int64_t>& sizes) {
      return PackedProduct(attrs, DType::f16, symbolic_operand(DType::f16, dims, sizes), {2, Expr::symbol(0), 40},
                           sizes);
    };
    const PackedProduct first = at(measured);
    int in_one = 0, written = 0;
    for (const Config& config : configs_of(tactic, first.problem)) {
      if (!config.text.starts_with("warps=4")) continue;
      const bool is_written = config.text.find("rows apart") != std::string::npos;
      if ((is_written ? written : in_one)++ > 0) continue;
      EXPECT_EQ(normalizing_launches(first.problem, config), is_written ? 0 : 1) << config.text;
      PackedProduct run = at(symbols);
      run.problem.symbols = measured;  // what it is chosen for
      check(tactic, run.problem, config, symbols);
    }
    EXPECT_GT(in_one, 0);
    EXPECT_GT(written, 0);
  }
}

TEST(CudaNormalizedRows, StatesWhyItRefuses) {
  const RmsNormalizationAttrs attrs = rms();
  Product product(attrs, DType::f16, operand(DType::f16, {2, 64}), {2, 40}, {});
  EXPECT_EQ(refusal_of(gemm_tactic(), product.problem).value_or(""), "rows that are normalised as they are read");
  product.problem.inputs[0].operands[0].weights = nullptr;
  EXPECT_EQ(refusal_of(gemv_tactic(), product.problem).value_or(""),
            "rows are normalised by other than a constant vector of their type");
  const Product single(attrs, DType::f32, operand(DType::f32, {2, 64}), {2, 40}, {});
  EXPECT_EQ(refusal_of(gemv_tactic(), single.problem).value_or(""), "normalised rows of type f32");
  const PackedProduct packed(attrs, DType::f32, operand(DType::f32, {2, 64}), {2, 40}, {});
  EXPECT_EQ(refusal_of(gemm_weight_only_tactic(), packed.problem).value_or(""), "normalised rows of type f32");
  const PackedProduct uneven(attrs, DType::f16, operand(DType::f16, {2, 100}), {2, 40}, {});
  EXPECT_EQ(refusal_of(gemm_weight_only_tactic(), uneven.problem).value_or(""),
            "normalised rows do not begin at vectors");
}

}  // namespace
}  // namespace lathe::cuda
