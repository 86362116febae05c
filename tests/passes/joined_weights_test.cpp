// SPDX-License-Identifier: Apache-2.0
#include "passes/joined_weights.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/rules.h"

namespace lathe {
namespace {

Tensor random_bytes(DType dtype, const Dims& dims, std::mt19937& generator) {
  Tensor tensor = *Tensor::allocate(dtype, dims);
  auto* const bytes = tensor.mutable_as<uint8_t>();
  std::generate(bytes, bytes + tensor.bytes(), [&] { return static_cast<uint8_t>(generator()); });
  return *tensor.with_clear_end();
}

Tensor concatenated(const std::vector<Tensor>& parts, int64_t axis) {
  ConcatAttrs attrs;
  attrs.axis = axis;
  return (*run_op(attrs, parts, 1))[0];
}

// Of two dimensions: element i of each of `turns` parts of the axis behind each other.
Tensor in_turns(const Tensor& whole, size_t axis, int64_t turns) {
  Dims apart = whole.dims();
  apart[axis] /= turns;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), turns);
  TransposeAttrs swap;
  swap.perm = {0, 1, 2};
  std::swap(swap.perm[axis], swap.perm[axis + 1]);
  return (*run_op(swap, std::vector{whole.reshaped(apart)}, 1))[0].reshaped(whole.dims());
}

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::i8, DType::i4};

TEST(JoinedWeights, LieBehindEachOther) {
  std::mt19937 generator(1);
  for (const DType dtype : kTypes)
    for (const size_t axis : {size_t{0}, size_t{1}})
      for (const int threads : {1, 3}) {
        std::vector<Tensor> parts;
        for (const int64_t extent : {6, 2, 10}) {
          Dims dims{4, 4};
          dims[axis] = extent;
          parts.push_back(random_bytes(dtype, dims, generator));
        }
        EXPECT_TRUE(identical(*joined(parts, axis, threads), concatenated(parts, static_cast<int64_t>(axis))))
            << name_of(dtype) << " axis " << axis;
      }
}

TEST(JoinedWeights, TakeTurns) {
  std::mt19937 generator(2);
  for (const DType dtype : kTypes)
    for (const size_t axis : {size_t{0}, size_t{1}})
      for (const size_t count : {1, 2, 3}) {
        std::vector<Tensor> parts;
        for (size_t i = 0; i < count; ++i) parts.push_back(random_bytes(dtype, {6, 8}, generator));
        const Tensor whole = concatenated(parts, static_cast<int64_t>(axis));
        EXPECT_TRUE(identical(*joined_in_turns(parts, axis, 2),
                              in_turns(whole, axis, count == 1 ? 2 : static_cast<int64_t>(count))))
            << name_of(dtype) << " axis " << axis << ", parts " << count;
      }
}

TEST(JoinedWeights, LargeOnesGoInPieces) {
  std::mt19937 generator(3);
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    const std::vector<Tensor> parts(2, random_bytes(DType::f32, {3, 300001}, generator));
    EXPECT_TRUE(identical(*joined(parts, axis, 3), concatenated(parts, static_cast<int64_t>(axis))));
    EXPECT_TRUE(identical(*joined_in_turns(parts, axis, 3),
                          in_turns(concatenated(parts, static_cast<int64_t>(axis)), axis, 2)));
  }
}

TEST(JoinedWeights, MayBeEmpty) {
  const std::vector<Tensor> parts(2, *Tensor::allocate(DType::f32, {0, 4}));
  EXPECT_EQ(joined(parts, 1, 2)->dims(), (Dims{0, 8}));
  EXPECT_EQ(joined_in_turns(parts, 1, 2)->dims(), (Dims{0, 8}));
}

}  // namespace
}  // namespace lathe
