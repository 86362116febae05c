// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"

#include <fmt/core.h>

#include <cmath>

#include "base/utf8.h"

namespace lathe::api {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t count = utf8_bytes(text);
    const char c = text[0];
    if (count == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += text.substr(0, count);
    }
    text.remove_prefix(count == 0 ? 1 : count);
  }
  return out += '"';
}

}  // namespace

Json::Json(std::string_view text) : text_(quoted(text)) {}

Json::Json(double number) : text_(std::isfinite(number) ? fmt::format("{}", number) : "null") {}

Json::Json(const std::vector<std::string>& texts) : Json(array()) {
  for (const std::string& text : texts) push_back(text);
}

void Json::append(std::string_view key, const Json& value) {
  text_.reserve(text_.size() + key.size() + value.text_.size() + 1);  // or else nothing is changed
  const char close = text_.back();
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
  text_ += key;
  text_ += value.text_;
  text_ += close;
}

void Json::push_back(const Json& value) { append("", value); }

void Json::add(std::string_view key, const Json& value) { append(quoted(key) + ":", value); }

std::string Json::indented() const {
  std::string out;
  size_t depth = 0;
  bool in_string = false;
  const auto new_line = [&] { out.append("\n").append(2 * depth, ' '); };
  for (size_t i = 0; i < text_.size(); ++i) {
    const char c = text_[i];
    if (in_string) {
      out += c;
      if (c == '\\') out += text_[++i];
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if (c == '}' || c == ']') --depth, new_line();
    out += c;
    if (c == ':') out += ' ';
    if (c == ',') new_line();
    if (c != '{' && c != '[') continue;
    if (text_[i + 1] == '}' || text_[i + 1] == ']') {
      out += text_[++i];
    } else {
      ++depth, new_line();
    }
  }
  return out;
}

Json json_object(std::initializer_list<JsonField> fields) {
  Json object = Json::object();
  for (const JsonField& field : fields) object.add(field.key, field.value);
  return object;
}

}  // namespace lathe::api
