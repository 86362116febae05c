// SPDX-License-Identifier: Apache-2.0
// JSON for writing: each value is its finished text. (The destructor of nlohmann's values allocates memory, so that a
// program which runs out of it while they exist is ended.)
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::api {

class Json {
 public:
  Json(std::string_view text);  // NOLINT: a text is a value; so are the others. What is not UTF-8 becomes U+FFFD
  Json(const std::string& text) : Json(std::string_view(text)) {}  // NOLINT
  Json(const char* text) : Json(std::string_view(text)) {}         // NOLINT
  Json(double number);                                             // NOLINT: null when it is not finite
  Json(const std::vector<std::string>& texts);                     // NOLINT
  Json(std::nullptr_t) : text_("null") {}                          // NOLINT
  template <std::same_as<bool> T>
  Json(T truth) : text_(truth ? "true" : "false") {}  // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T number) : text_(std::to_string(number)) {}  // NOLINT

  static Json number(std::string_view as_written) { return Json(Raw{as_written}); }
  static Json array() { return Json(Raw{"[]"}); }
  static Json object() { return Json(Raw{"{}"}); }
  void push_back(const Json& value);                  // to an array
  void add(std::string_view key, const Json& value);  // to an object that has no such key

  const std::string& text() const { return text_; }  // on one line
  std::string indented() const;                      // by two spaces per level

 private:
  struct Raw {
    std::string_view text;
  };
  explicit Json(Raw raw) : text_(raw.text) {}
  void append(std::string_view key, const Json& value);

  std::string text_;
};

struct JsonField {
  const char* key;
  Json value;
};

// json_object({{"name", name}, {"count", count}})
Json json_object(std::initializer_list<JsonField> fields);

}  // namespace lathe::api
