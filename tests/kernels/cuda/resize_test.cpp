// SPDX-License-Identifier: Apache-2.0
// Resizing on the emulator: every mode in both layouts.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& resize_tactic();

namespace {

class Resizes : public testing::Test {
 protected:
  // To the sizes of `y`.
  Problem problem(const ResizeAttrs& attrs, const Operand& x, const Operand& y, std::string_view program = "",
                  std::vector<Operand> operands = {}) {
    Operand omitted;
    omitted.omitted = true;
    Operand sizes = operand(DType::i64, {y.rank()});
    sizes_ = *Tensor::allocate(DType::i64, {y.rank()});
    for (int i = 0; i < y.rank(); ++i) sizes_.mutable_as<int64_t>()[i] = y.opt_dims[static_cast<size_t>(i)];
    sizes.constant = sizes.weights = &sizes_;
    return op_problem(attrs, {x, omitted, omitted, sizes}, {y}, program, std::move(operands));
  }
  void check(const Problem& problem) {
    const Result<> checked = check_tactic(test_backend(), resize_tactic(), problem);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }

  Tensor sizes_;
};

TEST_F(Resizes, ShrinkingWithAntialiasing) {
  ResizeAttrs attrs;
  attrs.mode = ResizeMode::linear;
  attrs.antialias = true;
  check(problem(attrs, operand(DType::f32, {1, 3, 12, 13}), operand(DType::f32, {1, 3, 4, 5})));
}

TEST_F(Resizes, Program) {
  const ResizeAttrs attrs;
  const Operand y = operand(DType::f16, {1, 8, 8, 6}, Layout::channels_last);
  check(problem(attrs, operand(DType::f16, {1, 8, 4, 3}, Layout::channels_last), y, "in=2; r2=add r0 r1; out r2", {y}));
}

TEST_F(Resizes, WhatIsRefused) {
  ResizeAttrs attrs;
  const Operand x = operand(DType::f32, {1, 1, 4, 4}), y = operand(DType::f32, {1, 1, 8, 8});
  attrs.aspect = AspectPolicy::not_larger;
  EXPECT_EQ(refusal_of(resize_tactic(), problem(attrs, x, y)), "an aspect policy");
  EXPECT_EQ(refusal_of(resize_tactic(), op_problem(attrs, {x}, {y})), "an aspect policy");
  attrs.aspect = AspectPolicy::stretch;
  EXPECT_EQ(refusal_of(resize_tactic(), op_problem(attrs, {x}, {y})), "its scales and sizes are not constant");
}

}  // namespace
}  // namespace lathe::cuda
