// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_weight_only_tactic();

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

}  // namespace
}  // namespace lathe::cuda
