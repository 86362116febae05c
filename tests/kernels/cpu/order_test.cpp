// SPDX-License-Identifier: Apache-2.0
// The kernels that seek the best elements along an axis: topk and arg_reduce.
#include "kernels/cpu/arg_reduce/arg_reduce.h"
#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/topk/topk.h"

namespace lathe::cpu {
namespace {

// Few values, so that many are equal; now and then many kinds.
Tensor with_equals(DType type, const Dims& dims, std::mt19937& random) {
  return pick_between(random, 0, 1)
             ? hard_tensor(type, dims, random)
             : random_integers(type, dims, class_of(type) == DTypeClass::floating ? -2 : 0, 3, random);
}

void compare_topk(DType type, const Dims& dims, int64_t axis, int64_t k, std::mt19937& random) {
  TopkAttrs attrs;
  attrs.axis = axis;
  attrs.largest = pick_between(random, 0, 1) == 1;
  compare_with_evaluation("topk", TopkParams{static_cast<int>(axis), attrs.largest}, attrs,
                          {with_equals(type, dims, random), Tensor::of<int64_t>({1}, {k})}, random, {2, {}});
}

void compare_arg_reduce(DType type, const Dims& dims, int64_t axis, std::mt19937& random) {
  ArgReduceAttrs attrs;
  attrs.axis = axis;
  attrs.largest = pick_between(random, 0, 1) == 1;
  attrs.select_last = pick_between(random, 0, 1) == 1;
  attrs.keepdims = pick_between(random, 0, 1) == 1;
  compare_with_evaluation("arg_reduce", ArgReduceParams{static_cast<int>(axis), attrs.largest, attrs.select_last},
                          attrs, {with_equals(type, dims, random)}, random);
}

TEST(Topk, IsTheEvaluation) {
  std::mt19937 random(81);
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const DType type : kAllTypes) {
      if (type == DType::boolean) continue;
      const int64_t rank = pick_between(random, 1, 4), axis = pick_between(random, 0, rank - 1);
      Dims dims = random_dims(rank, 0, 4, random);
      int64_t& extent = dims[static_cast<size_t>(axis)];
      extent = pick_between(random, 1, 12);
      compare_topk(type, dims, axis, pick_between(random, 0, extent), random);
    }
}

// Longer than what is kept at a time, for all k that are treated in their own way; ascending and descending rows, too,
// of which every or no element beats the earlier ones.
TEST(Topk, OfLongRowsIsTheEvaluation) {
  std::mt19937 random(82);
  for (const DType type : {DType::f32, DType::f16, DType::i64, DType::u8, DType::u64, DType::f64})
    for (const int64_t k : {1, 5, 300, 1000, 3000}) compare_topk(type, {3, 3000}, 1, k, random);
  for (const bool falls : {false, true}) {
    Tensor x = *Tensor::allocate(DType::f32, {5000});
    for (int i = 0; i < 5000; ++i) x.mutable_as<float>()[i] = static_cast<float>(falls ? -i : i);
    for (const int64_t k : {1, 40, 2000})
      compare_with_evaluation("topk", TopkParams{}, TopkAttrs(), {x, Tensor::of<int64_t>({1}, {k})}, random, {2, {}});
  }
}

TEST(Topk, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("topk");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {0}, {-1, 0}, {kMaxRank, 0}, {0, 2}, {0, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(83);
  const auto checks = [&](DType type, const Dims& x, const Dims& values, const Dims& positions) {
    TestTensor a = TestTensor::copy_of(hard_tensor(type, x, random), random),
               b = TestTensor::copy_of(hard_tensor(type, values, random), random),
               c = TestTensor::copy_of(hard_tensor(DType::i64, positions, random), random),
               k = TestTensor::copy_of(Tensor::of<int64_t>({1}, {3}), random);
    return static_cast<bool>(
        make_kernel("topk", TopkParams{1})->check(std::vector{a.arg, k.arg}, std::vector{b.arg, c.arg}));
  };
  EXPECT_TRUE(checks(DType::f32, {2, 5}, {2, 3}, {2, 3}));
  EXPECT_FALSE(checks(DType::boolean, {2, 5}, {2, 3}, {2, 3}));
  EXPECT_FALSE(checks(DType::f32, {2, 5}, {2, 6}, {2, 6}));
  EXPECT_FALSE(checks(DType::f32, {2, 5}, {3, 3}, {3, 3}));
  EXPECT_FALSE(checks(DType::f32, {2, 5}, {2, 3}, {2, 2}));
  EXPECT_FALSE(checks(DType::f32, {5}, {3}, {3}));
}

TEST(ArgReduce, IsTheEvaluation) {
  std::mt19937 random(84);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      if (type == DType::boolean) continue;
      const int64_t rank = pick_between(random, 1, 4), axis = pick_between(random, 0, rank - 1);
      Dims dims = random_dims(rank, 0, 12, random);
      dims[static_cast<size_t>(axis)] = pick_between(random, 1, 9);
      compare_arg_reduce(type, dims, axis, random);
    }
}

TEST(ArgReduce, OfLongRowsIsTheEvaluation) {
  std::mt19937 random(85);
  for (const DType type : {DType::f32, DType::f16, DType::i64, DType::u8, DType::u64, DType::f64, DType::u32})
    for (int repeat = 0; repeat < 4; ++repeat) {
      compare_arg_reduce(type, {3, 1000}, 1, random);
      compare_arg_reduce(type, {1000, 3}, 0, random);
      compare_arg_reduce(type, {7, 600}, 0, random);
      compare_arg_reduce(type, {90, 20, 64}, 1, random);
    }
}

TEST(ArgReduce, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("arg_reduce");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {0, 0}, {-1, 0, 0}, {kMaxRank, 0, 0}, {0, 2, 0}, {0, 0, 2}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(86);
  const auto checks = [&](DType type, const Dims& x, const Dims& result) {
    TestTensor a = TestTensor::copy_of(hard_tensor(type, x, random), random),
               b = TestTensor::copy_of(hard_tensor(DType::i64, result, random), random);
    return static_cast<bool>(
        make_kernel("arg_reduce", ArgReduceParams{1})->check(std::vector{a.arg}, std::vector{b.arg}));
  };
  EXPECT_TRUE(checks(DType::f32, {2, 5}, {2}));
  EXPECT_TRUE(checks(DType::f32, {2, 5}, {2, 1}));
  EXPECT_FALSE(checks(DType::boolean, {2, 5}, {2}));
  EXPECT_FALSE(checks(DType::f32, {2, 5}, {5}));
  EXPECT_FALSE(checks(DType::f32, {2}, {2}));
  const Tensor empty = hard_tensor(DType::f32, {2, 0}, random), none = hard_tensor(DType::i64, {2, 1}, random);
  TestTensor a = TestTensor::copy_of(empty, random), b = TestTensor::copy_of(none, random);
  const Result<> refused = make_kernel("arg_reduce", ArgReduceParams{1})->check(std::vector{a.arg}, std::vector{b.arg});
  ArgReduceAttrs attrs;
  attrs.axis = 1;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, error_of_evaluation(attrs, {empty}));
}

}  // namespace
}  // namespace lathe::cpu
