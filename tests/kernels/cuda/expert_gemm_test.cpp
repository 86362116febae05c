// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& expert_gemm_tactic();
const Tactic& expert_gemm_weight_only_tactic();

namespace {

// Some of no expert, on either side.
Tensor random_ids(const Dims& dims, int64_t experts, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor ids = *Tensor::allocate(DType::i64, dims);
  for (int64_t i = 0; i < ids.volume(); ++i)
    ids.mutable_as<int64_t>()[i] = std::uniform_int_distribution<int64_t>(-1, experts)(random);
  return ids;
}

struct Sizes {
  int64_t tokens, choices, experts, k, n;
};

Problem problem_of(const ExpertMatmulAttrs& attrs, DType type, const Sizes& s) {
  const Dims weights = attrs.transpose_w ? Dims{s.experts, s.n, s.k} : Dims{s.experts, s.k, s.n};
  return op_problem(
      attrs, {operand(type, {s.tokens, 1, s.k}), operand(type, weights), operand(DType::i64, {s.tokens, s.choices})},
      {operand(type, {s.tokens, s.choices, s.n})}, "in=2; r2=add r0 r1; r3=relu r2; out r3", {operand(type, {s.n})});
}

// In all of its configurations; adds the first words of each and its last: the unit and how rows are found.
void check(const Problem& problem, const Sizes& s, std::set<std::string>& seen) {
  const std::optional<std::string> refusal = refusal_of(expert_gemm_tactic(), problem);
  ASSERT_FALSE(refusal) << *refusal;
  CheckOptions options;
  options.inputs = {Tensor(), Tensor(), random_ids({s.tokens, s.choices}, s.experts, static_cast<uint32_t>(s.tokens))};
  for (const Config& config : configs_of(expert_gemm_tactic(), problem)) {
    const Result<> result = check_kernel(test_backend(), expert_gemm_tactic(), problem, config, options);
    EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
    seen.insert(config.text.substr(0, config.text.find(' ')) + config.text.substr(config.text.rfind(' ')));
    if (config.text.find("cluster") != std::string::npos && config.text.find("cluster=1") == std::string::npos)
      seen.insert("cluster");
  }
}

TEST(CudaExpertGemm, EveryConfigurationMultiplies) {
  ExpertMatmulAttrs attrs;
  std::set<std::string> seen;
  for (const Sizes& s :
       {Sizes{1, 2, 8, 264, 40}, Sizes{9, 2, 3, 136, 72}, Sizes{70, 3, 5, 72, 136}, Sizes{300, 1, 2, 64, 256}})
    for (const bool transposed : {true, false}) {
      attrs.transpose_w = transposed;
      check(problem_of(attrs, DType::f16, s), s, seen);
      if (s.tokens < 70) check(problem_of(attrs, DType::f32, s), s, seen);
    }
  EXPECT_TRUE(seen.contains("mma few") && seen.contains("mma sorted") && seen.contains("fma few") &&
              seen.contains("fma sorted"));
  EXPECT_EQ(seen.contains("wgmma sorted"), test_target().limits.warpgroups);
  EXPECT_EQ(seen.contains("cluster"), test_target().limits.cluster > 1);
}

TEST(CudaExpertGemm, WeightsMayBeKnownAndRowsSymbolic) {
  ExpertMatmulAttrs attrs;
  attrs.strict = true;
  const std::vector<int64_t> symbols = {21};
  const Expr tokens = Expr::symbol(0);
  std::mt19937 random(3);
  Tensor weights = *Tensor::allocate(DType::f32, {4, 30, 20});
  for (int64_t i = 0; i < weights.volume(); ++i)
    weights.mutable_as<float>()[i] = std::normal_distribution<float>()(random);
  Problem problem = op_problem(attrs,
                               {symbolic_operand(DType::f32, {tokens, 30}, symbols), operand(DType::f32, {4, 30, 20}),
                                symbolic_operand(DType::i32, {tokens}, symbols)},
                               {symbolic_operand(DType::f32, {tokens, 20}, symbols)});
  problem.inputs[1].constant = problem.inputs[1].weights = &weights;
  Tensor ids = *Tensor::allocate(DType::i32, {21});
  for (int32_t i = 0; i < 21; ++i) ids.mutable_as<int32_t>()[i] = i * 5 % 8 - 4;
  CheckOptions options;
  options.inputs = {Tensor(), weights, ids};
  options.symbols = symbols;
  const Result<> checked = check_tactic(test_backend(), expert_gemm_tactic(), problem, options);
  EXPECT_TRUE(checked) << checked.error().to_string();
}

TEST(CudaExpertGemm, RefusesWhatItCannotDo) {
  ExpertMatmulAttrs attrs;
  const Sizes s{3, 2, 4, 16, 8};
  const auto refusal = [&](const auto& change) {
    Problem problem = problem_of(attrs, DType::f16, s);
    change(problem);
    return refusal_of(expert_gemm_tactic(), problem).value_or("");
  };
  EXPECT_EQ(refusal([](Problem&) {}), "");
  EXPECT_EQ(refusal([](Problem& p) {
              p.inputs[0] = strided_operand(DType::f16, {3, 1, 16}, {1, 1, 3});
            }),
            "the elements of a row are not neighbours");
  EXPECT_EQ(refusal([](Problem& p) {
              p.inputs[1] = strided_operand(DType::f16, {4, 16, 8}, {256, 16, 2});
            }),
            "neither dimension of the matrices is contiguous");
  EXPECT_EQ(refusal([](Problem& p) { p.inputs[1].dims[0] = Expr::symbol(0); }), "no known number of matrices");
  EXPECT_EQ(refusal([](Problem& p) { p.inputs[0].dtype = DType::f64; }), "elements of type f64");
  EXPECT_EQ(refusal([](Problem& p) { p.target.limits.shared_bytes = 16; }),
            "more experts than shared memory has room for their rows");
}

TEST(CudaExpertGemm, OfFewBitsRefusesWhatItCannotDo) {
  const Tensor levels = any_levels({2, 64, 16}, 1);
  Tensor scales = *Tensor::allocate(DType::f16, {2, 1, 16});
  from_doubles(std::vector<double>(32, 0.5), scales);
  const ExpertMatmulAttrs attrs;
  const auto refusal = [&](const auto& change) {
    Problem problem =
        op_problem(attrs, {operand(DType::f16, {3, 64}), operand(DType::i8, {2, 64, 16}), operand(DType::i64, {3})},
                   {operand(DType::f16, {3, 16})});
    problem.inputs[1].constant = problem.inputs[1].weights = &levels;
    put_before(problem, 1, "in=2; r2=mul r0 r1; out r2", {operand(DType::f16, {2, 1, 16})});
    problem.inputs[1].operands[0].constant = problem.inputs[1].operands[0].weights = &scales;
    problem.inputs[1].operands[0].blocks = {1, 64, 1};
    change(problem);
    return refusal_of(expert_gemm_weight_only_tactic(), problem).value_or("");
  };
  EXPECT_EQ(refusal([](Problem&) {}), "");
  EXPECT_EQ(refusal([](Problem& p) { p.inputs[1].operands.clear(); }), "weights that are not packed");
  EXPECT_EQ(refusal([](Problem& p) { p.inputs[0].dtype = DType::f64; }), "elements of type f64");
  EXPECT_EQ(refusal([](Problem& p) { p.outputs[0] = operand(DType::f16, {16}); }), "a single row");
  EXPECT_EQ(refusal([](Problem& p) { p.target.limits.shared_bytes = 8; }),
            "more experts than shared memory has room for their rows");
}

}  // namespace
}  // namespace lathe::cuda
