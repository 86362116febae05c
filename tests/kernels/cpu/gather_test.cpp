// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gather/gather.h"

#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
namespace {

Tensor random_indices(DType type, const Dims& dims, int64_t extent, std::mt19937& random) {
  return random_integers(type, dims, -extent, extent - 1, random);
}

constexpr DType kIndexTypes[] = {DType::i8, DType::i16, DType::i32, DType::i64,
                                 DType::u8, DType::u16, DType::u32, DType::u64};

TEST(Gather, IsTheEvaluation) {
  std::mt19937 random(61);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 1, 4);
      const Dims dims = random_dims(rank, 1, 5, random);
      GatherAttrs attrs;
      attrs.axis = pick_between(random, 0, rank - 1);
      const Tensor indices =
          random_indices(kIndexTypes[pick_between(random, 0, 7)], random_dims(pick_between(random, 0, 3), 1, 5, random),
                         dims[static_cast<size_t>(attrs.axis)], random);
      compare_with_evaluation("gather", GatherParams{GatherMode::gather, static_cast<int>(attrs.axis)}, attrs,
                              {hard_tensor(type, dims, random), indices}, random);
    }
}

TEST(Gather, OfElementsIsTheEvaluation) {
  std::mt19937 random(62);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 1, 4);
      const Dims dims = random_dims(rank, 1, 5, random);
      GatherElementsAttrs attrs;
      attrs.axis = pick_between(random, 0, rank - 1);
      Dims picked = dims;
      for (int64_t& dim : picked) dim = pick_between(random, 1, dim);
      picked[static_cast<size_t>(attrs.axis)] = pick_between(random, 1, 9);
      const Tensor indices = random_indices(kIndexTypes[pick_between(random, 0, 7)], picked,
                                            dims[static_cast<size_t>(attrs.axis)], random);
      compare_with_evaluation("gather", GatherParams{GatherMode::elements, static_cast<int>(attrs.axis)}, attrs,
                              {hard_tensor(type, dims, random), indices}, random);
    }
}

// Tuples of 0 to all of data's dimensions, after some that data and indices share; rows longer than a block.
TEST(Gather, OfTuplesIsTheEvaluation) {
  std::mt19937 random(65);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 1, 4), batch = pick_between(random, 0, rank - 1);
      const int64_t depth = pick_between(random, 0, rank - batch);
      const Dims dims = random_dims(rank, 1, 5, random);
      Dims shape(dims.begin(), dims.begin() + batch);
      for (int64_t d = pick_between(random, 0, 2); d > 0; --d) shape.push_back(pick_between(random, 1, 7));
      if (repeat == 0) shape.push_back(300);
      shape.push_back(depth);
      const DType index_type = kIndexTypes[pick_between(random, 0, 7)];
      Tensor indices = *Tensor::allocate(index_type, shape);
      std::vector<int64_t> values(static_cast<size_t>(indices.volume()));
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t extent = dims[static_cast<size_t>(batch) + i % static_cast<size_t>(depth)];
        values[i] = pick_between(random, class_of(index_type) == DTypeClass::signed_int ? -extent : 0, extent - 1);
      }
      from_ints(values, indices);
      GatherNdAttrs attrs;
      attrs.batch_dims = batch;
      compare_with_evaluation("gather", GatherParams{GatherMode::tuples, static_cast<int>(batch)}, attrs,
                              {hard_tensor(type, dims, random), indices}, random);
    }
}

TEST(Gather, ErrorsAreThoseOfTheEvaluation) {
  std::mt19937 random(66);
  const Tensor data = hard_tensor(DType::f32, {3, 4}, random);
  const Tensor tuples = Tensor::of<int64_t>({2, 2}, {1, 2, 0, 4}), single = Tensor::of<int64_t>({1, 1}, {-4});
  EXPECT_EQ(error_of_run("gather", GatherParams{GatherMode::tuples, 0}, {data, tuples},
                         hard_tensor(DType::f32, {2}, random), random),
            error_of_evaluation(GatherNdAttrs(), {data, tuples}));
  EXPECT_EQ(error_of_run("gather", GatherParams{GatherMode::elements, 0}, {data, single},
                         hard_tensor(DType::f32, {1, 1}, random), random),
            error_of_evaluation(GatherElementsAttrs(), {data, single}));
  // Of results without elements, too.
  for (const Dims& dims : {Dims{3, 0}, Dims{3, 4, 0}}) {
    const Tensor empty = hard_tensor(DType::f32, dims, random), list = Tensor::of<int64_t>({2}, {2, 3});
    const Tensor pairs = Tensor::of<int64_t>({2, 1}, {2, -4});
    Dims result = dims;
    result[0] = 2;
    const Tensor output = hard_tensor(DType::f32, result, random);
    EXPECT_EQ(error_of_run("gather", GatherParams{GatherMode::gather, 0}, {empty, list}, output, random),
              error_of_evaluation(GatherAttrs(), {empty, list}));
    EXPECT_EQ(error_of_run("gather", GatherParams{GatherMode::tuples, 0}, {empty, pairs}, output, random),
              error_of_evaluation(GatherNdAttrs(), {empty, pairs}));
  }
  GatherAttrs second;
  second.axis = 1;
  const Tensor rows = hard_tensor(DType::f32, {0, 3}, random), four = Tensor::of<int64_t>({1}, {4});
  EXPECT_EQ(error_of_run("gather", GatherParams{GatherMode::gather, 1}, {rows, four},
                         hard_tensor(DType::f32, {0, 1}, random), random),
            error_of_evaluation(second, {rows, four}));
}

TEST(Gather, IndicesOutsideAreAnError) {
  std::mt19937 random(63);
  const auto kernel = make_kernel("gather", GatherParams{GatherMode::gather, 0});
  TestTensor data = TestTensor::copy_of(hard_tensor(DType::f32, {3, 4}, random), random);
  TestTensor output = TestTensor::copy_of(hard_tensor(DType::f32, {2, 4}, random), random);
  for (const int64_t wrong : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    TestTensor indices = TestTensor::copy_of(Tensor::of<int64_t>({2}, {1, wrong}), random);
    const std::vector<TensorArg> inputs{data.arg, indices.arg}, outputs{output.arg};
    ASSERT_TRUE(kernel->check(inputs, outputs));
    const Result<> run = kernel->try_run({inputs, outputs, nullptr, pool_of(1)});
    ASSERT_FALSE(run);
    EXPECT_NE(run.error().message.find(fmt::format("index {} is outside [-3, 3)", wrong)), std::string::npos);
  }
}

TEST(Gather, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("gather");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {3, 0}, {0}, {0, -1}, {0, kMaxRank}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(64);
  const auto checks = [&](const GatherParams& params, const Dims& data, DType index, const Dims& indices,
                          const Dims& output) {
    TestTensor a = TestTensor::copy_of(hard_tensor(DType::f32, data, random), random),
               b = TestTensor::copy_of(hard_tensor(index, indices, random), random),
               c = TestTensor::copy_of(hard_tensor(DType::f32, output, random), random);
    return static_cast<bool>(make_kernel("gather", params)->check(std::vector{a.arg, b.arg}, std::vector{c.arg}));
  };
  EXPECT_TRUE(checks({GatherMode::gather, 1}, {2, 3}, DType::i32, {4}, {2, 4}));
  EXPECT_FALSE(checks({GatherMode::gather, 1}, {2, 3}, DType::f32, {4}, {2, 4}));
  EXPECT_FALSE(checks({GatherMode::gather, 1}, {2, 3}, DType::i32, {4}, {4, 2}));
  EXPECT_FALSE(checks({GatherMode::gather, 2}, {2, 3}, DType::i32, {4}, {2, 4}));
  EXPECT_FALSE(checks({GatherMode::gather, 1}, {2, 3}, DType::i32, {4}, {2, 4, 1}));
  EXPECT_TRUE(checks({GatherMode::elements, 1}, {2, 3}, DType::i32, {2, 5}, {2, 5}));
  EXPECT_FALSE(checks({GatherMode::elements, 1}, {2, 3}, DType::i32, {3, 5}, {3, 5}));
  EXPECT_TRUE(checks({GatherMode::tuples, 0}, {2, 3}, DType::i32, {5, 1}, {5, 3}));
  EXPECT_TRUE(checks({GatherMode::tuples, 1}, {2, 3}, DType::i32, {2, 5, 1}, {2, 5}));
  EXPECT_FALSE(checks({GatherMode::tuples, 0}, {2, 3}, DType::i32, {5, 3}, {5}));
  EXPECT_FALSE(checks({GatherMode::tuples, 1}, {2, 3}, DType::i32, {3, 5, 1}, {3, 5}));
  EXPECT_FALSE(checks({GatherMode::tuples, 0}, {2, 3}, DType::i32, {5, 1}, {5, 2}));
  EXPECT_FALSE(checks({GatherMode::tuples, 0}, {2, 3}, DType::i32, {}, {2, 3}));
}

}  // namespace
}  // namespace lathe::cpu
