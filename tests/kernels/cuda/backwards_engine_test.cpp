// SPDX-License-Identifier: Apache-2.0
// Slices with steps, backwards and of padding, built for the emulator: expressions read them where they lie.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated_engine.h"

namespace lathe::cuda {
namespace {

TEST(BackwardsEngines, OneAxis) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f32[4, 9]
    %start = constant{value=i64[1]{-1}}()
    %end = constant{value=i64[1]{-100}}()
    %axis = constant{value=i64[1]{1}}()
    %step = constant{value=i64[1]{-1}}()
    %s = slice(%x, %start, %end, %axis, %step)
    %a = activation{op=silu}(%s)
    output %a)",
                            {{4, 9}}),
            Kernels({"pointwise"}));
}

TEST(BackwardsEngines, TwoAxesOfOpenSizesAndSteps) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 40]
    input %x: f16[n, 3, 10]
    input %y: f16[n, 3, 4]
    %starts = constant{value=i64[2]{-1, 9}}()
    %ends = constant{value=i64[2]{-100, -100}}()
    %axes = constant{value=i64[2]{1, 2}}()
    %steps = constant{value=i64[2]{-1, -3}}()
    %s = slice(%x, %starts, %ends, %axes, %steps)
    %a = activation{op=silu}(%s)
    %b = elementwise{op=mul}(%a, %y)
    %t = transpose{perm=[0, 2, 1]}(%b)
    output %t)",
                            {{33, 3, 10}, {33, 3, 4}}, 2e-3),
            Kernels({"pointwise"}));
}

// The rows of the result begin and end within the padding's: the operand reaches beyond them on both sides.
TEST(BackwardsEngines, StepsThatSkipPadding) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f32[10, 64]
    %pads = constant{value=i64[4]{3, 0, 3, 0}}()
    %p = pad(%x, %pads)
    %starts = constant{value=i64[2]{5, 0}}()
    %ends = constant{value=i64[2]{16, 64}}()
    %axes = constant{value=i64[2]{0, 1}}()
    %steps = constant{value=i64[2]{1, 2}}()
    %s = slice(%p, %starts, %ends, %axes, %steps)
    %a = activation{op=silu}(%s)
    output %a)",
                            {{10, 64}}),
            Kernels({"pointwise"}));
}

}  // namespace
}  // namespace lathe::cuda
