// SPDX-License-Identifier: Apache-2.0
#include "quantization/level_range.h"

#include <gtest/gtest.h>

#include <random>

namespace lathe {
namespace {

Histogram of(float low, float high) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> values(low, high);
  Tensor tensor = *Tensor::allocate(DType::f32, {4096});
  for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<float>()[i] = values(random);
  tensor.mutable_as<float>()[0] = low, tensor.mutable_as<float>()[1] = high;
  Histogram histogram;
  EXPECT_TRUE(histogram.add(tensor));
  return histogram;
}

ActivationLevels levels(DType type, bool symmetric, CalibrationMethod method = CalibrationMethod::min_max) {
  return {.method = method, .type = type, .symmetric = symmetric};
}

constexpr bool kSymmetric = true, kAsymmetric = false;

TEST(LevelRange, OfBothSigns) {
  const Histogram histogram = of(-1, 3);
  EXPECT_EQ(histogram.lowest(), -1);
  EXPECT_EQ(histogram.highest(), 3);
  for (const auto& [type, zero] : {std::pair(DType::i8, 0), std::pair(DType::u8, 128)}) {
    const LevelScale scale = scale_of(histogram, levels(type, kSymmetric));
    EXPECT_EQ(scale.scale, static_cast<double>(3.0f / 127));
    EXPECT_EQ(scale.zero_point, zero);
  }
  const LevelScale u8 = scale_of(histogram, levels(DType::u8, kAsymmetric));
  EXPECT_EQ(u8.scale, static_cast<double>(4.0f / 255));
  EXPECT_EQ(u8.zero_point, 64);
  EXPECT_EQ(scale_of(histogram, levels(DType::i8, kAsymmetric)).zero_point, 64 - 128);
  EXPECT_EQ(u8.low, -1);
  EXPECT_EQ(u8.high, 3);
  const LevelScale f8 = scale_of(histogram, levels(DType::f8e4m3fn, kSymmetric));
  EXPECT_EQ(f8.scale, static_cast<double>(3.0f / 448));
  EXPECT_EQ(f8.zero_point, 0);
}

TEST(LevelRange, ZeroIsALevelOfEveryRange) {
  const LevelScale above = scale_of(of(2, 5), levels(DType::u8, kAsymmetric));
  EXPECT_EQ(above.zero_point, 0);
  EXPECT_EQ(above.scale, static_cast<double>(5.0f / 255));
  const LevelScale below = scale_of(of(-5, -2), levels(DType::u8, kAsymmetric));
  EXPECT_EQ(below.zero_point, 255);
  const LevelScale none = scale_of(of(0, 0), levels(DType::u8, kAsymmetric));
  EXPECT_EQ(none.scale, 1);
  EXPECT_EQ(none.zero_point, 0);
}

TEST(LevelRange, MethodsClip) {
  ActivationLevels how = levels(DType::i8, kAsymmetric, CalibrationMethod::percentile);
  how.percentile = 50;
  const LevelScale half = scale_of(of(-1, 3), how);
  EXPECT_EQ(half.low, -1);
  EXPECT_NEAR(half.high, 1, 0.1);  // magnitudes: half are below 1, where both signs are
  for (const bool symmetric : {true, false}) {
    const LevelScale entropy = scale_of(of(-1, 3), levels(DType::i8, symmetric, CalibrationMethod::entropy));
    EXPECT_GT(entropy.high, 2);
    EXPECT_LE(entropy.high, 3);
  }
}

}  // namespace
}  // namespace lathe
