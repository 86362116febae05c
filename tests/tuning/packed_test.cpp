// SPDX-License-Identifier: Apache-2.0
// Weights whose elements are moved when somebody asks for them.
#include <gtest/gtest.h>

#include <numeric>

#include "tuning/tactic.h"

namespace lathe {
namespace {

Tensor counted(const Dims& dims) {
  Tensor tensor = *Tensor::allocate(DType::f32, dims);
  std::iota(tensor.mutable_as<float>(), tensor.mutable_as<float>() + tensor.volume(), 1.0f);
  return tensor;
}

// [k, n] as [n, pitch].
Packing transposed(int64_t k, int64_t n, int64_t pitch) { return {{n, pitch}, {{0, 0, {n, k}, {1, n}, {pitch, 1}}}}; }

TEST(Packed, ElementsComeWhenTheyAreAskedFor) {
  for (const int64_t pitch : {3, 8})  // with zeros between rows, and without
    for (const int threads : {1, 3}) {
      const Packed packed = *Packed::later({transposed(3, 5, pitch), {counted({3, 5}), nullptr}});
      EXPECT_EQ(packed.dtype(), DType::f32);
      EXPECT_EQ(packed.dims(), (Dims{5, pitch}));
      EXPECT_EQ(packed.bytes(), static_cast<size_t>(5 * pitch) * sizeof(float));
      const Packed copy = packed;
      EXPECT_TRUE(identical(packed.content(threads), *packed.order->packing.apply(packed.order->weights.content)));
      EXPECT_EQ(copy.content().data(), packed.content().data());
      EXPECT_TRUE(identical(known_of(copy).content, packed.content()));
    }
}

TEST(Packed, NothingIsMovedBefore) {
  Tensor weights = counted({3, 5});
  const Packed packed = *Packed::later({transposed(3, 5, 8), {weights, nullptr}});
  weights.mutable_as<float>()[0] = -7;  // the same memory
  EXPECT_EQ(packed.content().as<float>()[0], -7);
}

TEST(Packed, OtherDimsHaveTheSameElements) {
  Packed packed = *Packed::later({transposed(3, 5, 4), {counted({3, 5}), nullptr}});
  const Packed before = packed;
  packed.reshape({1, 5, 4});
  EXPECT_EQ(packed.dims(), (Dims{1, 5, 4}));
  EXPECT_TRUE(identical(packed.content(), before.content().reshaped({1, 5, 4})));
  EXPECT_TRUE(identical(packed.content(), *packed.order->packing.apply(counted({3, 5}))));
}

TEST(Packed, LargeWeightsAreMovedByAllThreads) {
  const Packed packed = *Packed::later({transposed(1000, 3001, 1008), {counted({1000, 3001}), nullptr}});
  EXPECT_TRUE(identical(packed.content(4), *packed.order->packing.apply(packed.order->weights.content)));
}

TEST(Packed, OrdersOfOtherWeightsAreRefused) {
  EXPECT_FALSE(Packed::later({transposed(4, 5, 4), {counted({3, 5}), nullptr}}));
  EXPECT_FALSE(Packed::later({transposed(3, 5, 2), {counted({3, 5}), nullptr}}));
}

TEST(Packed, WhatIsComputedIsThere) {
  const Packed packed = counted({2, 2});
  EXPECT_FALSE(packed.order);
  EXPECT_TRUE(identical(packed.content(), counted({2, 2})));
}

}  // namespace
}  // namespace lathe
