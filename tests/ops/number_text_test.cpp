// SPDX-License-Identifier: Apache-2.0
#include "ops/number_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lathe {
namespace {

template <class T>
void expect_all_fit(DType type) {
  size_t longest = 0;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    T value;
    value.bits = static_cast<uint16_t>(bits);
    const std::string text = text_of(value);
    longest = std::max(longest, text.size());
    const std::optional<T> read = number_of<T>(text);
    ASSERT_TRUE(read) << text;
    ASSERT_TRUE(read->bits == value.bits || text == "NaN") << text;
  }
  EXPECT_LE(longest, static_cast<size_t>(text_width(type)));
}

TEST(NumberText, HoldsEveryNumberOf16Bits) {
  expect_all_fit<Half>(DType::f16);
  expect_all_fit<BFloat16>(DType::bf16);
}

}  // namespace
}  // namespace lathe
