// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/scatter/scatter.h"

#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
namespace {

constexpr DType kIndexTypes[] = {DType::i64, DType::i32, DType::i8, DType::u16};
constexpr ScatterReduction kReductions[] = {ScatterReduction::none, ScatterReduction::add, ScatterReduction::mul,
                                            ScatterReduction::max, ScatterReduction::min};
constexpr ScatterParams::Reduction reduction_of(int64_t r) { return static_cast<ScatterParams::Reduction>(r); }

// Few places for many updates, so that the order of those that meet counts.
TEST(Scatter, OfElementsIsTheEvaluation) {
  std::mt19937 random(71);
  for (int repeat = 0; repeat < 6; ++repeat)
    for (const DType type : kAllTypes)
      for (int64_t r = 0; r < 5; ++r) {
        const int64_t rank = pick_between(random, 1, 4);
        const Dims dims = random_dims(rank, 1, 5, random);
        ScatterElementsAttrs attrs;
        attrs.axis = pick_between(random, 0, rank - 1);
        attrs.reduction = kReductions[r];
        const auto axis = static_cast<size_t>(attrs.axis);
        Dims picked = dims;
        for (int64_t& dim : picked) dim = pick_between(random, 1, dim);
        picked[axis] = pick_between(random, 0, repeat == 0 ? 400 : 9);
        const Tensor indices =
            random_integers(kIndexTypes[pick_between(random, 0, 3)], picked, -dims[axis], dims[axis] - 1, random);
        compare_with_evaluation(
            "scatter", ScatterParams{ScatterMode::elements, static_cast<int>(attrs.axis), reduction_of(r)}, attrs,
            {hard_tensor(type, dims, random), indices, hard_tensor(type, picked, random)}, random);
      }
}

TEST(Scatter, OfTuplesIsTheEvaluation) {
  std::mt19937 random(72);
  for (int repeat = 0; repeat < 6; ++repeat)
    for (const DType type : kAllTypes)
      for (int64_t r = 0; r < 5; ++r) {
        const int64_t rank = pick_between(random, 1, 4), depth = pick_between(random, 0, rank);
        const int64_t extent = pick_between(random, 1, 4);
        const Dims dims(static_cast<size_t>(rank), extent);
        Dims shape = random_dims(pick_between(random, 0, 2), 0, 6, random);
        if (repeat == 0) shape.push_back(300);
        Dims updates = shape;
        shape.push_back(depth);
        updates.insert(updates.end(), dims.begin() + depth, dims.end());
        const Tensor indices =
            random_integers(kIndexTypes[pick_between(random, 0, 3)], shape, -extent, extent - 1, random);
        ScatterNdAttrs attrs;
        attrs.reduction = kReductions[r];
        compare_with_evaluation("scatter", ScatterParams{ScatterMode::tuples, 0, reduction_of(r)}, attrs,
                                {hard_tensor(type, dims, random), indices, hard_tensor(type, updates, random)}, random);
      }
}

// Enough work for all threads.
TEST(Scatter, OfManyUpdatesIsTheEvaluation) {
  std::mt19937 random(73);
  for (int64_t r = 0; r < 5; ++r) {
    ScatterElementsAttrs elements;
    elements.axis = 1;
    elements.reduction = kReductions[r];
    compare_with_evaluation(
        "scatter", ScatterParams{ScatterMode::elements, 1, reduction_of(r)}, elements,
        {hard_tensor(DType::f32, {90, 50}, random), random_integers(DType::i64, {90, 700}, -50, 49, random),
         hard_tensor(DType::f32, {90, 700}, random)},
        random);
    ScatterNdAttrs tuples;
    tuples.reduction = kReductions[r];
    compare_with_evaluation(
        "scatter", ScatterParams{ScatterMode::tuples, 0, reduction_of(r)}, tuples,
        {hard_tensor(DType::f32, {20, 500}, random), random_integers(DType::i64, {90, 1}, -20, 19, random),
         hard_tensor(DType::f32, {90, 500}, random)},
        random);
  }
}

TEST(Scatter, ErrorsAreThoseOfTheEvaluation) {
  std::mt19937 random(74);
  const Tensor data = hard_tensor(DType::f32, {3, 4}, random);
  for (const int64_t wrong : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    const Tensor indices = Tensor::of<int64_t>({1, 1}, {wrong});
    const Tensor one = hard_tensor(DType::f32, {1, 1}, random), row = hard_tensor(DType::f32, {1, 4}, random);
    EXPECT_EQ(error_of_run("scatter", ScatterParams{ScatterMode::elements, 0, reduction_of(1)}, {data, indices, one},
                           data, random),
              error_of_evaluation(ScatterElementsAttrs(), {data, indices, one}));
    EXPECT_EQ(error_of_run("scatter", ScatterParams{ScatterMode::tuples, 0, reduction_of(0)}, {data, indices, row},
                           data, random),
              error_of_evaluation(ScatterNdAttrs(), {data, indices, row}));
  }
}

TEST(Scatter, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("scatter");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {2, 0, 0}, {0, 0}, {0, -1, 0}, {0, kMaxRank, 0}, {0, 0, 5}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(75);
  const auto checks = [&](int64_t mode, const Dims& data, DType index, const Dims& indices, const Dims& updates) {
    TestTensor a = TestTensor::copy_of(hard_tensor(DType::f32, data, random), random),
               b = TestTensor::copy_of(hard_tensor(index, indices, random), random),
               c = TestTensor::copy_of(hard_tensor(DType::f32, updates, random), random),
               d = TestTensor::copy_of(hard_tensor(DType::f32, data, random), random);
    return static_cast<bool>(make_kernel("scatter", ScatterParams{static_cast<ScatterMode>(mode)})
                                 ->check(std::vector{a.arg, b.arg, c.arg}, std::vector{d.arg}));
  };
  EXPECT_TRUE(checks(0, {2, 3}, DType::i32, {5, 3}, {5, 3}));
  EXPECT_FALSE(checks(0, {2, 3}, DType::f32, {5, 3}, {5, 3}));
  EXPECT_FALSE(checks(0, {2, 3}, DType::i32, {5, 4}, {5, 4}));
  EXPECT_FALSE(checks(0, {2, 3}, DType::i32, {5, 3}, {4, 3}));
  EXPECT_TRUE(checks(1, {2, 3}, DType::i32, {5, 1}, {5, 3}));
  EXPECT_FALSE(checks(1, {2, 3}, DType::i32, {5, 1}, {5, 2}));
  EXPECT_FALSE(checks(1, {2, 3}, DType::i32, {5, 3}, {5}));
  EXPECT_FALSE(checks(1, {2, 3}, DType::i32, {}, {2, 3}));
}

}  // namespace
}  // namespace lathe::cpu
