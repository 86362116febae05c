// SPDX-License-Identifier: Apache-2.0
// Running sums and products, on the emulator.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& cumulative_tactic();

namespace {

class Cumulative : public testing::Test {
 protected:
  static CumulativeAttrs attributes(CumulativeOp op, bool exclusive, bool reverse) {
    CumulativeAttrs attrs;
    attrs.op = op;
    attrs.exclusive = exclusive;
    attrs.reverse = reverse;
    return attrs;
  }
  void check(const CumulativeAttrs& attrs, const Operand& x, int64_t axis, const Operand& y, double tolerance = -1) {
    const Tensor which = Tensor::of<int64_t>({}, {axis});
    Operand constant = operand(DType::i64, {});
    constant.constant = constant.weights = &which;
    const Problem problem = op_problem(attrs, {x, constant}, {y});
    CheckOptions options;
    options.tolerance = tolerance;
    options.inputs = {Tensor(), which};
    ASSERT_EQ(configs_of(cumulative_tactic(), problem).size(), 4u);
    const Result<> checked = check_tactic(test_backend(), cumulative_tactic(), problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  void check(const CumulativeAttrs& attrs, DType dtype, const Dims& dims, int64_t axis) {
    check(attrs, operand(dtype, dims), axis, operand(dtype, dims));
  }
};

TEST_F(Cumulative, EveryMode) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      for (const auto& [axis, dims] : {std::pair<int64_t, Dims>{0, {70, 3, 2}}, {1, {2, 70, 3}}, {-1, {3, 2, 70}}})
        check(attributes(CumulativeOp::sum, exclusive, reverse), DType::f32, dims, axis);
}

TEST_F(Cumulative, LongLinesCarryOn) {
  check(attributes(CumulativeOp::sum, false, false), DType::f32, {2, 1537}, 1);
  check(attributes(CumulativeOp::sum, true, true), DType::i64, {1, 2048}, 1);
  check(attributes(CumulativeOp::sum, false, false), DType::f32, {1, 1}, 0);
}

TEST_F(Cumulative, EveryType) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f64, DType::i32, DType::u8, DType::i8, DType::u64})
    check(attributes(CumulativeOp::sum, false, true), dtype, {4, 50}, 1);
}

// Integers wrap: products of 64 bits soon do.
TEST_F(Cumulative, Products) {
  for (const DType dtype : {DType::f64, DType::i64, DType::u32})
    check(attributes(CumulativeOp::prod, true, false), dtype, {3, 45}, 1);
}

TEST_F(Cumulative, Strides) {
  check(attributes(CumulativeOp::sum, false, false), strided_operand(DType::f32, {6, 40}, {1, 6}), 1,
        strided_operand(DType::f32, {6, 40}, {80, 2}));
}

TEST_F(Cumulative, Refusals) {
  const CumulativeAttrs attrs = attributes(CumulativeOp::sum, false, false);
  const Operand x = operand(DType::f32, {4, 5});
  const Problem computed = op_problem(attrs, {x, operand(DType::i64, {})}, {x});
  EXPECT_EQ(refusal_of(cumulative_tactic(), computed), "its axis is computed");
  const ArgReduceAttrs other;
  EXPECT_EQ(refusal_of(cumulative_tactic(), op_problem(other, {x}, {x})), "not a running sum or product");
}

}  // namespace
}  // namespace lathe::cuda
