// SPDX-License-Identifier: Apache-2.0
// Packed weights that a launch of their own dequantises, for products of many rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/architecture.h"
#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_weight_only_tactic();
const Tactic& expert_gemm_weight_only_tactic();

namespace {

struct Sizes {
  int64_t m, k, n;
};

struct Weights {
  Tensor levels, scales;
};

// One scale for each channel, with which what is dequantised has no more bits than a bf16.
Weights weights_of(Dims dims, uint32_t seed) {
  Weights weights{any_levels(dims, seed), {}};
  dims[dims.size() - 2] = 1;
  weights.scales = *Tensor::allocate(DType::f16, dims);
  std::vector<double> values;
  for (int64_t i = 0; i < weights.scales.volume(); ++i) values.push_back(i % 3 == 0 ? 0x1p-6 : 0x1p-7);
  from_doubles(values, weights.scales);
  return weights;
}

void pack(Problem& problem, const Weights& weights) {
  problem.inputs[1].constant = problem.inputs[1].weights = &weights.levels;
  put_before(problem, 1, "in=2; r2=mul r0 r1; out r2", {operand(DType::f16, weights.scales.dims())});
  Operand& scales = problem.inputs[1].operands[0];
  scales.constant = scales.weights = &weights.scales;
  scales.blocks = Dims(weights.levels.dims().size(), 1);
  scales.blocks[scales.blocks.size() - 2] = weights.levels.dims()[scales.blocks.size() - 2];
}

bool is_apart(const Config& config) { return config.text.starts_with("apart "); }

// In all configurations; gives the units of their tiles.
std::set<std::string> check_apart(const Tactic& tactic, const Problem& problem, CheckOptions options) {
  options.tolerance = 1e-2;
  std::set<std::string> units;
  for (const Config& config : configs_of(tactic, problem)) {
    if (!is_apart(config)) continue;
    units.insert(config.text.substr(6, config.text.find(' ', 6) - 6));
    const Result<> checked = check_kernel(test_backend(), tactic, problem, config, options);
    EXPECT_TRUE(checked) << config.text << ": " << checked.error().to_string();
  }
  EXPECT_FALSE(units.empty()) << to_text(problem);
  return units;
}

// By the tiles of all units, and with what follows.
TEST(CudaApart, ProductsOfManyRows) {
  const MatmulAttrs attrs;
  std::set<std::string> units;
  for (const auto& [m, k, n] : {Sizes{9, 100, 37}, Sizes{70, 200, 136}, Sizes{300, 64, 256}}) {
    const Weights weights = weights_of({k, n}, 1);
    Problem problem =
        op_problem(attrs, {operand(DType::f16, {m, k}), operand(DType::i8, {k, n})}, {operand(DType::f16, {m, n})},
                   "in=2; r2=add r0 r1; out r2", {operand(DType::f16, {n})});
    pack(problem, weights);
    units.merge(check_apart(gemm_weight_only_tactic(), problem, {}));
  }
  EXPECT_TRUE(units.contains("mma"));
  EXPECT_EQ(units.contains("wgmma"), test_target().limits.warpgroups);
}

Problem of_experts(const ExpertMatmulAttrs& attrs, int64_t rows, const Dims& weights) {
  return op_problem(attrs,
                    {operand(DType::f16, {rows, weights[1]}), operand(DType::i8, weights), operand(DType::i64, {rows})},
                    {operand(DType::f16, {rows, weights[2]})});
}

// Some of no expert, and one expert without rows.
TEST(CudaApart, RowsByExperts) {
  const ExpertMatmulAttrs attrs;
  for (const int64_t rows : {50, 300}) {
    const Weights weights = weights_of({4, 72, 40}, 2);
    Problem problem = of_experts(attrs, rows, weights.levels.dims());
    pack(problem, weights);
    Tensor ids = *Tensor::allocate(DType::i64, {rows});
    for (int64_t i = 0; i < rows; ++i) ids.mutable_as<int64_t>()[i] = i * 7 % 5 == 1 ? 4 : i * 7 % 5 - 1;
    CheckOptions options;
    options.inputs = {Tensor(), weights.levels, ids};
    check_apart(expert_gemm_weight_only_tactic(), problem, options);
  }
}

// As measured on an H200: 0.396 ms for 512 tokens of two choices by the kernel of few rows, 0.124 by matrices of f16.
TEST(CudaApart, IsPredictedWhereRowsAreMany) {
  const ExpertMatmulAttrs attrs;
  const Weights weights{*Tensor::allocate(DType::i8, {8, 1024, 3584}), weights_of({8, 1, 3584}, 1).scales};
  const auto best = [&](int64_t rows) {
    Problem problem = of_experts(attrs, rows, weights.levels.dims());
    problem.target = describe(**find_architecture(90));
    pack(problem, weights);
    return configs_of(expert_gemm_weight_only_tactic(), problem);
  };
  EXPECT_TRUE(is_apart(best(1024)[0])) << best(1024)[0].text;
  EXPECT_FALSE(is_apart(best(96)[0])) << best(96)[0].text;
  // Of few rows each matrix is read once, as it is.
  EXPECT_TRUE(std::ranges::none_of(best(64), is_apart));
}

// A run of few rows would write all of the weights, too.
TEST(CudaApart, IsNotForOpenRows) {
  const std::vector<int64_t> symbols = {1024};
  const Expr rows = Expr::symbol(0);
  const ExpertMatmulAttrs by_experts;
  const MatmulAttrs by_one;
  const auto offered = [&](const Tactic& tactic, const Attributes& attrs, std::vector<Operand> others, Dims dims) {
    const Weights weights = weights_of(dims, 1);
    others.insert(others.begin() + 1, operand(DType::i8, dims));
    Problem problem =
        op_problem(attrs, std::move(others), {symbolic_operand(DType::f16, {rows, dims.back()}, symbols)});
    problem.symbols = symbols;
    pack(problem, weights);
    const std::vector<Config> configs = configs_of(tactic, problem);
    return configs.empty() || std::ranges::any_of(configs, is_apart);
  };
  const Operand x = symbolic_operand(DType::f16, {rows, 64}, symbols),
                ids = symbolic_operand(DType::i64, {rows}, symbols);
  EXPECT_FALSE(offered(gemm_weight_only_tactic(), by_one, {x}, {64, 32}));
  EXPECT_FALSE(offered(expert_gemm_weight_only_tactic(), by_experts, {x, ids}, {4, 64, 32}));
}

}  // namespace
}  // namespace lathe::cuda
