// SPDX-License-Identifier: Apache-2.0
#include "base/md5.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"

namespace lathe {
namespace {

std::string md5_text(const std::string& text) { return to_hex(md5_of(std::as_bytes(std::span(text)))); }

// Of RFC 1321, and those whose padding ends in their block or takes another.
TEST(Md5, Digests) {
  EXPECT_EQ(md5_text(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_text("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_text("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
  EXPECT_EQ(md5_text(std::string(55, 'a')), "ef1772b6dff9a122358552954ad0df65");
  EXPECT_EQ(md5_text(std::string(56, 'a')), "3b0c8ac703f828b04c6c197006d17218");
  EXPECT_EQ(md5_text(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
}

}  // namespace
}  // namespace lathe
