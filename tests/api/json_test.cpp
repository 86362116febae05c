// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace lathe::api {
namespace {

TEST(Json, ValuesAndNesting) {
  Json list = Json::array();
  list.push_back(1);
  list.push_back(json_object({{"x", -2.5}, {"y", Json::object()}}));
  const Json json = json_object({{"text", "a"},
                                 {"yes", true},
                                 {"none", nullptr},
                                 {"large", UINT64_MAX},
                                 {"infinite", INFINITY},
                                 {"names", std::vector<std::string>{"b", "c"}},
                                 {"empty", Json::array()},
                                 {"list", std::move(list)}});
  EXPECT_EQ(json.indented(), R"({
  "text": "a",
  "yes": true,
  "none": null,
  "large": 18446744073709551615,
  "infinite": null,
  "names": [
    "b",
    "c"
  ],
  "empty": [],
  "list": [
    1,
    {
      "x": -2.5,
      "y": {}
    }
  ]
})");
}

TEST(Json, EveryTextIsReadBack) {
  for (const std::string text : {"", "\"", "\\", "[{,:}]\"\\\"", "\n\t\r\x01\x1f", "grün €😀", "\x7f", "\\\\\""}) {
    const Json json = json_object({{"k", text}});
    EXPECT_EQ(nlohmann::json::parse(json.indented())["k"], text);
  }
  const std::string zero("a\0b", 3);
  EXPECT_EQ(nlohmann::json::parse(Json(zero).indented()), zero);
}

TEST(Json, WhatIsNotUtf8IsReplaced) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(Json("a\xff"
                 "b")
                .indented(),
            "\"a" + mark + "b\"");
  EXPECT_EQ(Json("\xc3").indented(), "\"" + mark + "\"");
  // Longer than needed, half of a pair, past the end of Unicode: one mark per byte.
  for (const char* text : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    const std::string out = Json(text).indented();
    EXPECT_EQ(out.size(), 2 + 3 * std::string_view(text).size());
    EXPECT_TRUE(nlohmann::json::accept(out));
  }
}

}  // namespace
}  // namespace lathe::api
