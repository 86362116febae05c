// SPDX-License-Identifier: Apache-2.0
// Reductions and normalisations whose rows are split over blocks. check_kernel() runs kernels with counters twice, the
// second time with the last block first: the bits must be equal, and the counters as they were.
#include <gtest/gtest.h>

#include "cuda/emulated_device.h"
#include "cuda/kernel_check.h"
#include "cuda/reduce_attributes.h"

namespace lathe::cuda {

const Tactic& reduce_tactic();
const Tactic& arg_reduce_tactic();
const Tactic& normalization_tactic();
const Tactic& softmax_tactic();

namespace {

class SplitStates : public testing::Test {
 protected:
  // All configurations that split.
  void check(const Tactic& tactic, const Problem& problem, size_t launches = 1, const CheckOptions& options = {}) {
    const std::optional<std::string> refusal = tactic.refuse(problem);
    ASSERT_FALSE(refusal) << *refusal;
    size_t found = 0;
    for (const Config& config : tactic.configs(problem)) {
      if (config.text.find("splits") == std::string::npos) continue;
      ++found;
      const auto emission = tactic.emit(problem, config);
      ASSERT_TRUE(emission) << emission.error().to_string();
      EXPECT_EQ(emission->launches.size(), launches) << config.text;
      EXPECT_FALSE(emission->counters == Expr(0)) << config.text;
      const Result<> checked = check_kernel({*device_, *compiler_}, tactic, problem, config, options);
      EXPECT_TRUE(checked) << config.text << ", " << to_text(problem) << "\n" << checked.error().to_string();
    }
    EXPECT_GT(found, 0u) << to_text(problem);
  }

  std::shared_ptr<Device> device_ = test_device();
  std::unique_ptr<Compiler> compiler_ = test_compiler();
};

TEST_F(SplitStates, Rows) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::log_sum_exp, ReduceOp::l2}) {
    const ReduceAttrs attrs = reduce_attributes(op, {1});
    CheckOptions options;
    options.tolerance = 1e-4;  // of sums of thousands
    check(reduce_tactic(), op_problem(attrs, {operand(DType::f32, {3, 8204})}, {operand(DType::f32, {3, 1})}), 1,
          options);
  }
  const ReduceAttrs mean = reduce_attributes(ReduceOp::mean, {}, false);
  check(reduce_tactic(), op_problem(mean, {operand(DType::f64, {5000})}, {operand(DType::f64, {})}));
  const ReduceAttrs sum = reduce_attributes(ReduceOp::sum, {1});
  check(reduce_tactic(), op_problem(sum, {operand(DType::i64, {2, 5000})}, {operand(DType::i64, {2, 1})}));
}

TEST_F(SplitStates, Columns) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::log_sum_exp}) {
    const ReduceAttrs attrs = reduce_attributes(op, {0}, false);
    CheckOptions options;
    options.tolerance = 1e-4;
    check(reduce_tactic(), op_problem(attrs, {operand(DType::f32, {1500, 36})}, {operand(DType::f32, {36})}), 1,
          options);
  }
  const ReduceAttrs pooling = reduce_attributes(ReduceOp::mean, {2, 3});
  check(reduce_tactic(), op_problem(pooling, {operand(DType::f16, {2, 24, 40, 20}, Layout::channels_last)},
                                    {operand(DType::f16, {2, 24, 1, 1}, Layout::channels_last)}));
  const ReduceAttrs sum = reduce_attributes(ReduceOp::sum, {0}, false);
  check(reduce_tactic(), op_problem(sum, {operand(DType::i64, {700, 9})}, {operand(DType::i64, {9})}));
}

TEST_F(SplitStates, ProgramsOfSymbolicRows) {
  const ReduceAttrs rows = reduce_attributes(ReduceOp::mean, {1});
  const ReduceAttrs columns = reduce_attributes(ReduceOp::mean, {0});
  const Expr n = Expr::symbol(0);
  CheckOptions options;
  options.symbols = {3};
  const auto with_program = [&](const ReduceAttrs& attrs, Shape x, Shape y, const Operand& scale) {
    return op_problem(attrs, {symbolic_operand(DType::f16, std::move(x), options.symbols)},
                      {symbolic_operand(DType::f16, std::move(y), options.symbols)},
                      "in=2; r2=mul r0 r1; r3=sigmoid r2; out r3", {scale});
  };
  check(reduce_tactic(), with_program(rows, {n, 9000}, {n, 1}, symbolic_operand(DType::f16, {n, 1}, options.symbols)),
        1, options);
  options.symbols = {1203};
  check(reduce_tactic(), with_program(columns, {n, 40}, {1, 40}, operand(DType::f16, {1, 40})), 1, options);
}

TEST_F(SplitStates, PositionsOfExtremes) {
  ArgReduceAttrs attrs;
  attrs.axis = 1;
  for (const bool largest : {false, true}) {
    attrs.largest = largest, attrs.select_last = largest;
    check(arg_reduce_tactic(), op_problem(attrs, {operand(DType::f32, {2, 20000})}, {operand(DType::i64, {2, 1})}));
    check(arg_reduce_tactic(), op_problem(attrs, {operand(DType::i32, {2, 20000})}, {operand(DType::i64, {2, 1})}));
  }
  attrs.axis = 0;
  check(arg_reduce_tactic(), op_problem(attrs, {operand(DType::f16, {1100, 24})}, {operand(DType::i64, {1, 24})}));
}

// Two launches: each block needs the whole row's statistic before it writes.
TEST_F(SplitStates, NormalizationsOfColumns) {
  SoftmaxAttrs softmax;
  softmax.axis = 0;
  CheckOptions options;
  options.tolerance = 1e-5;
  const Operand x = operand(DType::f32, {900, 20});
  check(softmax_tactic(), op_problem(softmax, {x}, {x}), 2, options);
}

}  // namespace
}  // namespace lathe::cuda
