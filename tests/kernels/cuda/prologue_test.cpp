// SPDX-License-Identifier: Apache-2.0
// Programs before a product's left operand.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"

namespace lathe::cuda {

const Tactic& conv_tactic();
const Tactic& gemm_tactic();

namespace {

const ConvolutionAttrs kAttributes;

class Prologues : public testing::Test {
 protected:
  void check(const Tactic& tactic, const Problem& problem, bool all = false) {
    CheckOptions options;
    options.round_prologues = true;
    options.tolerance = problem.outputs[0].dtype == DType::bf16  ? 1.6e-2
                        : problem.outputs[0].dtype == DType::f16 ? 4e-3
                                                                 : 1e-5;
    const Backend& backend = test_backend();
    const Result<> checked =
        all ? check_tactic(backend, tactic, problem, options) : check_first(backend, tactic, problem, options);
    EXPECT_TRUE(checked) << checked.error().to_string();
  }
  // A gate for each image and channel, as after squeeze-and-excitation.
  static Problem gated(DType type, const Tensor& w, int64_t images = 2) {
    Problem problem =
        convolution_problem(kAttributes, operand(type, {images, w.dims()[1], 5, 7}, Layout::channels_last), w);
    put_before(problem, 0, "in=2; r2=mul r0 r1; out r2", {operand(type, {images, w.dims()[1], 1, 1})});
    return problem;
  }
};

TEST_F(Prologues, GatesBeforeConvolutions) {
  for (DType type : {DType::f16, DType::bf16, DType::f32}) {
    const Tensor w = small_weights(type, {24, 40, 1, 1});
    check(conv_tactic(), gated(type, w));
    check(conv_tactic(), gated(type, w, 1));
  }
}

TEST_F(Prologues, EveryTileAndSplit) {
  const Tensor w = small_weights(DType::f16, {40, 264, 1, 1});
  Problem problem = gated(DType::f16, w);
  problem.operands = {operand(DType::f16, {40, 1, 1}), operand(DType::f16, {2, 40, 5, 7}, Layout::channels_last)};
  problem.program = *parse_program("in=3; r3=add r0 r1; r4=add r3 r2; out r4");
  check(conv_tactic(), problem, true);
}

TEST_F(Prologues, NarrowChannels) {
  for (int64_t channels : {2, 6, 10}) {
    const Tensor w = small_weights(DType::f16, {16, channels, 1, 1});
    check(conv_tactic(), gated(DType::f16, w));
  }
}

// What lies behind the last channel stays zero, whatever the program makes of zeros.
TEST_F(Prologues, ProgramsThatMoveZero) {
  const Tensor w = small_weights(DType::f16, {16, 20, 1, 1});
  Problem problem = gated(DType::f16, w);
  put_before(problem, 0, "in=3; r3=sigmoid r1; r4=mul r0 r3; r5=add r4 r2; r6=relu r5; out r6",
             {operand(DType::f16, {2, 20, 1, 1}), operand(DType::f32, {20, 1, 1})});
  check(conv_tactic(), problem);
}

TEST_F(Prologues, SymbolicBatch) {
  const std::vector<int64_t> symbols = {3};
  const Tensor w = small_weights(DType::f16, {16, 24, 1, 1});
  Problem problem = convolution_problem(kAttributes, operand(DType::f16, {3, 24, 4, 4}, Layout::channels_last), w);
  const Expr batch = Expr::symbol(0);
  problem.inputs[0] = symbolic_operand(DType::f16, {batch, 24, 4, 4}, symbols, Layout::channels_last);
  problem.outputs[0] = symbolic_operand(DType::f16, {batch, 16, 4, 4}, symbols, Layout::channels_last);
  put_before(problem, 0, "in=2; r2=mul r0 r1; out r2", {symbolic_operand(DType::f16, {batch, 24, 1, 1}, symbols)});
  CheckOptions options;
  options.symbols = symbols;
  options.round_prologues = true;
  const Result<> checked = check_first(test_backend(), conv_tactic(), problem, options);
  EXPECT_TRUE(checked) << checked.error().to_string();
}

TEST_F(Prologues, BeforeMatrices) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (DType type : {DType::f16, DType::f32}) {
    const Tensor b = small_weights(type, {24, 80});
    Problem problem =
        op_problem(attrs, {operand(type, {3, 21, 80}), operand(type, {24, 80})}, {operand(type, {3, 21, 24})});
    problem.inputs[1].constant = problem.inputs[1].weights = &b;
    put_before(problem, 0, "in=3; r3=mul r0 r1; r4=add r3 r2; out r4",
               {operand(type, {80}), operand(DType::f32, {3, 21, 1})});
    check(gemm_tactic(), problem);
    put_before(problem, 0, "in=1; r1=silu r0; out r1", {});
    check(gemm_tactic(), problem);
  }
}

TEST_F(Prologues, WhatIsRefused) {
  const Tensor w = small_weights(DType::f16, {16, 8, 3, 3});
  Problem window = convolution_problem(kAttributes, operand(DType::f16, {1, 8, 5, 5}, Layout::channels_last), w);
  put_before(window, 0, "in=1; r1=silu r0; out r1", {});
  EXPECT_EQ(refusal_of(conv_tactic(), window), "a program before a window of several elements");
  const Tensor odd = small_weights(DType::f16, {16, 3, 1, 1});
  EXPECT_EQ(refusal_of(conv_tactic(), gated(DType::f16, odd)), "a program before a window of several elements");
  MatmulAttrs attrs;
  attrs.transpose_a = true;
  Problem across =
      op_problem(attrs, {operand(DType::f16, {8, 16}), operand(DType::f16, {8, 24})}, {operand(DType::f16, {16, 24})});
  put_before(across, 0, "in=1; r1=silu r0; out r1", {});
  EXPECT_EQ(refusal_of(gemm_tactic(), across), "a program before matrices that are not rows of one");
}

}  // namespace
}  // namespace lathe::cuda
