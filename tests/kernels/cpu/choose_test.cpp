// SPDX-License-Identifier: Apache-2.0
// Copies whose sizes only running tells: kernel `choose`, and `copy` where it reshapes.
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
namespace {

const std::vector<int64_t> kReshape = encode_params(CopyParams{.mode = CopyMode::reshape});

TEST(Choose, IsTheEvaluation) {
  std::mt19937 random(311);
  for (int repeat = 0; repeat < 8; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 0, 4);
      const Tensor yes = hard_tensor(type, random_dims(rank, repeat < 2 ? 0 : 1, 9, random), random);
      const Tensor no = hard_tensor(type, random_dims(rank, 1, 9, random), random);
      compare_with_evaluation("choose", {}, ChooseAttrs(), {Tensor::of<bool>({}, {repeat % 2 == 0}), yes, no}, random);
    }
}

TEST(Choose, RefusesWhatItCannotRun) {
  const Program program = program_of("in=1; r1=relu r0; out r1");
  EXPECT_FALSE(find_kernel("choose")(Record{{}, &program}));
  const std::vector<int64_t> one = {1};
  EXPECT_FALSE(find_kernel("choose")(Record{one, nullptr}));
  std::mt19937 random(312);
  const auto checks = [&](DType condition, const Dims& extent, DType yes, const Dims& yes_dims, DType type) {
    const TestTensor c = TestTensor::copy_of(hard_tensor(condition, extent, random), random),
                     a = TestTensor::copy_of(hard_tensor(yes, yes_dims, random), random),
                     b = TestTensor::copy_of(hard_tensor(DType::f32, {2, 5}, random), random),
                     y = TestTensor::copy_of(hard_tensor(type, {2, 3}, random), random);
    const std::vector<TensorArg> inputs{c.arg, a.arg, b.arg}, outputs{y.arg};
    return static_cast<bool>(make_kernel("choose", {})->check(inputs, outputs));
  };
  const DType b = DType::boolean, f = DType::f32;
  EXPECT_TRUE(checks(b, {1}, f, {2, 3}, f));
  EXPECT_FALSE(checks(f, {}, f, {2, 3}, f));
  EXPECT_FALSE(checks(b, {2}, f, {2, 3}, f));
  EXPECT_FALSE(checks(b, {}, DType::f64, {2, 3}, f));
  EXPECT_FALSE(checks(b, {}, f, {2, 3}, DType::i32));
  EXPECT_FALSE(checks(b, {}, f, {3, 3}, f));
  // What is chosen must have the output's dims, which only running tells.
  const Tensor yes = hard_tensor(f, {2, 3}, random), no = hard_tensor(f, {2, 5}, random);
  const auto error = [&](bool condition) {
    return error_of_run("choose", {}, {Tensor::of<bool>({}, {condition}), yes, no}, yes, random);
  };
  EXPECT_EQ(error(true), "");
  EXPECT_NE(error(false), "");
}

TEST(Reshape, IsTheEvaluation) {
  std::mt19937 random(313);
  const std::vector<std::pair<Dims, Ints>> cases = {{{6, 4, 5}, {0, -1}},      {{6, 4, 5}, {-1}},  {{6, 4, 5}, {8, 15}},
                                                    {{7, 1, 9}, {9, 1, 7, 1}}, {{1}, {}},          {{0, 4}, {2, -1, 4}},
                                                    {{300, 211}, {211, -1}},   {{2, 40000}, {-1}}, {{}, {1, 1}}};
  for (int repeat = 0; repeat < 4; ++repeat)
    for (const DType type : kAllTypes)
      for (const auto& [dims, shape] : cases) {
        const Tensor target = Tensor::from<int64_t>({static_cast<int64_t>(shape.size())}, shape);
        compare_with_evaluation("copy", kReshape, ReshapeAttrs(), {hard_tensor(type, dims, random), target}, random);
      }
}

TEST(Reshape, RefusesWhatItCannotRun) {
  std::mt19937 random(314);
  const std::vector<int64_t> params = {static_cast<int64_t>(CopyMode::reshape)};
  EXPECT_FALSE(find_kernel("copy")(Record{params, nullptr}));
  const auto checks = [&](std::vector<DType> inputs, DType type, const Dims& dims) {
    std::vector<TestTensor> strided;
    std::vector<TensorArg> args;
    strided.reserve(inputs.size());
    for (const DType each : inputs)
      args.push_back(strided.emplace_back(TestTensor::copy_of(hard_tensor(each, {2, 6}, random), random)).arg);
    const TestTensor y = TestTensor::copy_of(hard_tensor(type, dims, random), random);
    return static_cast<bool>(make_kernel("copy", kReshape)->check(args, std::vector{y.arg}));
  };
  EXPECT_TRUE(checks({DType::f32, DType::i64}, DType::f32, {3, 4}));
  EXPECT_FALSE(checks({DType::f32, DType::i64}, DType::f32, {3, 5}));
  EXPECT_FALSE(checks({DType::f32, DType::i64}, DType::f64, {3, 4}));
  EXPECT_FALSE(checks({DType::f32, DType::i64, DType::i64}, DType::f32, {3, 4}));
}

}  // namespace
}  // namespace lathe::cpu
