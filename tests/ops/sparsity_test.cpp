// SPDX-License-Identifier: Apache-2.0
#include "ops/sparsity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe {
namespace {

Tensor floats(Dims dims, std::initializer_list<float> values) { return Tensor::of<float>(std::move(dims), values); }

TEST(Sparsity, TwoOfFourAlongADimension) {
  const Tensor rows = floats({2, 6}, {0, 1, 0, 2, 3, 4, 5, 0, 6, -0.0f, 0, 7});
  EXPECT_TRUE(is_sparse(rows, 1));  // the last group of a row has two elements
  EXPECT_TRUE(is_sparse(rows, 0));
  EXPECT_FALSE(is_sparse(floats({2, 6}, {0, 1, 0, 2, 3, 4, 5, 8, 6, 0, 0, 7}), 1));
  const Tensor columns = floats({4, 2}, {1, 1, 1, 1, 0, 1, 0, 0});
  EXPECT_FALSE(is_sparse(columns, 0));  // of the second column three are not zero
  EXPECT_TRUE(is_sparse(columns, 1));
}

TEST(Sparsity, ZerosOfEveryType) {
  EXPECT_TRUE(is_sparse(Tensor::of<int8_t>({4}, {0, -1, 127, 0}), 0));
  EXPECT_FALSE(is_sparse(Tensor::of<int8_t>({4}, {-128, -1, 127, 0}), 0));  // a sign alone is no zero of integers
  EXPECT_TRUE(is_sparse(Tensor::of<Half>({4}, {Half(-0.0f), Half(1), Half(-2), Half(0.0f)}), 0));
  EXPECT_FALSE(is_sparse(Tensor::of<Half>({4}, {Half(NAN), Half(1), Half(-2), Half(0.0f)}), 0));
}

TEST(Sparsity, TheLargestStay) {
  const Tensor weights = floats({5, 2}, {1, 4, -3, 4, 2, 4, -0.5f, 4, 9, 9});
  const Result<Tensor> left = pruned(weights, 0);
  ASSERT_TRUE(left);
  EXPECT_TRUE(identical(*left, floats({5, 2}, {0, 4, -3, 4, 2, 0, 0, 0, 9, 9})));  // of equal ones the first
  EXPECT_TRUE(is_sparse(*left, 0));
}

TEST(Sparsity, WhatIsSummedOver) {
  MatmulAttrs product;
  EXPECT_EQ(summed_dim(product, {3, 8, 16}), 1u);
  product.transpose_b = true;
  EXPECT_EQ(summed_dim(product, {3, 8, 16}), 2u);
  EXPECT_EQ(summed_dim(product, {8}), std::nullopt);
  const ConvolutionAttrs convolution;
  EXPECT_EQ(summed_dim(convolution, {8, 12, 3, 3}), 1u);
  EXPECT_EQ(summed_dim(convolution, {8, 6, 1, 1}), 1u);
  EXPECT_EQ(summed_dim(convolution, {8, 6, 3, 3}), std::nullopt);  // groups of four would have elements of two taps
  EXPECT_EQ(summed_dim(SoftmaxAttrs(), {8, 8}), std::nullopt);
}

}  // namespace
}  // namespace lathe
