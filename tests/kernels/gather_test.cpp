// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gather/gather.h"

#include "kernels/typed_tensor.h"

namespace lathe::cpu {
namespace {

Dims random_dims(int64_t rank, std::mt19937& random) {
  Dims dims;
  for (; rank > 0; --rank) dims.push_back(pick_between(random, 1, 5));
  return dims;
}

Tensor random_indices(DType type, const Dims& dims, int64_t extent, std::mt19937& random) {
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<int64_t> values(static_cast<size_t>(tensor.volume()));
  const int64_t low = class_of(type) == DTypeClass::signed_int ? -extent : 0;
  for (int64_t& value : values) value = pick_between(random, low, extent - 1);
  from_ints(values, tensor);
  return tensor;
}

constexpr DType kIndexTypes[] = {DType::i8, DType::i16, DType::i32, DType::i64,
                                 DType::u8, DType::u16, DType::u32, DType::u64};

TEST(Gather, IsTheEvaluation) {
  std::mt19937 random(61);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 1, 4);
      const Dims dims = random_dims(rank, random);
      GatherAttrs attrs;
      attrs.axis = pick_between(random, 0, rank - 1);
      const Tensor indices =
          random_indices(kIndexTypes[pick_between(random, 0, 7)], random_dims(pick_between(random, 0, 3), random),
                         dims[static_cast<size_t>(attrs.axis)], random);
      compare_with_evaluation("gather", {0, attrs.axis}, attrs, {random_tensor(type, dims, random), indices}, random);
    }
}

TEST(Gather, OfElementsIsTheEvaluation) {
  std::mt19937 random(62);
  for (int repeat = 0; repeat < 40; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 1, 4);
      const Dims dims = random_dims(rank, random);
      GatherElementsAttrs attrs;
      attrs.axis = pick_between(random, 0, rank - 1);
      Dims picked = dims;
      for (int64_t& dim : picked) dim = pick_between(random, 1, dim);
      picked[static_cast<size_t>(attrs.axis)] = pick_between(random, 1, 9);
      const Tensor indices = random_indices(kIndexTypes[pick_between(random, 0, 7)], picked,
                                            dims[static_cast<size_t>(attrs.axis)], random);
      compare_with_evaluation("gather", {1, attrs.axis}, attrs, {random_tensor(type, dims, random), indices}, random);
    }
}

TEST(Gather, IndicesOutsideAreAnError) {
  std::mt19937 random(63);
  const auto kernel = make_kernel("gather", {0, 0});
  StridedTensor data(random_tensor(DType::f32, {3, 4}, random), random);
  StridedTensor output(random_tensor(DType::f32, {2, 4}, random), random);
  for (const int64_t wrong : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    StridedTensor indices(Tensor::of<int64_t>({2}, {1, wrong}), random);
    const std::vector<TensorArg> inputs{data.arg(), indices.arg()}, outputs{output.arg()};
    ASSERT_TRUE(kernel->check(inputs, outputs));
    const Result<> run = kernel->try_run({inputs, outputs, nullptr, test_pool(1)});
    ASSERT_FALSE(run);
    EXPECT_NE(run.error().message.find(fmt::format("index {} is outside [-3, 3)", wrong)), std::string::npos);
  }
}

TEST(Gather, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("gather");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {2, 0}, {0}, {0, -1}, {0, kMaxRank}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(64);
  const auto checks = [&](const std::vector<int64_t>& params, const Dims& data, DType index, const Dims& indices,
                          const Dims& output) {
    StridedTensor a(random_tensor(DType::f32, data, random), random), b(random_tensor(index, indices, random), random),
        c(random_tensor(DType::f32, output, random), random);
    return static_cast<bool>(make_kernel("gather", params)->check(std::vector{a.arg(), b.arg()}, std::vector{c.arg()}));
  };
  EXPECT_TRUE(checks({0, 1}, {2, 3}, DType::i32, {4}, {2, 4}));
  EXPECT_FALSE(checks({0, 1}, {2, 3}, DType::f32, {4}, {2, 4}));
  EXPECT_FALSE(checks({0, 1}, {2, 3}, DType::i32, {4}, {4, 2}));
  EXPECT_FALSE(checks({0, 2}, {2, 3}, DType::i32, {4}, {2, 4}));
  EXPECT_FALSE(checks({0, 1}, {2, 3}, DType::i32, {4}, {2, 4, 1}));
  EXPECT_TRUE(checks({1, 1}, {2, 3}, DType::i32, {2, 5}, {2, 5}));
  EXPECT_FALSE(checks({1, 1}, {2, 3}, DType::i32, {3, 5}, {3, 5}));
}

}  // namespace
}  // namespace lathe::cpu
