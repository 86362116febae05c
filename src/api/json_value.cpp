// SPDX-License-Identifier: Apache-2.0
#include "api/json_value.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace lathe::api {
namespace {

constexpr int kDeepest = 16;  // more than anything that is read here has

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Here, where members are a complete type.
JsonValue::JsonValue() = default;
JsonValue::JsonValue(Kind kind) : kind_(kind) {}
JsonValue::JsonValue(const JsonValue& other) = default;
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue& other) = default;
JsonValue& JsonValue::operator=(JsonValue&& other) noexcept = default;
JsonValue::~JsonValue() = default;

// A recursive descent over the grammar of RFC 8259.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  Result<JsonValue> document() {
    LATHE_ASSIGN(JsonValue value, this->value(0));
    skip_space();
    if (at_ < text_.size()) return wrong("more follows its end");
    return value;
  }

 private:
  using Kind = JsonValue::Kind;

  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::invalid_argument, "{} at byte {}", what, at_);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  Result<JsonValue> value(int depth) {
    if (depth > kDeepest) return wrong("it is nested too deeply");
    skip_space();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"': {
        JsonValue value(Kind::text);
        LATHE_ASSIGN(value.text_, string());
        return value;
      }
      case 't':
        return word("true", Kind::boolean);
      case 'f':
        return word("false", Kind::boolean);
      case 'n':
        return word("null", Kind::null);
      default:
        return number();
    }
  }

  Result<JsonValue> word(std::string_view word, Kind kind) {
    if (!text_.substr(at_).starts_with(word)) return wrong("an unknown word");
    at_ += word.size();
    JsonValue value(kind);
    if (kind != Kind::null) value.text_ = word;
    return value;
  }

  Result<JsonValue> array(int depth) {
    JsonValue array(Kind::array);
    ++at_;
    skip_space();
    if (take(']')) return array;
    do {
      LATHE_ASSIGN(array.elements_.emplace_back(), value(depth + 1));
      skip_space();
    } while (take(','));
    return take(']') ? Result<JsonValue>(std::move(array)) : wrong("no ',' or ']'");
  }

  Result<JsonValue> object(int depth) {
    JsonValue object(Kind::object);
    ++at_;
    skip_space();
    if (take('}')) return object;
    do {
      skip_space();
      LATHE_ASSIGN(std::string name, string());
      skip_space();
      if (!take(':')) return wrong("no ':'");
      LATHE_ASSIGN(JsonValue value, this->value(depth + 1));
      const auto place = std::ranges::lower_bound(object.members_, name, {}, &JsonValue::Member::name);
      if (place != object.members_.end() && place->name == name) return wrong("a name that was there before");
      object.members_.insert(place, {std::move(name), std::move(value)});
      skip_space();
    } while (take(','));
    return take('}') ? Result<JsonValue>(std::move(object)) : wrong("no ',' or '}'");
  }

  Result<std::string> string() {
    if (!take('"')) return wrong("no value");
    std::string out;
    while (!take('"')) {
      if (at_ >= text_.size()) return wrong("a text without an end");
      if (take('\\')) {
        LATHE_TRY(escaped(out));
        continue;
      }
      const size_t bytes = utf8_bytes(text_.substr(at_));
      if (bytes == 0 || static_cast<unsigned char>(peek()) < 0x20) return wrong("a character that is none of UTF-8's");
      out += text_.substr(at_, bytes);
      at_ += bytes;
    }
    return out;
  }

  Result<> escaped(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t which = kLetters.find(peek()); which != kLetters.npos) {
      out += kMeanings[which];
      ++at_;
      return {};
    }
    if (!take('u')) return wrong("an unknown escape");
    LATHE_ASSIGN(unsigned code, four_digits());
    if (code >= 0xd800 && code < 0xdc00 && take('\\') && take('u')) {
      LATHE_ASSIGN(const unsigned second, four_digits());
      if (second < 0xdc00 || second > 0xdfff) return wrong("half of a character");
      code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000) return wrong("half of a character");
    out += to_utf8(code);
    return {};
  }

  Result<unsigned> four_digits() {
    const std::string_view digits = text_.substr(at_, 4);
    unsigned code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || end != digits.data() + 4 || error != std::errc()) return wrong("no four digits");
    at_ += 4;
    return code;
  }

  size_t skip_digits() {
    const size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ - begin;
  }

  Result<JsonValue> number() {
    const size_t begin = at_;
    (void)take('-');
    if (!take('0') && skip_digits() == 0) return wrong("no value");
    if (take('.') && skip_digits() == 0) return wrong("no digit");
    if (take('e') || take('E')) {
      (void)(take('-') || take('+'));
      if (skip_digits() == 0) return wrong("no digit");
    }
    JsonValue value(Kind::number);
    value.text_ = text_.substr(begin, at_ - begin);
    double ignored = 0;
    const auto [end, error] = std::from_chars(text_.data() + begin, text_.data() + at_, ignored);
    if (error != std::errc()) return wrong("a number out of range");
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<JsonValue> JsonValue::parse(std::string_view text) { return JsonReader(text).document(); }

Result<JsonValue> JsonValue::parse_object(std::string_view what, std::string_view text) {
  Result<JsonValue> value = parse(text);
  if (value && value->is(Kind::object)) return value;
  return fail(ErrorCode::invalid_argument, "{} must be a JSON object ({}): {}", what,
              value ? "it is another value" : value.error().message, text);
}

double JsonValue::number() const {
  double number = 0;
  std::from_chars(text_.data(), text_.data() + text_.size(), number);
  return number;
}

std::optional<int64_t> JsonValue::integer() const {
  int64_t integer = 0;
  const char* const end = text_.data() + text_.size();
  const auto [read, error] = std::from_chars(text_.data(), end, integer);
  if (!is(Kind::number) || error != std::errc() || read != end) return std::nullopt;
  return integer;
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(members_, name, {}, &Member::name);
  return place != members_.end() && place->name == name ? &place->value : nullptr;
}

const JsonValue& JsonValue::operator[](std::string_view name) const {
  static const JsonValue kNone;
  const JsonValue* const value = find(name);
  return value ? *value : kNone;
}

Json JsonValue::json() const {
  switch (kind_) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return truth();
    case Kind::number:
      return Json::number(text_);
    case Kind::text:
      return text_;
    case Kind::array: {
      Json array = Json::array();
      for (const JsonValue& element : elements_) array.push_back(element.json());
      return array;
    }
    case Kind::object: {
      Json object = Json::object();
      for (const Member& member : members_) object.add(member.name, member.value.json());
      return object;
    }
  }
  return nullptr;
}

bool JsonValue::operator==(const JsonValue& other) const {
  return kind_ == other.kind_ && text_ == other.text_ && std::ranges::equal(elements_, other.elements_) &&
         std::ranges::equal(members_, other.members_);
}

}  // namespace lathe::api
