// SPDX-License-Identifier: Apache-2.0
// The kernels cumulative, range, one_hot and trilu.
#include "kernels/cpu/cumulative/cumulative.h"
#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/one_hot/one_hot.h"
#include "kernels/cpu/trilu/trilu.h"

namespace lathe::cpu {
namespace {

constexpr DType kIndexTypes[] = {DType::i64, DType::i32, DType::i8, DType::u16};

TEST(Cumulative, IsTheEvaluation) {
  std::mt19937 random(91);
  for (int repeat = 0; repeat < 24; ++repeat)
    for (const DType type : kAllTypes) {
      if (type == DType::boolean) continue;
      const int64_t rank = pick_between(random, 1, 4);
      const Dims dims =
          random_dims(rank, repeat < 4 ? 0 : 1, repeat < 20 ? 5 : 90 / static_cast<int>(rank * rank), random);
      CumulativeAttrs attrs;
      attrs.op = repeat % 2 ? CumulativeOp::prod : CumulativeOp::sum;
      attrs.exclusive = pick_between(random, 0, 1) == 1;
      attrs.reverse = pick_between(random, 0, 1) == 1;
      const Tensor axis = random_integers(kIndexTypes[pick_between(random, 0, 3)], {}, -rank, rank - 1, random);
      compare_with_evaluation("cumulative", cumulative::Scan{repeat % 2 == 1, attrs.exclusive, attrs.reverse}, attrs,
                              {hard_tensor(type, dims, random), axis}, random);
    }
}

TEST(Cumulative, AnAxisThatThereIsNotIsAnError) {
  std::mt19937 random(92);
  const Tensor x = hard_tensor(DType::f32, {3, 4}, random);
  for (const int64_t axis : {int64_t{2}, int64_t{-3}, INT64_MAX})
    EXPECT_EQ(error_of_run("cumulative", cumulative::Scan{}, {x, Tensor::of<int64_t>({}, {axis})}, x, random),
              error_of_evaluation(CumulativeAttrs(), {x, Tensor::of<int64_t>({}, {axis})}));
}

TEST(Range, IsTheEvaluation) {
  std::mt19937 random(93);
  for (int repeat = 0; repeat < 10; ++repeat)
    for (const DType type : kAllTypes) {
      if (type == DType::boolean) continue;
      const auto number = [&](int64_t low, int64_t high) { return random_integers(type, {}, low, high, random); };
      compare_with_evaluation("range", {}, RangeAttrs(), {number(-9, 20), number(20, 120), number(1, 3)}, random);
      compare_with_evaluation("range", {}, RangeAttrs(), {number(5, 9), number(0, 5), number(1, 1)}, random);
    }
  for (const double delta : {0.1, -0.3}) {
    const auto number = [](double value) { return Tensor::of<float>({1}, {static_cast<float>(value)}); };
    compare_with_evaluation("range", {}, RangeAttrs(), {number(0.5), number(delta * 40000), number(delta)}, random);
  }
}

TEST(OneHot, IsTheEvaluation) {
  std::mt19937 random(94);
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const DType type : kAllTypes)
      for (const DType index_type : {DType::i64, DType::i32, DType::u8, DType::f32, DType::f16, DType::f64}) {
        const int64_t rank = pick_between(random, 0, 3), depth = pick_between(random, 0, 6);
        const Dims dims = random_dims(rank, repeat < 3 ? 0 : 1, 5, random);
        OneHotAttrs attrs;
        attrs.axis = pick_between(random, 0, rank);
        // Beyond both ends, and fractions, infinities and NaN of floats.
        const Tensor indices = repeat % 2 ? hard_tensor(index_type, dims, random)
                                          : random_integers(index_type, dims, -depth - 1, depth, random);
        compare_with_evaluation("one_hot", OneHotParams{static_cast<int>(attrs.axis)}, attrs,
                                {indices, Tensor::of<int64_t>({1}, {depth}), hard_tensor(type, {2}, random)}, random);
      }
}

TEST(Trilu, IsTheEvaluation) {
  std::mt19937 random(95);
  for (int repeat = 0; repeat < 30; ++repeat)
    for (const DType type : kAllTypes) {
      const Dims dims = random_dims(pick_between(random, 2, 4), repeat < 4 ? 0 : 1, 7, random);
      TriluAttrs attrs;
      attrs.upper = pick_between(random, 0, 1) == 1;
      std::vector<Tensor> inputs = {hard_tensor(type, dims, random)};
      if (repeat % 3) inputs.push_back(random_integers(DType::i64, {}, -8, 8, random));
      if (repeat == 1) inputs[1] = Tensor::of<int64_t>({1}, {INT64_MIN});
      compare_with_evaluation("trilu", TriluParams{attrs.upper}, attrs, inputs, random);
    }
}

TEST(Sequences, RefuseWhatTheyCannotRun) {
  for (const char* name : {"cumulative", "range", "one_hot", "trilu"})
    for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{-1}, {2, 2, 2}, {1, 1, 1, 1}})
      EXPECT_FALSE(find_kernel(name)(Record{params, nullptr})) << name;
  std::mt19937 random(96);
  const auto checks = [&](const char* name, const EncodedParams& params, const std::vector<Tensor>& inputs,
                          const Tensor& output) {
    std::vector<TestTensor> strided;
    std::vector<TensorArg> args;
    strided.reserve(inputs.size());
    for (const Tensor& input : inputs) args.push_back(strided.emplace_back(TestTensor::copy_of(input, random)).arg);
    TestTensor result = TestTensor::copy_of(output, random);
    return static_cast<bool>(make_kernel(name, params)->check(args, std::vector{result.arg}));
  };
  const auto floats = [&](const Dims& dims) { return hard_tensor(DType::f32, dims, random); };
  const Tensor one = Tensor::of<int64_t>({}, {1}), truth = hard_tensor(DType::boolean, {2, 3}, random);
  EXPECT_TRUE(checks("cumulative", cumulative::Scan{}, {floats({2, 3}), one}, floats({2, 3})));
  EXPECT_FALSE(checks("cumulative", cumulative::Scan{}, {floats({2, 3}), floats({})}, floats({2, 3})));
  EXPECT_FALSE(checks("cumulative", cumulative::Scan{}, {floats({2, 3}), one}, floats({3, 2})));
  EXPECT_FALSE(checks("cumulative", cumulative::Scan{}, {truth, one}, truth));
  EXPECT_TRUE(checks("range", {}, {floats({}), one, floats({1})}, floats({7})));
  EXPECT_FALSE(checks("range", {}, {floats({}), one, one}, floats({7})));
  EXPECT_FALSE(checks("range", {}, {floats({}), one, floats({2})}, floats({7})));
  EXPECT_TRUE(checks("one_hot", OneHotParams{0}, {one, one, floats({2})}, floats({7})));
  EXPECT_FALSE(checks("one_hot", OneHotParams{1}, {one, one, floats({2})}, floats({7})));
  EXPECT_FALSE(checks("one_hot", OneHotParams{0}, {one, one, floats({3})}, floats({7})));
  EXPECT_TRUE(checks("trilu", TriluParams{false}, {truth, one}, truth));
  EXPECT_FALSE(checks("trilu", TriluParams{false}, {truth, floats({})}, truth));
  EXPECT_FALSE(checks("trilu", TriluParams{false}, {floats({3})}, floats({3})));
}

}  // namespace
}  // namespace lathe::cpu
