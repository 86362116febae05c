// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lathe {
namespace {

TEST(Half, EveryFiniteValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(half);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value))));
    else
      ASSERT_EQ(Half(value).bits, half.bits) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(Half(2049.0f).bits, Half(2048.0f).bits);
  EXPECT_EQ(Half(2051.0f).bits, Half(2052.0f).bits);
  EXPECT_EQ(static_cast<float>(Half(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Half(65520.0f))));
  EXPECT_EQ(Half(0x1p-25f).bits, 0);
  EXPECT_EQ(Half(0x1.8p-25f).bits, 1);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1.8p-7f)), 1.0f + 0x1p-6f);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(DType, NamesRoundTrip) {
  for (int number = 1; dtype_from_number(number); ++number) {
    const DType type = *dtype_from_number(number);
    EXPECT_EQ(dtype_from_name(name_of(type)), type);
    EXPECT_GT(size_of(type), 0u);
  }
  EXPECT_FALSE(dtype_from_name("f33"));
  EXPECT_FALSE(dtype_from_number(0));
}

}  // namespace
}  // namespace lathe
