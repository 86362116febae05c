// SPDX-License-Identifier: Apache-2.0
// The kernels movement and random, and the blocks and diagonals of the kernel copy, against the ops' plain evaluations.
#include "kernels/cpu/movement/movement.h"
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/random/random.h"
#include "ops/random_range.h"

namespace lathe::cpu {
namespace {

constexpr DType kIndexTypes[] = {DType::i64, DType::i32};

Tensor integers(const Ints& values, std::mt19937& random) {
  Tensor tensor = *Tensor::allocate(kIndexTypes[pick_between(random, 0, 1)], {static_cast<int64_t>(values.size())});
  from_doubles(std::vector<double>(values.begin(), values.end()), tensor);
  return tensor;
}

Ints random_axes(int64_t rank, std::mt19937& random) {
  Ints axes;
  for (int64_t d = 0; d < rank; ++d)
    if (pick_between(random, 0, 2) > 0) axes.push_back(d);
  std::shuffle(axes.begin(), axes.end(), random);
  for (int64_t& axis : axes) axis -= pick_between(random, 0, 1) * rank;
  return axes;
}

void compare_movement(Movement mode, const Attributes& attributes, const std::vector<Tensor>& inputs,
                      std::mt19937& random) {
  compare_with_evaluation("movement", MovementParams{mode}, attributes, inputs, random);
}

TEST(Movement, OfSlicesIsTheEvaluation) {
  std::mt19937 random(121);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      const Dims dims = random_dims(pick_between(random, 1, 4), repeat < 4 ? 0 : 1, repeat % 5 ? 6 : 30, random);
      const Ints axes = random_axes(static_cast<int64_t>(dims.size()), random);
      Ints starts, ends, steps;
      for (size_t i = 0; i < axes.size(); ++i) {
        starts.push_back(pick_between(random, -9, 9));
        ends.push_back(pick_between(random, 0, 3) ? pick_between(random, -9, 40) : -1000);
        steps.push_back(pick_between(random, 1, 3) * (pick_between(random, 0, 1) ? 1 : -1));
      }
      compare_movement(Movement::slice, SliceAttrs(),
                       {hard_tensor(type, dims, random), integers(starts, random), integers(ends, random),
                        integers(axes, random), integers(steps, random)},
                       random);
    }
}

TEST(Movement, OfPadsIsTheEvaluation) {
  std::mt19937 random(122);
  constexpr std::pair<PadMode, Movement> kModes[] = {{PadMode::constant, Movement::pad_constant},
                                                     {PadMode::reflect, Movement::pad_reflect},
                                                     {PadMode::edge, Movement::pad_edge},
                                                     {PadMode::wrap, Movement::pad_wrap}};
  for (int repeat = 0; repeat < 12; ++repeat)
    for (const DType type : kAllTypes)
      for (const auto& [attribute, mode] : kModes) {
        const bool constant = attribute == PadMode::constant;
        const Dims dims = random_dims(pick_between(random, 1, 4), constant && repeat < 3 ? 0 : 3, 9, random);
        const Ints axes = random_axes(static_cast<int64_t>(dims.size()), random);
        Ints pads;
        for (size_t i = 0; i < 2 * axes.size(); ++i)
          pads.push_back(pick_between(random, constant && repeat < 3 ? 0 : -1, repeat % 4 ? 3 : 20));
        PadAttrs attrs;
        attrs.mode = attribute;
        compare_movement(mode, attrs,
                         {hard_tensor(type, dims, random), integers(pads, random), hard_tensor(type, {}, random),
                          integers(axes, random)},
                         random);
      }
}

TEST(Movement, OfRepeatsIsTheEvaluation) {
  std::mt19937 random(123);
  for (int repeat = 0; repeat < 16; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 0, 4);
      const Dims dims = random_dims(rank, repeat < 3 ? 0 : 1, 6, random);
      Ints repeats;
      for (int64_t d = 0; d < rank; ++d) repeats.push_back(pick_between(random, repeat < 3 ? 0 : 1, 4));
      const Tensor x = hard_tensor(type, dims, random);
      compare_movement(Movement::repeat, TileAttrs(), {x, integers(repeats, random)}, random);
      Ints target = {3, 2};
      for (const int64_t dim : dims) target.push_back(dim == 1 ? pick_between(random, 1, 5) : dim);
      compare_movement(Movement::repeat, ExpandAttrs(), {x, Tensor::from<int64_t>({rank + 2}, target)}, random);
    }
}

TEST(Movement, WhatLeadsOutIsAnError) {
  std::mt19937 random(124);
  const Tensor x = hard_tensor(DType::f32, {3, 4}, random), y = hard_tensor(DType::f32, {3, 4}, random);
  const auto list = [](int64_t value) { return Tensor::of<int64_t>({1}, {value}); };
  const auto slices = [&](int64_t start, int64_t axis, int64_t step) {
    return error_of_run("movement", MovementParams{Movement::slice}, {x, list(start), list(99), list(axis), list(step)},
                        y, random);
  };
  EXPECT_EQ(slices(0, 1, 1), "");
  for (const auto& [start, axis, step] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {0, 2, 1}, {0, -3, 1}, {3, 0, -4}, {0, 1, INT64_MAX}, {INT64_MIN, 1, INT64_MIN}})
    EXPECT_NE(slices(start, axis, step), "") << start << ", " << axis << ", " << step;
  const std::vector<Tensor> inputs = {x, Tensor::of<int64_t>({4}, {0, -9, 0, 9}), hard_tensor(DType::f32, {}, random)};
  PadAttrs attrs;
  attrs.mode = PadMode::edge;
  EXPECT_EQ(error_of_run("movement", MovementParams{Movement::pad_edge}, inputs, y, random),
            error_of_evaluation(attrs, inputs));
}

TEST(Movement, RefusesWhatItCannotRun) {
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {-1}, {6}, {0, 0}})
    EXPECT_FALSE(find_kernel("movement")(Record{params, nullptr}));
  std::mt19937 random(125);
  const auto checks = [&](int64_t mode, const std::vector<Tensor>& inputs, const Tensor& output) {
    std::vector<TestTensor> strided;
    std::vector<TensorArg> args;
    strided.reserve(inputs.size());
    for (const Tensor& input : inputs) args.push_back(strided.emplace_back(TestTensor::copy_of(input, random)).arg);
    TestTensor result = TestTensor::copy_of(output, random);
    return static_cast<bool>(
        make_kernel("movement", MovementParams{static_cast<Movement>(mode)})->check(args, std::vector{result.arg}));
  };
  const auto make = [&](DType type, const Dims& dims) { return hard_tensor(type, dims, random); };
  const Tensor x = make(DType::f32, {3, 4}), one = make(DType::i64, {1}), two = make(DType::i64, {2});
  EXPECT_TRUE(checks(0, {x, one, one}, x));
  EXPECT_FALSE(checks(0, {x, one}, x));
  EXPECT_FALSE(checks(0, {x, one, two}, x));
  EXPECT_FALSE(checks(0, {x, one, one, x}, x));
  EXPECT_FALSE(checks(0, {x, one, one}, make(DType::f64, {3, 4})));
  EXPECT_FALSE(checks(0, {x, one, one}, make(DType::f32, {12})));
  EXPECT_TRUE(checks(1, {x, two}, x));
  EXPECT_FALSE(checks(1, {x, one}, x));
  EXPECT_FALSE(checks(1, {x, two, make(DType::f32, {2})}, x));
  EXPECT_FALSE(checks(1, {x, two, make(DType::f32, {}), two}, x));
  EXPECT_TRUE(checks(5, {x}, x));
  EXPECT_FALSE(checks(5, {x}, make(DType::f32, {12})));
}

TEST(Copy, OfBlocksIsTheEvaluation) {
  std::mt19937 random(126);
  for (int repeat = 0; repeat < 8; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t block = pick_between(random, 1, 4);
      Dims dims = random_dims(4, repeat == 0 ? 0 : 1, 5, random);
      DepthToSpaceAttrs attrs;
      attrs.block = block;
      attrs.mode = repeat % 2 ? DepthToSpaceMode::crd : DepthToSpaceMode::dcr;
      SpaceToDepthAttrs inverse;
      inverse.block = block;
      const Tensor channels = hard_tensor(type, {dims[0], dims[1] * block * block, dims[2], dims[3]}, random);
      const Tensor pixels = hard_tensor(type, {dims[0], dims[1], dims[2] * block, dims[3] * block}, random);
      compare_with_evaluation(
          "copy", CopyParams{.mode = repeat % 2 ? CopyMode::to_pixels_crd : CopyMode::to_pixels_dcr, .block = block},
          attrs, {channels}, random);
      compare_with_evaluation("copy", CopyParams{.mode = CopyMode::to_channels, .block = block}, inverse, {pixels},
                              random);
    }
}

TEST(Copy, OfDiagonalsIsTheEvaluation) {
  std::mt19937 random(127);
  for (const DType type : {DType::f32, DType::u8, DType::f16, DType::f64})
    for (const int64_t k : {0, 1, -2, 7, -7, 100}) {
      EyeLikeAttrs attrs;
      attrs.dtype = type;
      attrs.k = k;
      const Tensor one = random_integers(type, {}, 1, 1, random);
      uint64_t bits = 0;
      std::memcpy(&bits, one.data(), size_of(type));
      for (const Dims& dims : {Dims{5, 7}, Dims{7, 5}, Dims{1, 1}, Dims{0, 3}})
        compare_with_evaluation("copy", CopyParams{.mode = CopyMode::eye, .bits = bits, .k = k}, attrs,
                                {hard_tensor(DType::i64, dims, random)}, random);
    }
}

TEST(Random, IsTheEvaluation) {
  std::mt19937 random(128);
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const RandomOp op : {RandomOp::uniform, RandomOp::normal})
      for (const Ints& dims : {Ints{}, Ints{0, 3}, Ints{3, 5, 7}, Ints{2, 3000}}) {
        RandomAttrs attrs;
        attrs.op = op;
        attrs.dtype = type;
        attrs.a = -0.3;
        attrs.b = 1.7;
        const bool normal = op == RandomOp::normal;
        compare_with_evaluation(
            "random", RandomParams{normal, attrs.a, attrs.b, normal ? 0.0 : last_in_range(attrs), random_digits(type)},
            attrs,
            {Tensor::from<int64_t>({static_cast<int64_t>(dims.size())}, dims),
             Tensor::of<int64_t>({}, {pick_between(random, 0, 1000)})},
            random);
      }
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {2, 0, 0, 0, 24}, {0, 0, 0, 0, 0}})
    EXPECT_FALSE(find_kernel("random")(Record{params, nullptr}));
}

}  // namespace
}  // namespace lathe::cpu
