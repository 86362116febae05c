// SPDX-License-Identifier: Apache-2.0
// Positions of extremes and the k best, on the emulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& arg_reduce_tactic();
const Tactic& topk_tactic();

namespace {

class Choices : public testing::Test {
 protected:
  void check(const Tactic& tactic, const Problem& problem, const CheckOptions& options = {}) {
    const Result<> checked = check_tactic(test_backend(), tactic, problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  void check_topk(const TopkAttrs& attrs, const Operand& x, int64_t k, CheckOptions options = {}) {
    options.inputs.resize(2);
    options.inputs[1] = Tensor::of<int64_t>({1}, {k});
    check(topk_tactic(), topk_problem(attrs, x, k), options);
  }
  static Problem topk_problem(const TopkAttrs& attrs, const Operand& x, int64_t k) {
    Dims dims = x.opt_dims;
    dims[static_cast<size_t>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis)] = k;
    return op_problem(attrs, {x, operand(DType::i64, {1})}, {operand(x.dtype, dims), operand(DType::i64, dims)});
  }
  static ArgReduceAttrs arg_attributes(int64_t axis, bool largest, bool last, bool keepdims = true) {
    ArgReduceAttrs attrs;
    attrs.axis = axis;
    attrs.largest = largest;
    attrs.select_last = last;
    attrs.keepdims = keepdims;
    return attrs;
  }
  // Few values, so that many are equal.
  static Tensor coarse(DType dtype, Dims dims) {
    Tensor tensor = *Tensor::allocate(DType::f32, dims);
    for (int64_t i = 0; i < tensor.volume(); ++i)
      tensor.mutable_as<float>()[i] = static_cast<float>(i * 7919 % 23 - 11);
    Tensor out = *Tensor::allocate(dtype, std::move(dims));
    for (int64_t i = 0; i < out.volume(); ++i)
      if (dtype == DType::f16)
        out.mutable_as<Half>()[i] = Half(tensor.as<float>()[i]);
      else
        out.mutable_as<float>()[i] = tensor.as<float>()[i];
    return out;
  }
};

TEST_F(Choices, FirstAndLastExtremes) {
  CheckOptions options;
  options.inputs = {coarse(DType::f16, {5, 70})};
  const Operand x = operand(DType::f16, {5, 70});
  for (const bool largest : {false, true})
    for (const bool last : {false, true}) {
      const ArgReduceAttrs rows = arg_attributes(1, largest, last);
      check(arg_reduce_tactic(), op_problem(rows, {x}, {operand(DType::i64, {5, 1})}), options);
      const ArgReduceAttrs columns = arg_attributes(0, largest, last, false);
      check(arg_reduce_tactic(), op_problem(columns, {x}, {operand(DType::i64, {70})}), options);
    }
}

TEST_F(Choices, BestOfRows) {
  for (const bool largest : {false, true}) {
    TopkAttrs attrs;
    attrs.largest = largest;
    CheckOptions options;
    options.inputs = {coarse(DType::f16, {3, 300})};
    check_topk(attrs, operand(DType::f16, {3, 300}), 7, options);
    check_topk(attrs, operand(DType::f32, {2, 33}), 33);
  }
}

TEST_F(Choices, BestOfLongRowsInParts) {
  const TopkAttrs attrs;
  CheckOptions options;
  options.inputs = {coarse(DType::f32, {1, 20000})};
  check_topk(attrs, operand(DType::f32, {1, 20000}), 50, options);
}

// Rows in any order, short and long, and k from 1 to all.
TEST_F(Choices, BestOfOrderedRows) {
  const auto ordered = [](int64_t length, float step) {
    Tensor tensor = *Tensor::allocate(DType::f32, {2, length});
    for (int64_t i = 0; i < 2 * length; ++i)
      tensor.mutable_as<float>()[i] = i % 97 == 3 ? NAN : step * static_cast<float>(i / 3);
    return tensor;
  };
  for (const bool largest : {false, true})
    for (const float step : {-1.0f, 0.0f, 1.0f})
      for (const auto& [length, k] :
           {std::pair<int64_t, int64_t>{40, 40}, {300, 1}, {3000, 17}, {9000, 64}, {900, 300}}) {
        TopkAttrs attrs;
        attrs.largest = largest;
        CheckOptions options;
        options.inputs = {ordered(length, step)};
        check_topk(attrs, operand(DType::f32, {2, length}), k, options);
      }
}

// The best lie in one group, in many, or close together: the second launch reads more of them than it has room for.
TEST_F(Choices, BestOfGroups) {
  TopkAttrs attrs;
  check_topk(attrs, operand(DType::f16, {3, 4100}), 1);
  check_topk(attrs, strided_operand(DType::f32, {2, 5000}, {1, 2}), 17);
  for (const bool largest : {false, true}) {
    attrs.largest = largest;
    for (const int slope : {0, 1}) {
      Tensor x = *Tensor::allocate(DType::f32, {1, 13000});
      for (int64_t i = 0; i < x.volume(); ++i) x.mutable_as<float>()[i] = static_cast<float>(i * slope);
      x.mutable_as<float>()[12999] = std::numeric_limits<float>::quiet_NaN();
      CheckOptions options;
      options.inputs = {x};
      check_topk(attrs, operand(DType::f32, {1, 13000}), 100, options);
    }
  }
  attrs.axis = 0;
  check_topk(attrs, operand(DType::i32, {4000, 2}), 5);
}

// What was chosen for one length runs with others: with fewer groups than keys are wanted, too.
TEST_F(Choices, LongRowsThatAreShort) {
  const TopkAttrs attrs;
  const auto problem = [&](int64_t length) {
    Problem open = topk_problem(attrs, operand(DType::f32, {1, length}), 40);
    open.inputs[0] = symbolic_operand(DType::f32, {1, Expr::symbol(0)}, std::array{length});
    return open;
  };
  const std::vector<Config> configs = configs_of(topk_tactic(), problem(20000));
  EXPECT_TRUE(std::ranges::any_of(configs, [](const Config& each) { return each.text.starts_with("groups of 32"); }));
  for (const int64_t length : {900, 40}) {
    CheckOptions options;
    options.symbols = {length};
    options.inputs = {Tensor(), Tensor::of<int64_t>({1}, {40})};
    for (const Config& config : configs) {
      const Result<> checked = check_kernel(test_backend(), topk_tactic(), problem(length), config, options);
      EXPECT_TRUE(checked) << config.text << ": " << checked.error().message;
    }
  }
}

TEST_F(Choices, WhatIsRefused) {
  const TopkAttrs attrs;
  EXPECT_EQ(refusal_of(topk_tactic(), topk_problem(attrs, operand(DType::f64, {2, 5}), 2)), "its input is f64");
  EXPECT_EQ(refusal_of(topk_tactic(), topk_problem(attrs, operand(DType::f32, {2, 5000}), 3000)),
            "k is 3000, 1 to 2048 are handled");
  const ArgReduceAttrs arg = arg_attributes(1, true, false);
  EXPECT_EQ(refusal_of(arg_reduce_tactic(), op_problem(arg, {operand(DType::f32, {2, 5})},
                                                       {operand(DType::i64, {2, 1})}, "in=1; r1=relu r0; out r1")),
            "a program behind integers");
}

}  // namespace
}  // namespace lathe::cuda
