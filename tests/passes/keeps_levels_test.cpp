// SPDX-License-Identifier: Apache-2.0
// Levels that are dequantised and quantised again come back, for every level of 8 and 16 bits, where keeps_levels()
// says so; and do not for some scale of the types of which it never says so.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/rules.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

struct Format {
  DType type;
  double least, most;  // scales that are normal numbers and whose products with all levels are finite
};

Tensor scalar(DType type, double value) {
  Tensor tensor = *Tensor::allocate(type, {});
  write_doubles({&value, 1}, 0, tensor);
  return tensor;
}

// Every level of the type.
Tensor all_levels(DType type) {
  const IntegerRange range = *quantized_range(type);
  Tensor levels = *Tensor::allocate(type, {static_cast<int64_t>(range.high - range.low) + 1});
  std::vector<double> values;
  for (double level = range.low; level <= range.high; ++level) values.push_back(level);
  write_doubles(values, 0, levels);
  return levels;
}

// How many levels change.
int64_t changed(const Tensor& levels, DType floats, double scale, double zero_point) {
  DequantizeAttrs down;
  down.to = floats;
  QuantizeAttrs up;
  up.to = levels.dtype();
  const Tensor s = scalar(floats, scale), z = scalar(levels.dtype(), zero_point);
  const Tensor there = run_op(down, std::vector{levels, s, z}, 1)->front();
  const Tensor back = run_op(up, std::vector{there, s, z}, 1)->front();
  int64_t count = 0;
  for (int64_t i = 0; i < levels.volume(); ++i) count += levels.at(i) != back.at(i);
  return count;
}

double random_scale(const Format& format, std::mt19937& random) {
  const double low = std::log2(format.least), high = std::log2(format.most);
  const double wanted = std::exp2(std::uniform_real_distribution<double>(low, high)(random));
  return scalar(format.type, wanted).at_double(0);
}

void expect_levels_kept(const Format& format, DType integers, int scales, std::mt19937& random) {
  const Tensor levels = all_levels(integers);
  const IntegerRange range = *quantized_range(integers);
  for (int i = 0; i < scales + 4; ++i) {
    double scale = random_scale(format, random);
    if (i == 0) scale = format.least;
    if (i == 1) scale = scalar(format.type, format.most / (range.high - range.low)).at_double(0);
    if (!keeps_levels(scale, integers, format.type)) {
      ASSERT_TRUE(i == 1 || scale > format.most / (range.high - range.low)) << scale;
      continue;
    }
    for (const double zero_point : {range.low, range.high, std::floor((range.low + range.high) / 2), 0.0})
      ASSERT_EQ(changed(levels, format.type, scale, zero_point), 0)
          << name_of(integers) << " in " << name_of(format.type) << ", scale " << scale << ", zero " << zero_point;
  }
}

constexpr Format kFloats[] = {{DType::f32, 0x1p-126, 0x1.fffffep127},
                              {DType::f16, 0x1p-14, 65504},
                              {DType::f64, 0x1p-1022, 0x1.fffffffffffffp1023}};

TEST(KeepsLevels, OfEightBits) {
  std::mt19937 random(1);
  for (const Format& format : kFloats)
    for (const DType integers : {DType::i8, DType::u8}) expect_levels_kept(format, integers, 1000, random);
}

TEST(KeepsLevels, OfSixteenBits) {
  std::mt19937 random(2);
  for (const DType integers : {DType::i16, DType::u16}) expect_levels_kept(kFloats[0], integers, 20, random);
}

// Every scale of 8 bits' products in f16.
TEST(KeepsLevels, OfEightBitsForEveryScaleOfF16) {
  const Tensor levels = all_levels(DType::u8);
  for (int step = 0; step < 1024; ++step) {  // other exponents differ by powers of two
    const double scale = std::ldexp(1024 + step, -14);
    ASSERT_TRUE(keeps_levels(scale, DType::u8, DType::f16));
    ASSERT_EQ(changed(levels, DType::f16, scale, 0), 0) << scale;
    ASSERT_EQ(changed(levels, DType::f16, scale, 255), 0) << scale;
  }
}

TEST(KeepsLevels, NotWhereTheyAreLost) {
  EXPECT_FALSE(keeps_levels(0x1p-127, DType::i8, DType::f32));
  EXPECT_FALSE(keeps_levels(0x1p121, DType::i8, DType::f32));
  EXPECT_FALSE(keeps_levels(0, DType::i8, DType::f32));
  EXPECT_FALSE(keeps_levels(HUGE_VAL, DType::i8, DType::f32));
  EXPECT_FALSE(keeps_levels(std::nan(""), DType::i8, DType::f32));
  EXPECT_FALSE(keeps_levels(1, DType::i32, DType::f32));
  EXPECT_GT(changed(all_levels(DType::i8), DType::f32, 0x1p122, 0), 0);  // products overflow
  int64_t narrow = 0, wide = 0;
  for (int step = 0; step < 128; ++step) {
    const double scale = (128 + step) / 128.0;
    EXPECT_FALSE(keeps_levels(scale, DType::i8, DType::bf16));
    narrow += changed(all_levels(DType::i8), DType::bf16, scale, 0);
    EXPECT_FALSE(keeps_levels(scale, DType::i16, DType::f16));
    wide += changed(all_levels(DType::i16), DType::f16, scale / 1024, 0);
  }
  EXPECT_GT(narrow, 0);
  EXPECT_GT(wide, 0);
}

}  // namespace
}  // namespace lathe
