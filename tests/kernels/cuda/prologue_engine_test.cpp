// SPDX-License-Identifier: Apache-2.0
// Graphs whose expressions become programs before kernels, built for the emulator: the results are those of the plain
// evaluation, also where no kernel takes the program.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated_engine.h"

namespace lathe::cuda {
namespace {

TEST(PrologueEngines, Reduction) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 9]
    input %x: f16[n, 3, 40]
    input %y: f16[n, 3, 40]
    input %b: f16[3, 1]
    %p = elementwise{op=mul}(%x, %y)
    %q = elementwise{op=add}(%p, %b)
    %r = reduce{op=mean, axes=[2]}(%q)
    output %r)",
                            {{5, 3, 40}, {5, 3, 40}, {3, 1}}, 2e-3),
            Kernels({"reduce"}));
}

// What stands alone takes an expression that it alone reads, too.
TEST(PrologueEngines, PositionOfTheLargest) {
  const std::string graph = R"(
    symbol n in [1, 9]
    input %x: f32[n, 3, 40]
    input %b: f32[3, 40]
    %p = elementwise{op=sub}(%x, %b)
    %q = unary{op=abs}(%p)
    %r = arg_reduce{axis=2, keepdims=false}(%q)
    output %r)";
  EXPECT_EQ(run_on_emulator(graph, {{5, 3, 40}, {3, 40}}), Kernels({"arg_reduce"}));
}

TEST(PrologueEngines, NormalizationOfAnImage) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f32[2, 8, 6, 6]
    input %g: f32[2, 8, 1, 1]
    %w = constant{value=f32[8, 8, 3, 3]{~1}}()
    %s = constant{value=f32[8]{~2}}()
    %b = constant{value=f32[8]{~3}}()
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %p = elementwise{op=mul}(%y, %g)
    %q = activation{op=silu}(%p)
    %e = elementwise{op=add}(%q, %y)
    %n = instance_normalization(%e, %s, %b)
    output %n
    output %q)",
                            {{2, 8, 6, 6}, {2, 8, 1, 1}}),
            Kernels({"copy", "conv", "pointwise", "normalization"}));
}

TEST(PrologueEngines, AttentionWithBiases) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %q: f16[n, 2, 20, 16]
    input %k: f16[n, 2, 37, 16]
    input %v: f16[n, 2, 37, 16]
    input %b: f16[2, 1, 16]
    %p = elementwise{op=add}(%q, %b)
    %r = elementwise{op=mul}(%k, %b)
    %s = elementwise{op=sub}(%v, %b)
    %y = attention{scale=0.25}(%p, %r, %s)
    %z = elementwise{op=add}(%y, %q)
    output %z)",
                            {{2, 2, 20, 16}, {2, 2, 37, 16}, {2, 2, 37, 16}, {2, 1, 16}}, 4e-3),
            Kernels({"attention"}));
}

// Convolutions gather pixels of three channels one by one: the expression is a step of its own, and a whole one.
TEST(PrologueEngines, ExpressionsThatNoKernelTakes) {
  const Kernels kernels = run_on_emulator(R"(
    input %x: f32[4, 3, 6, 6]
    %w = constant{value=f32[5, 3, 1, 1]{~1}}()
    %p = activation{op=silu}(%x)
    %q = elementwise{op=mul}(%p, %x)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%q, %w)
    %z = activation{op=relu}(%y)
    output %z)",
                                          {{4, 3, 6, 6}});
  EXPECT_EQ(kernels, Kernels({"pointwise", "conv", "copy"}));
}

}  // namespace
}  // namespace lathe::cuda
