// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& copy_tactic();

namespace {

class Copy : public testing::Test {
 protected:
  void expect(const Operand& from, const Operand& to, const std::vector<int64_t>& symbols = {}) {
    const Problem problem = pointwise_problem("in=1; out r0", {from}, {to});
    CheckOptions options;
    options.symbols = symbols;
    const Result<> result = check_first(test_backend(), copy_tactic(), problem, options);
    EXPECT_TRUE(result) << result.error().message;
  }
  std::optional<std::string> refusal(std::string_view program, DType from, DType to) {
    return refusal_of(copy_tactic(), pointwise_problem(program, {operand(from, {4})}, {operand(to, {4})}));
  }
};

TEST_F(Copy, MovesEveryType) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i64, DType::boolean})
    expect(operand(type, {3, 1000}), operand(type, {3, 1000}));
}

TEST_F(Copy, ChangesLayouts) {
  for (const DType type : {DType::f32, DType::f16, DType::i8}) {
    const Dims dims = {2, 70, 9, 11};
    expect(operand(type, dims), operand(type, dims, Layout::channels_last));
    expect(operand(type, dims, Layout::channels_last), operand(type, dims));
  }
  expect(operand(DType::f32, {40, 33}), strided_operand(DType::f16, {40, 33}, {1, 40}));
  expect(strided_operand(DType::f32, {6, 5, 40, 33}, {5, 1, 30, 1200}), operand(DType::f32, {6, 5, 40, 33}));
}

TEST_F(Copy, FewChannelsTakeRows) {
  const Dims dims = {2, 3, 17, 5};
  expect(operand(DType::f32, dims), operand(DType::f32, dims, Layout::channels_last));
}

TEST_F(Copy, PitchesAndParts) {
  // A slice that leaves gaps on both sides, and one with a step.
  expect(strided_operand(DType::f32, {7, 12}, {20, 1}), strided_operand(DType::f32, {7, 12}, {13, 1}));
  expect(strided_operand(DType::f16, {7, 24}, {48, 2}), operand(DType::f16, {7, 24}));
  expect(strided_operand(DType::f16, {3, 10, 4, 4}, {160, 1, 40, 10}),
         strided_operand(DType::f16, {3, 10, 4, 4}, {256, 1, 64, 16}));
}

TEST_F(Copy, Expands) {
  expect(strided_operand(DType::f32, {4, 1, 32}, {32, 32, 1}), operand(DType::f32, {4, 5, 32}));
  expect(strided_operand(DType::i32, {4, 5, 32}, {1, 0, 0}), operand(DType::i32, {4, 5, 32}));
}

TEST_F(Copy, ScalarsAndNothing) {
  expect(operand(DType::f32, {}), operand(DType::f32, {}));
  expect(operand(DType::f32, {1, 1}), operand(DType::f16, {1, 1}));
  expect(operand(DType::f32, {0, 3}), operand(DType::f32, {0, 3}));
}

TEST_F(Copy, SymbolicDims) {
  const std::vector<int64_t> symbols = {3, 45};
  const Shape dims = {Expr::symbol(0), 40, Expr::symbol(1)};
  const auto make = [&](DType type, Layout layout) { return symbolic_operand(type, dims, symbols, layout); };
  expect(make(DType::f32, Layout::linear), make(DType::f16, Layout::linear), symbols);
  expect(make(DType::f32, Layout::channels_last), make(DType::f32, Layout::linear), symbols);
}

TEST_F(Copy, EveryConfiguration) {
  const Problem problem =
      pointwise_problem("in=1; out r0", {operand(DType::f32, {3, 3001})}, {operand(DType::f16, {3, 3001})});
  for (const int64_t unroll : {1, 2, 4}) {
    const Result<> result = check_kernel(test_backend(), copy_tactic(), problem, {.text = "", .choice = unroll}, {});
    EXPECT_TRUE(result) << result.error().message;
  }
}

TEST_F(Copy, RefusesWhatIsNoCopy) {
  EXPECT_FALSE(refusal("in=1; out r0", DType::i32, DType::i32));
  EXPECT_TRUE(refusal("in=1; out r0", DType::i32, DType::f32));
  EXPECT_TRUE(refusal("in=1; r1=neg r0; out r1", DType::f32, DType::f32));
}

}  // namespace
}  // namespace lathe::cuda
