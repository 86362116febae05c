// SPDX-License-Identifier: Apache-2.0
#include "api/json_value.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lathe::api {
namespace {

TEST(JsonValue, WhatIsReadIsWrittenAgain) {
  for (const char* text : {"null", " true ", "[false,\t\r\n-0]", R"([1, -2.5, 1e3, 0.25E-2, 18446744073709551615])",
                           "{}", "[]", R"({"b": [[], {}], "a": {"": "", "x": null}})",
                           R"("grün €😀 \"\\\/\b\f\n\r\t \u0041\u00e9\u20AC\ud83d\ude00 \u001f")"}) {
    const Result<JsonValue> value = JsonValue::parse(text);
    ASSERT_TRUE(value) << text << ": " << value.error().message;
    EXPECT_EQ(nlohmann::json::parse(value->json().indented()), nlohmann::json::parse(text)) << text;
    EXPECT_EQ(JsonValue::parse(value->json().text()).value(), *value) << text;
  }
}

TEST(JsonValue, WhatIsNoJsonIsRefused) {
  for (const char* text : {"",
                           " ",
                           "tru",
                           "nul",
                           "truefalse",
                           "True",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "]",
                           "{",
                           R"({"a")",
                           R"({"a":)",
                           R"({"a":1)",
                           R"({"a":1,})",
                           R"({"a" 1})",
                           "{1:2}",
                           "{a:1}",
                           "01",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "1e+",
                           "0x1",
                           "1e999",
                           "NaN",
                           "-Infinity",
                           "\"",
                           "\"a",
                           R"("\x")",
                           R"("\u12")",
                           R"("\u12g4")",
                           R"("\ud800")",
                           R"("\ud800\u0041")",
                           R"("\udc00")",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc3\"",
                           "1 2",
                           "// c\n1",
                           "\xef\xbb\xbf"}) {
    EXPECT_FALSE(JsonValue::parse(text)) << text;
    EXPECT_FALSE(nlohmann::json::accept(text)) << text;
  }
  EXPECT_FALSE(JsonValue::parse(R"({"a": 1, "a": 2})"));  // of which RFC 8259 says that readers differ
  EXPECT_EQ(JsonValue::parse("[1, x]").error().message, "no value at byte 4");
}

TEST(JsonValue, NestingEnds) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(JsonValue::parse(nested(17)));
  EXPECT_EQ(JsonValue::parse(nested(18)).error().message, "it is nested too deeply at byte 17");
  EXPECT_FALSE(JsonValue::parse(std::string(1 << 20, '[')));
}

TEST(JsonValue, MembersAndNumbers) {
  const JsonValue value =
      JsonValue::parse(
          R"({"n": -7, "half": 0.5, "large": 9223372036854775808, "text": "7", "yes": true, "none": null})")
          .value();
  EXPECT_EQ(value["n"].integer(), -7);
  EXPECT_EQ(value["n"].number(), -7);
  EXPECT_EQ(value["half"].number(), 0.5);
  for (const char* name : {"half", "large", "text", "yes", "none", "nothing"})
    EXPECT_FALSE(value[name].integer()) << name;
  EXPECT_EQ(value["text"].text(), "7");
  EXPECT_TRUE(value["yes"].truth());
  EXPECT_TRUE(value.has("none"));
  EXPECT_FALSE(value.has("nothing"));
  EXPECT_TRUE(value["nothing"]["deeper"].is(JsonValue::Kind::null));
  EXPECT_EQ(value.members()[0].name, "half");  // by their names
  EXPECT_NE(value["n"], value["half"]);
  EXPECT_EQ(JsonValue::parse(R"({"b": 1, "a": 2})").value(), JsonValue::parse(R"({"a": 2, "b": 1})").value());
}

TEST(JsonValue, ObjectsAreCalledWhatTheyAre) {
  EXPECT_EQ(JsonValue::parse_object("the options", "[]").error().message,
            "the options must be a JSON object (it is another value): []");
  EXPECT_EQ(JsonValue::parse_object("the options", "{").error().message,
            "the options must be a JSON object (no value at byte 1): {");
}

}  // namespace
}  // namespace lathe::api
