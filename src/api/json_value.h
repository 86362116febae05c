// SPDX-License-Identifier: Apache-2.0
// JSON that was read. A value ends without allocating memory, so that none that exists when memory runs out ends the
// program (nlohmann's do: json.h).
#pragma once

#include <optional>

#include "api/json.h"
#include "base/result.h"

namespace lathe::api {

class JsonValue {
 public:
  enum class Kind : uint8_t { null, boolean, number, text, array, object };
  struct Member;

  JsonValue();                    // null
  explicit JsonValue(Kind kind);  // without content
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue();
  // Fails with invalid_argument, saying what is wrong and where. Names occur once in an object. Nesting is limited, for
  // values are destroyed and written recursively.
  static Result<JsonValue> parse(std::string_view text);
  // The same of an object, which errors call `what`.
  static Result<JsonValue> parse_object(std::string_view what, std::string_view text);

  bool is(Kind kind) const { return kind_ == kind; }
  bool truth() const { return text_ == "true"; }
  const std::string& text() const { return text_; }                     // of a text; of a number as it is written
  double number() const;                                                // of a number
  std::optional<int64_t> integer() const;                               // nullopt: of no integer, or out of range
  const std::vector<JsonValue>& elements() const { return elements_; }  // of an array
  const std::vector<Member>& members() const { return members_; }       // of an object, by their names
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const JsonValue& operator[](std::string_view name) const;  // a member; null where there is none

  Json json() const;
  bool operator==(const JsonValue& other) const;

 private:
  friend class JsonReader;
  const JsonValue* find(std::string_view name) const;

  Kind kind_ = Kind::null;
  std::string text_;
  std::vector<JsonValue> elements_;
  std::vector<Member> members_;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
  bool operator==(const Member& other) const { return name == other.name && value == other.value; }
};

}  // namespace lathe::api
