// SPDX-License-Identifier: Apache-2.0
// Every code of every storage type, and what lies between neighbouring numbers. tests/onnx/storage_types_cli_test.py
// compares the same conversions with those of the package ml_dtypes.
#include "base/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lathe {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> storage_types() {
  std::vector<DType> types;
  for (int number = 1; dtype_from_number(number); ++number)
    if (is_storage_only(*dtype_from_number(number))) types.push_back(*dtype_from_number(number));
  return types;
}

int count_of(DType type) { return 1 << bits_of(type); }

bool is_float(DType type) { return name_of(type)[0] == 'f' && type != DType::f8e8m0; }

bool has_negative_zero(DType type) { return decode(type, static_cast<uint8_t>(count_of(type) / 2)) == 0; }

// The finite number nearest to the value, found by looking at all of them; of two, the one with the even code.
uint8_t nearest(DType type, double value) {
  int best = -1;
  double distance = kInf;
  for (int code = 0; code < count_of(type); ++code) {
    const double number = decode(type, static_cast<uint8_t>(code));
    const bool other_zero = number == 0 && std::signbit(number) != std::signbit(value);
    if (!std::isfinite(number) || (other_zero && has_negative_zero(type))) continue;
    const double apart = std::fabs(number - value);
    if (apart < distance || (apart == distance && code % 2 == 0)) best = code, distance = apart;
  }
  return static_cast<uint8_t>(best);
}

TEST(Encoding, EachTypeHasItsLargestAndSmallestNumbers) {
  struct Row {
    DType type;
    double largest, least_normal, least;
    uint8_t code_of_largest;
  };
  for (const Row& row :
       {Row{DType::f8e4m3fn, 448, 0x1p-6, 0x1p-9, 0x7e}, Row{DType::f8e4m3fnuz, 240, 0x1p-7, 0x1p-10, 0x7f},
        Row{DType::f8e5m2, 57344, 0x1p-14, 0x1p-16, 0x7b}, Row{DType::f8e5m2fnuz, 57344, 0x1p-15, 0x1p-17, 0x7f},
        Row{DType::f4e2m1, 6, 1, 0.5, 7}}) {
    SCOPED_TRACE(name_of(row.type));
    const int mantissa = static_cast<int>(std::log2(row.least_normal / row.least));
    EXPECT_EQ(decode(row.type, 1), row.least);
    EXPECT_EQ(decode(row.type, static_cast<uint8_t>(1 << mantissa)), row.least_normal);
    EXPECT_EQ(decode(row.type, row.code_of_largest), row.largest);
    double most = 0;
    for (int code = 0; code < count_of(row.type); ++code) {
      const double value = decode(row.type, static_cast<uint8_t>(code));
      if (std::isfinite(value)) most = std::max(most, value);
    }
    EXPECT_EQ(most, row.largest);
  }
  EXPECT_EQ(decode(DType::f8e8m0, 0), 0x1p-127);
  EXPECT_EQ(decode(DType::f8e8m0, 254), 0x1p127);
  EXPECT_TRUE(std::isnan(decode(DType::f8e8m0, 255)));
  EXPECT_EQ(decode(DType::f8e5m2, 0xfc), -kInf);
}

TEST(Encoding, EveryNumberHasItsCode) {
  for (const DType type : storage_types())
    for (int code = 0; code < count_of(type); ++code) {
      const double value = decode(type, static_cast<uint8_t>(code));
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(decode(type, encode(type, value)))) << name_of(type) << code;
      } else {
        ASSERT_EQ(encode(type, value, false), code) << name_of(type);
      }
    }
}

TEST(Encoding, FloatsRoundToTheNearestWithTiesToEvenCodes) {
  for (const DType type : storage_types()) {
    if (!is_float(type)) continue;
    SCOPED_TRACE(name_of(type));
    std::vector<double> values;
    for (uint32_t bits = 0; bits < 0x10000;
         ++bits) {  // every f16, and what lies half way between two numbers, or beside
      Half half;
      half.bits = static_cast<uint16_t>(bits);
      values.push_back(static_cast<float>(half));
    }
    for (int code = 0; code + 1 < count_of(type); ++code) {
      const double a = decode(type, static_cast<uint8_t>(code)), b = decode(type, static_cast<uint8_t>(code + 1));
      const double middle = (a + b) / 2;
      for (double value : {middle, std::nextafter(middle, a), std::nextafter(middle, b)}) values.push_back(value);
    }
    double largest = 0;
    for (int code = 0; code < count_of(type); ++code)
      if (const double value = decode(type, static_cast<uint8_t>(code)); std::isfinite(value))
        largest = std::max(largest, value);
    for (const double value : values) {
      if (!std::isfinite(value) || std::fabs(value) > largest) continue;
      const uint8_t wanted = nearest(type, value);
      ASSERT_EQ(encode(type, value), wanted) << value;
      ASSERT_EQ(encode(type, value), encode(type, value, false)) << value;
    }
  }
}

TEST(Encoding, SaysWhatBecomesOfNumbersBeyondTheLargest) {
  struct Row {
    DType type;
    double last;  // that still rounds to the largest; the next double does not
    uint8_t saturated, otherwise;
  };
  for (const Row& row :
       {Row{DType::f8e4m3fn, 464, 0x7e, 0x7f}, Row{DType::f8e4m3fnuz, std::nextafter(248.0, 0), 0x7f, 0x80},
        Row{DType::f8e5m2, std::nextafter(61440.0, 0), 0x7b, 0x7c},
        Row{DType::f8e5m2fnuz, std::nextafter(61440.0, 0), 0x7f, 0x80}, Row{DType::f4e2m1, 6.9, 7, 7}}) {
    SCOPED_TRACE(name_of(row.type));
    EXPECT_EQ(encode(row.type, row.last, false), row.saturated);
    EXPECT_EQ(encode(row.type, row.last), row.saturated);
    const auto sign = static_cast<uint8_t>(1 << (bits_of(row.type) - 1));
    for (const double beyond : {std::nextafter(row.last, kInf), 1e9, 1e300, kInf}) {
      EXPECT_EQ(encode(row.type, beyond), row.saturated) << beyond;
      EXPECT_EQ(encode(row.type, beyond, false), row.otherwise) << beyond;
      EXPECT_EQ(encode(row.type, -beyond), row.saturated | sign) << beyond;
      EXPECT_EQ(encode(row.type, -beyond, false), row.otherwise | sign) << beyond;
    }
  }
  EXPECT_EQ(encode(DType::f8e4m3fn, kNan), 0x7f);
  EXPECT_EQ(encode(DType::f8e4m3fn, -kNan), 0xff);
  EXPECT_EQ(encode(DType::f8e5m2, kNan), 0x7e);
  EXPECT_EQ(encode(DType::f8e5m2fnuz, -kNan), 0x80);
  EXPECT_EQ(encode(DType::f8e5m2fnuz, -0.0), 0);
  EXPECT_EQ(encode(DType::f8e4m3fn, -0.0), 0x80);
  EXPECT_EQ(decode(DType::f4e2m1, encode(DType::f4e2m1, kNan)), 0);
}

TEST(Encoding, ScalesRoundUpToPowersOfTwo) {
  EXPECT_EQ(decode(DType::f8e8m0, encode(DType::f8e8m0, 1.0)), 1);
  EXPECT_EQ(decode(DType::f8e8m0, encode(DType::f8e8m0, std::nextafter(1.0, 2.0))), 2);
  EXPECT_EQ(decode(DType::f8e8m0, encode(DType::f8e8m0, -3.0)), 4);
  EXPECT_EQ(encode(DType::f8e8m0, 0.0), 0);
  EXPECT_EQ(encode(DType::f8e8m0, 0.0, false), 0xff);
  EXPECT_EQ(encode(DType::f8e8m0, 0x1p-140), 0);
  EXPECT_EQ(encode(DType::f8e8m0, 0x1.8p-127), 1);
  EXPECT_EQ(encode(DType::f8e8m0, kInf), 254);
  EXPECT_EQ(encode(DType::f8e8m0, kInf, false), 0xff);
  EXPECT_EQ(encode(DType::f8e8m0, 0x1.8p127), 254);
  EXPECT_EQ(encode(DType::f8e8m0, 0x1.8p127, false), 0xff);
}

TEST(Encoding, IntegersTruncateAndKeepTheLowBits) {
  EXPECT_EQ(decode(DType::i4, encode(DType::i4, -7.9)), -7);
  EXPECT_EQ(decode(DType::i4, encode(DType::i4, 200)), -8);
  EXPECT_EQ(decode(DType::u4, encode(DType::u4, -1)), 15);
  EXPECT_EQ(decode(DType::i2, encode(DType::i2, -2)), -2);
  EXPECT_EQ(decode(DType::u2, encode(DType::u2, 7)), 3);
}

TEST(Encoding, ElementsOfAByteFillItFromTheLowBits) {
  const uint8_t nibbles[] = {1, 2, 15}, pairs[] = {1, 2, 3, 0, 2};
  uint8_t packed[2] = {0xff, 0xff};
  pack(DType::i4, nibbles, 3, packed);
  EXPECT_EQ(packed[0], 0x21);
  EXPECT_EQ(packed[1], 0x0f);
  pack(DType::u2, pairs, 5, packed);
  EXPECT_EQ(packed[0], 0b00111001);
  EXPECT_EQ(packed[1], 0b10);
  uint8_t codes[5];
  unpack(DType::u2, packed, 5, codes);
  EXPECT_TRUE(std::equal(codes, codes + 5, pairs));
  store_code(DType::u2, packed, 1, 1);
  EXPECT_EQ(load_code(DType::u2, packed, 0), 1);
  EXPECT_EQ(load_code(DType::u2, packed, 1), 1);
  EXPECT_EQ(load_code(DType::u2, packed, 2), 3);
}

TEST(Encoding, BytesAreThoseThatHoldAllElements) {
  EXPECT_EQ(bytes_of(DType::i4, 0), 0);
  EXPECT_EQ(bytes_of(DType::i4, 5), 3);
  EXPECT_EQ(bytes_of(DType::u2, 5), 2);
  EXPECT_EQ(bytes_of(DType::f8e5m2, 5), 5);
  EXPECT_EQ(bytes_of(DType::f64, 5), 40);
  EXPECT_EQ(bytes_of(DType::u4, INT64_MAX), INT64_MAX / 2 + 1);
  EXPECT_EQ(bytes_of(DType::f32, INT64_MAX), std::nullopt);
  EXPECT_EQ(bytes_of(DType::f32, -1), std::nullopt);
}

}  // namespace
}  // namespace lathe
