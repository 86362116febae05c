// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_weight_only_tactic();
const Tactic& expert_gemm_weight_only_tactic();

namespace {

// With which what is dequantised is a bf16 without rounding.
Tensor scales_of(int64_t columns) {
  Tensor scales = *Tensor::allocate(DType::bf16, {1, columns});
  std::vector<double> values;
  for (int64_t i = 0; i < columns; ++i) values.push_back(i % 2 == 0 ? 0x1p-6 : 0x1p-7);
  from_doubles(values, scales);
  return scales;
}

// Where matrix units have no bf16, scalar units multiply.
TEST(CudaWeightOnly, TypesThatMatrixUnitsHaveNot) {
  const Tensor levels = any_levels({100, 24}, 1), scales = scales_of(24);
  const MatmulAttrs attrs;
  Problem problem = op_problem(attrs, {operand(DType::bf16, {3, 100}), operand(DType::i8, {100, 24})},
                               {operand(DType::bf16, {3, 24})});
  problem.inputs[1].constant = problem.inputs[1].weights = &levels;
  put_before(problem, 1, "in=2; r2=mul r0 r1; out r2", {operand(DType::bf16, {1, 24})});
  problem.inputs[1].operands[0].constant = problem.inputs[1].operands[0].weights = &scales;
  problem.inputs[1].operands[0].blocks = {100, 1};
  CheckOptions options;
  options.tolerance = 1e-2;
  for (const bool has_units : {true, false}) {
    problem.target.limits.bfloat16 = has_units;
    const Config config = configs_of(gemm_weight_only_tactic(), problem).front();
    const Result<Emission> emission = emit(gemm_weight_only_tactic(), problem, config);
    ASSERT_TRUE(emission) << emission.error().to_string();
    EXPECT_EQ(emission->launches[0].source.find("ScalarTile") == std::string::npos, has_units);
    const Result<> checked = check_kernel(test_backend(), gemm_weight_only_tactic(), problem, config, options);
    EXPECT_TRUE(checked) << checked.error().to_string();
  }
}

Tensor f16_scales_of(Dims dims) {
  Tensor scales = *Tensor::allocate(DType::f16, std::move(dims));
  std::vector<double> values;
  for (int64_t i = 0; i < scales.volume(); ++i) values.push_back(0x1p-9 * static_cast<double>(3 + i * 7 % 11));
  from_doubles(values, scales);
  return scales;
}

// Weights [.., k, n] with a scale for each column.
void pack(Problem& problem, const Tensor& levels, const Tensor& scales) {
  problem.inputs[1].constant = problem.inputs[1].weights = &levels;
  put_before(problem, 1, "in=2; r2=mul r0 r1; out r2", {operand(DType::f16, scales.dims())});
  Operand& factor = problem.inputs[1].operands[0];
  factor.constant = factor.weights = &scales;
  factor.blocks = Dims(levels.dims().size(), 1);
  factor.blocks[levels.dims().size() - 2] = levels.dims()[levels.dims().size() - 2];
}

void check_one_row(const Tactic& tactic, const Problem& problem, const CheckOptions& options) {
  int found = 0;
  for (const Config& config : configs_of(tactic, problem)) {
    if (!config.text.starts_with("one row ")) continue;
    ++found;
    const Result<> checked = check_kernel(test_backend(), tactic, problem, config, options);
    EXPECT_TRUE(checked) << config.text << ", " << to_text(problem) << ": " << checked.error().to_string();
  }
  EXPECT_GT(found, 0) << to_text(problem);
}

// A row by itself is multiplied by the levels as they are: what is left are the roundings of the result. Warps with one
// panel, some, and more than they hold; a width that ends within a panel; a row whose elements lie apart.
TEST(CudaWeightOnly, OneRow) {
  const MatmulAttrs attrs;
  for (const auto& [k, n, stride] :
       {std::array<int64_t, 3>{64, 16, 1}, {100, 37, 1}, {1120, 40, 1}, {1100, 24, 1}, {192, 40, 2}}) {
    const Tensor levels = any_levels({k, n}, 1), scales = f16_scales_of({1, n});
    Problem problem =
        op_problem(attrs, {strided_operand(DType::f16, {1, k}, {k * stride, stride}), operand(DType::i8, {k, n})},
                   {operand(DType::f16, {1, n})});
    pack(problem, levels, scales);
    check_one_row(gemm_weight_only_tactic(), problem, {});
  }
}

// A thread of a row's tile has no more registers than leave room for the blocks that a multiprocessor gets: up to 16
// warps of them.
TEST(CudaWeightOnly, RegistersOfOneRow) {
  const Tensor levels = any_levels({256, 128}, 1), scales = f16_scales_of({1, 128});
  const MatmulAttrs attrs;
  Problem problem = op_problem(attrs, {operand(DType::f16, {1, 256}), operand(DType::i8, {256, 128})},
                               {operand(DType::f16, {1, 128})});
  pack(problem, levels, scales);
  constexpr std::string_view kName = "one row warps=";
  int found = 0;
  for (const int cores : {1, 2, 4, 8}) {
    problem.target.cores = cores;
    for (const Config& config : configs_of(gemm_weight_only_tactic(), problem)) {
      if (!config.text.starts_with(kName) || config.text.find("slices") != config.text.npos) continue;
      const int warps = std::stoi(config.text.substr(kName.size())), blocks = std::clamp(8 / cores, 1, 16 / warps);
      const Result<Emission> emission = emit(gemm_weight_only_tactic(), problem, config);
      ASSERT_TRUE(emission) << emission.error().to_string();
      const std::string& text = emission->launches[0].source;
      EXPECT_NE(text.find(fmt::format("LATHE_KERNEL({}, {})", 32 * warps, blocks)), std::string::npos) << cores << text;
      ++found;
    }
  }
  EXPECT_GT(found, 2);
}

// Many slices of a long K: as many warps as hold all panels, however many that are in all. Where they are more, turns
// are short enough for the registers that a thread has.
TEST(CudaWeightOnly, BlocksOfOneRow) {
  const MatmulAttrs attrs;
  for (const int64_t k : {4096, 14336}) {
    const Tensor levels = any_levels({k, 160}, 1), scales = f16_scales_of({1, 160});
    Problem problem =
        op_problem(attrs, {operand(DType::f16, {1, k}), operand(DType::i8, {k, 160})}, {operand(DType::f16, {1, 160})});
    pack(problem, levels, scales);
    problem.target.cores = k == 4096 ? 1 : 5;
    const std::vector<Config> configs = configs_of(gemm_weight_only_tactic(), problem);
    EXPECT_EQ(configs.front().text, "one row warps=8") << k;
  }
}

// Rows of one expert, and of none, among them.
TEST(CudaWeightOnly, OneRowOfAnExpert) {
  const ExpertMatmulAttrs attrs;
  const Tensor levels = any_levels({5, 200, 40}, 1), scales = f16_scales_of({5, 1, 40});
  for (const int64_t rows : {1, 5}) {
    Problem problem = op_problem(
        attrs, {operand(DType::f16, {rows, 200}), operand(DType::i8, {5, 200, 40}), operand(DType::i64, {rows})},
        {operand(DType::f16, {rows, 40})});
    pack(problem, levels, scales);
    CheckOptions options;
    options.inputs = {Tensor(), levels, *Tensor::allocate(DType::i64, {rows})};
    for (int64_t i = 0; i < rows; ++i) options.inputs[2].mutable_as<int64_t>()[i] = (i + 3) % 6 - i / 4;
    check_one_row(expert_gemm_weight_only_tactic(), problem, options);
  }
}

}  // namespace
}  // namespace lathe::cuda
