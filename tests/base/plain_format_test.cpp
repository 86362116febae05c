// SPDX-License-Identifier: Apache-2.0
#include "base/plain_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace lathe {
namespace {

template <class... Args>
void expect_as_fmt(fmt::string_view format, const Args&... args) {
  EXPECT_EQ(plain_format(format, fmt::make_format_args(args...)), fmt::vformat(format, fmt::make_format_args(args...)));
}

template <class T>
void expect_limits() {
  expect_as_fmt("{}|{}|{}", std::numeric_limits<T>::min(), T{0}, std::numeric_limits<T>::max());
}

TEST(PlainFormat, WritesAsFmtDoes) {
  expect_as_fmt("");
  expect_as_fmt("words alone");
  expect_as_fmt("{{{}}} and {{}}", 1);
  expect_as_fmt("'{}' is {}, {}", "a", std::string("text"), std::string_view("of several kinds"));
  expect_as_fmt("{}{}", 'c', "");
  expect_as_fmt("{} {}", true, false);
  expect_as_fmt("{:#x} {:#x} {:#x}", 0u, 0xabcdu, std::numeric_limits<uint64_t>::max());
  expect_limits<int16_t>();
  expect_limits<int>();
  expect_limits<int64_t>();
  expect_limits<uint32_t>();
  expect_limits<uint64_t>();
}

TEST(PlainFormat, RefusesWhatItDoesNotWrite) {
  const double fraction = 0.5;
  const int number = 1;
  const std::string text = "text";
  EXPECT_THROW(plain_format("{}", fmt::make_format_args(fraction)), std::invalid_argument);
  EXPECT_THROW(plain_format("{:02}", fmt::make_format_args(number)), std::invalid_argument);
  EXPECT_THROW(plain_format("{0}", fmt::make_format_args(number)), std::invalid_argument);
  EXPECT_THROW(plain_format("{:#x}", fmt::make_format_args(text)), std::invalid_argument);
  EXPECT_THROW(plain_format("{} {}", fmt::make_format_args(number)), std::invalid_argument);
  EXPECT_THROW(plain_format("{", fmt::make_format_args(number)), std::invalid_argument);
  EXPECT_THROW(plain_format("}", fmt::make_format_args(number)), std::invalid_argument);
}

}  // namespace
}  // namespace lathe
