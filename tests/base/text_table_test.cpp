// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

using Texts = TextTable<[] { return std::to_array<std::string_view>({"first", "", "third, of more words", "4"}); }>;
static_assert(Texts::kCount == 4);

TEST(TextTable, HasTextsByPosition) {
  EXPECT_STREQ(Texts::at(0), "first");
  EXPECT_STREQ(Texts::at(1), "");
  EXPECT_STREQ(Texts::at(2), "third, of more words");
  EXPECT_STREQ(Texts::at(3), "4");
}

}  // namespace
}  // namespace lathe
