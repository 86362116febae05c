// SPDX-License-Identifier: Apache-2.0
// Packed weights that a launch of their own dequantises, for products of many rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/architecture.h"
#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "ops/rules.h"
#include "tuning/sizes.h"

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

// Problems of an open number of rows, tuned for some.
class CudaApartOpenRows : public testing::TestWithParam<int64_t> {
 protected:
  Problem product(const Weights& weights) const {
    const Dims& dims = weights.levels.dims();
    Problem problem = op_problem(one_, {rows_of(dims[0]), operand(DType::i8, dims)}, {rows_of(dims[1])},
                                 "in=2; r2=add r0 r1; out r2", {operand(DType::f16, {dims[1]})});
    return finished(std::move(problem), weights);
  }

  Problem by_experts(const Weights& weights) const {
    const Dims& dims = weights.levels.dims();
    Problem problem = op_problem(
        by_experts_,
        {rows_of(dims[1]), operand(DType::i8, dims), symbolic_operand(DType::i64, {Expr::symbol(0)}, tuned_for_)},
        {rows_of(dims[2])});
    return finished(std::move(problem), weights);
  }

  // In a configuration that multiplies the optimum apart, and in one that multiplies more apart, so far as there are
  // such; gives how many there are.
  static int check(const Tactic& tactic, const Problem& problem, const std::function<Tensor(int64_t)>& ids) {
    const std::vector<Config> configs = configs_of(tactic, problem);
    int found = 0;
    for (const bool at_optimum : {true, false}) {
      const auto config = std::ranges::find_if(configs, [&](const Config& each) {
        return at_optimum ? is_apart(each) : each.text.find(" rows apart ") != std::string::npos;
      });
      if (config == configs.end()) continue;
      ++found;
      const Expr workspace = emit(tactic, problem, *config)->workspace;
      // Few rows take no memory for the weights, and the bound of all sizes, which an engine sets aside, is near what
      // the most rows take.
      EXPECT_LT(workspace.evaluate(std::array<int64_t, 1>{8}), 1024) << config->text;
      constexpr Range kRows{1, 50'000};
      EXPECT_LE(workspace.range(std::array{kRows}).max, 8 * *workspace.evaluate(std::array{kRows.max})) << config->text;
      for (const int64_t rows : {1, 9, 65, 130, 300}) {
        const std::optional<Problem> at = with_symbols(problem, std::array{rows});
        CheckOptions options;
        options.tolerance = 1e-2;
        options.symbols = {rows};
        if (ids) options.inputs = {Tensor(), *problem.inputs[1].constant, ids(rows)};
        const Result<> checked = check_kernel(test_backend(), tactic, *at, *config, options);
        EXPECT_TRUE(checked) << rows << " rows, " << config->text << ": " << checked.error().to_string();
      }
    }
    return found;
  }

 private:
  Operand rows_of(int64_t size) const { return symbolic_operand(DType::f16, {Expr::symbol(0), size}, tuned_for_); }
  Problem finished(Problem problem, const Weights& weights) const {
    problem.symbols = tuned_for_;
    problem.target.cores = 1, problem.target.launch_us = 0.01;  // so that rows matter beside launches
    pack(problem, weights);
    return problem;
  }

  const MatmulAttrs one_;
  const ExpertMatmulAttrs by_experts_;
  const std::vector<int64_t> tuned_for_ = {GetParam()};
};

TEST_P(CudaApartOpenRows, AreMultipliedByNumber) {
  const Weights weights = weights_of({136, 120}, 1);
  EXPECT_EQ(check(gemm_weight_only_tactic(), product(weights), {}), GetParam() > 8 ? 2 : 1);
}

TEST_P(CudaApartOpenRows, AreMultipliedByExperts) {
  const Weights weights = weights_of({3, 136, 56}, 2);
  const auto ids = [](int64_t rows) {
    Tensor ids = *Tensor::allocate(DType::i64, {rows});
    for (int64_t i = 0; i < rows; ++i) ids.mutable_as<int64_t>()[i] = i * 7 % 5 - 1;
    return ids;
  };
  EXPECT_EQ(check(expert_gemm_weight_only_tactic(), by_experts(weights), ids), GetParam() > 8 ? 2 : 1);
}

INSTANTIATE_TEST_SUITE_P(TunedFor, CudaApartOpenRows, testing::Values(1, 100));

}  // namespace
}  // namespace lathe::cuda
