// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/reduce_elements/reduce_elements.h"

#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::sum,         ReduceOp::prod,      ReduceOp::max, ReduceOp::min,
                             ReduceOp::mean,        ReduceOp::l1,        ReduceOp::l2,  ReduceOp::log_sum,
                             ReduceOp::log_sum_exp, ReduceOp::sum_square};

void compare(const ReduceAttrs& attrs, const Tensor& input, std::mt19937& random) {
  const std::string what = to_text(attrs) + " of " + std::string(name_of(input.dtype()));
  const Result<std::vector<Tensor>> expected = run_op(attrs, std::vector<Tensor>{input}, 1);
  if (!expected) return;  // sums of booleans
  uint32_t axes = 0;
  for (const int64_t axis : attrs.axes) axes |= 1u << axis;
  const auto kernel = make_kernel("reduce_elements", ReduceParams{reduction_of(attrs.op), axes});
  const TestTensor from = TestTensor::copy_of(input, random);
  TestTensor to = TestTensor::copy_of(*Tensor::allocate(input.dtype(), (*expected)[0].dims()), random);
  run_kernel(*kernel, {from.arg}, {to.arg}, pick_between(random, 0, 1) ? 1 : 3);
  if (!::testing::Test::HasFatalFailure()) expect_close(to.checked_content(), (*expected)[0], what);
}

TEST(ReduceElements, IsTheEvaluation) {
  std::mt19937 random(81);
  for (int repeat = 0; repeat < 12; ++repeat)
    for (const DType type : kAllTypes)
      for (const ReduceOp op : kOps) {
        ReduceAttrs attrs;
        attrs.op = op;
        attrs.keepdims = pick_between(random, 0, 1);
        Dims dims;
        for (int64_t rank = pick_between(random, 1, 4); rank > 0; --rank) dims.push_back(pick_between(random, 1, 6));
        dims[static_cast<size_t>(pick_between(random, 0, static_cast<int64_t>(dims.size()) - 1))] =
            pick_between(random, 0, 5) ? 7 : pick_between(random, 250, 600);
        for (size_t d = 0; d < dims.size(); ++d)
          if (pick_between(random, 0, 1)) attrs.axes.push_back(static_cast<int64_t>(d));
        if (attrs.axes.empty()) attrs.axes.push_back(0);
        compare(attrs, hard_tensor(type, dims, random), random);
      }
}

TEST(ReduceElements, OfNothingIsTheEvaluation) {
  std::mt19937 random(82);
  for (const DType type : kAllTypes)
    for (const ReduceOp op : kOps) {
      ReduceAttrs attrs;
      attrs.op = op;
      attrs.axes = {1};
      compare(attrs, hard_tensor(type, {2, 0, 3}, random), random);
    }
}

TEST(ReduceElements, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("reduce_elements");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {-1, 1}, {0}, {10, 1}, {0, -1}, {0, 256}, {0, 1, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(83);
  const auto checks = [&](DType from, DType to, const Dims& dims) {
    const TestTensor x = TestTensor::copy_of(hard_tensor(from, {2, 3}, random), random),
                     y = TestTensor::copy_of(hard_tensor(to, dims, random), random);
    return static_cast<bool>(
        make_kernel("reduce_elements", ReduceParams{Reduction::sum, 2})->check(std::vector{x.arg}, std::vector{y.arg}));
  };
  EXPECT_TRUE(checks(DType::i64, DType::i64, {2, 1}));
  EXPECT_TRUE(checks(DType::f64, DType::f64, {2}));
  EXPECT_FALSE(checks(DType::i64, DType::i32, {2}));
  EXPECT_FALSE(checks(DType::i64, DType::i64, {3}));
  EXPECT_FALSE(checks(DType::i64, DType::i64, {2, 1, 1}));
}

}  // namespace
}  // namespace lathe::cpu
