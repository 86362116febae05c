// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "tuning/trial.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();
const Tactic& gemv_tactic();

namespace {

Problem product(const MatmulAttrs& attrs, Dims a, const Tensor& b, Dims c) {
  Problem problem = op_problem(attrs, {operand(b.dtype(), std::move(a)), operand(b.dtype(), b.dims())},
                               {operand(b.dtype(), std::move(c))});
  problem.inputs[1].constant = problem.inputs[1].weights = &b;
  return problem;
}

void check(const Problem& problem, const Config& config) {
  CheckOptions options;
  options.tolerance = problem.outputs[0].dtype == DType::bf16 ? 1.6e-2 : 2e-3;
  const Result<> result = check_kernel(test_backend(), gemv_tactic(), problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

void check_first(const Problem& problem) {
  const std::optional<std::string> refusal = refusal_of(gemv_tactic(), problem);
  ASSERT_FALSE(refusal) << *refusal;
  check(problem, configs_of(gemv_tactic(), problem).front());
}

TEST(CudaGemv, VectorsAndStridedOutputs) {
  const MatmulAttrs attrs;
  const Tensor b = small_weights(DType::f16, {64, 24});
  check_first(product(attrs, {64}, b, {24}));
  Problem problem = product(attrs, {3, 64}, b, {3, 24});
  problem.outputs[0] = strided_operand(DType::f16, {3, 24}, {1, 3});
  check_first(problem);
}

TEST(CudaGemv, ConvolutionsOfFewPixels) {
  const ConvolutionAttrs attrs;
  for (DType type : {DType::f16, DType::f32}) {
    const Tensor w = small_weights(type, {24, 40, 1, 1});
    check_first(convolution_problem(attrs, operand(type, {1, 40, 1, 1}), w));
    check_first(convolution_problem(attrs, operand(type, {2, 40, 2, 1}, Layout::channels_last), w));
    Problem fused = convolution_problem(attrs, operand(type, {2, 40, 1, 1}), w);
    fused.operands = {operand(type, {24, 1, 1}), operand(type, {2, 24, 1, 1})};
    fused.program = *parse_program("in=3; r3=add r0 r1; r4=sigmoid r3; r5=mul r4 r2; out r5");
    for (const Config& config : configs_of(gemv_tactic(), fused)) check(fused, config);
  }
  const Tensor w = small_weights(DType::f16, {24, 40, 1, 1});
  EXPECT_EQ(refusal_of(gemv_tactic(), convolution_problem(attrs, operand(DType::f16, {2, 40, 1, 2}), w)).value_or(""),
            "the elements of a row are not neighbours");
  const Tensor taps = small_weights(DType::f16, {24, 40, 3, 1});
  EXPECT_EQ(
      refusal_of(gemv_tactic(), convolution_problem(attrs, operand(DType::f16, {1, 40, 3, 1}), taps)).value_or(""),
      "more than one tap, groups or strides");
}

TEST(CudaGemv, RowsThatEndWithinAVector) {
  const MatmulAttrs attrs;
  for (DType type : {DType::f16, DType::bf16, DType::f32})
    for (int64_t k : {1, 6, 10, 77}) {
      const Tensor b = small_weights(type, {k, 19});
      check_first(product(attrs, {1, k}, b, {1, 19}));
      Problem padded = product(attrs, {3, k}, b, {3, 19});
      padded.inputs[0] = strided_operand(type, {3, k}, {80, 1});
      check_first(padded);
    }
}

// Rows lie in shared memory where they fit.
TEST(CudaGemv, ManyPanels) {
  const MatmulAttrs attrs;
  const Tensor b = small_weights(DType::f16, {1500, 19});
  for (const int64_t rows : {3, 16}) {
    Problem problem = product(attrs, {rows, 1504}, b, {rows, 19});
    problem.inputs[0] = strided_operand(DType::f16, {rows, 1500}, {1504, 1});
    problem.target.limits = {.cluster = 8};
    const std::vector<Config> configs = configs_of(gemv_tactic(), problem);
    const auto config =
        std::ranges::find_if(configs, [](const Config& each) { return each.text == "warps=4 splits=1"; });
    ASSERT_NE(config, configs.end());
    const Result<Emission> emission = emit(gemv_tactic(), problem, *config);
    ASSERT_TRUE(emission) << emission.error().to_string();
    const std::string& text = emission->launches[0].source;
    EXPECT_EQ(text.find("SharedRows") != std::string::npos, rows == 3);
    check(problem, *config);
  }
}

// Rows that do not fill tiles, by weights that no cache holds: where nothing is measured, they are not multiplied by
// tiles.
TEST(CudaGemv, IsExpectedToBeFasterThanTiles) {
  const MatmulAttrs attrs;
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{14336, 4096}, {4096, 28672}}) {
    const Tensor b = *Tensor::allocate(DType::f16, {k, n});
    for (const int64_t rows : {1, 8}) {
      const Problem problem = product(attrs, {rows, k}, b, {rows, n});
      EXPECT_LT(configs_of(gemv_tactic(), problem)[0].predicted_us, configs_of(gemm_tactic(), problem)[0].predicted_us)
          << rows << " x " << k << " x " << n;
    }
  }
}

// Runs that are measured read copies of weights in turns, where they are to come from memory.
TEST(CudaGemv, TrialsOfWeightsInTurns) {
  const MatmulAttrs attrs;
  const Tensor b = small_weights(DType::f16, {1024, 520});
  const Problem problem = product(attrs, {1, 1024}, b, {1, 520});
  Device& device = test_backend().device;
  const auto queue = device.make_queue();
  ASSERT_TRUE(queue);
  const auto data = TrialData::make(problem, TrialData::Use::check, device, **queue);
  ASSERT_TRUE(data) << data.error().to_string();
  const Result<std::vector<Expected>> expected = (*data)->expected(2e-3);
  ASSERT_TRUE(expected);
  const Config config = configs_of(gemv_tactic(), problem).front();
  Modules modules(&test_backend().compiler);
  for (const size_t spread : {size_t{0}, size_t{3} << 20}) {
    Result<Emission> emission = emit(gemv_tactic(), problem, config);
    ASSERT_TRUE(emission);
    const auto trial = Trial::make(device, modules, *std::move(emission), **data, **queue, spread);
    ASSERT_TRUE(trial) << trial.error().to_string();
    EXPECT_EQ((*trial)->turns(), spread == 0 ? 1U : 3U);
    for (size_t run = 0; run < (*trial)->turns(); ++run) {
      ASSERT_TRUE((*data)->poison_outputs(device, **queue));
      ASSERT_TRUE((*trial)->run(**queue));
      ASSERT_TRUE(device.wait(**queue));
      const Result<Tensor> got = (*data)->gather_output(0, device, **queue);
      ASSERT_TRUE(got);
      for (int64_t i = 0; i < 520; ++i)
        EXPECT_NEAR(got->as<float>()[i], (*expected)[0].values.as<float>()[i], 0.5) << i;
    }
  }
}

TEST(CudaGemv, StatesWhyItRefuses) {
  const MatmulAttrs attrs;
  const Tensor b = small_weights(DType::f16, {64, 24});
  EXPECT_EQ(refusal_of(gemv_tactic(), product(attrs, {17, 64}, b, {17, 24})).value_or(""), "the rows are not 1 to 16");
  const Tensor odd = small_weights(DType::f16, {60, 24});
  EXPECT_EQ(refusal_of(gemv_tactic(), product(attrs, {2, 60}, odd, {2, 24})).value_or(""),
            "the rows do not begin at vectors");
  Problem computed = product(attrs, {1, 64}, b, {1, 24});
  computed.inputs[1].constant = computed.inputs[1].weights = nullptr;
  EXPECT_EQ(refusal_of(gemv_tactic(), computed).value_or(""), "the weights are not constant");
}

}  // namespace
}  // namespace lathe::cuda
