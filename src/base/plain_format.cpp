// SPDX-License-Identifier: Apache-2.0
#include "base/plain_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <stdexcept>
#include <string_view>

namespace lathe {
namespace {

[[noreturn]] void refuse() { throw std::invalid_argument("a format that messages do not have"); }

struct Writer {
  std::string& text;
  bool in_hexadecimal;

  template <class T>
  void operator()(T value) const {
    if constexpr (std::same_as<T, bool>)
      add(value ? "true" : "false");
    else if constexpr (std::same_as<T, char>)
      add({&value, 1});
    else if constexpr (std::same_as<T, const char*> || std::same_as<T, fmt::string_view>)
      add({fmt::string_view(value).data(), fmt::string_view(value).size()});
    else if constexpr (std::unsigned_integral<T> && sizeof(T) <= sizeof(uint64_t))
      add_number(value, "");
    else if constexpr (std::signed_integral<T> && sizeof(T) <= sizeof(int64_t))
      add_number(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value), value < 0 ? "-" : "");
    else
      refuse();
  }

 private:
  void add(std::string_view part) const {
    if (in_hexadecimal) refuse();
    text += part;
  }
  void add_number(uint64_t value, std::string_view sign) const {
    char digits[20];
    const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value, in_hexadecimal ? 16 : 10);
    text += sign;
    if (in_hexadecimal) text += "0x";
    text.append(digits, end);
  }
};

}  // namespace

std::string plain_format(fmt::string_view format, fmt::format_args args) {
  std::string text;
  std::string_view rest(format.data(), format.size());
  for (int next = 0; !rest.empty();) {
    const size_t brace = std::min(rest.find_first_of("{}"), rest.size());
    text += rest.substr(0, brace);
    rest.remove_prefix(brace);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      text += rest[0];
      rest.remove_prefix(2);
    } else if (const bool hexadecimal = rest.starts_with("{:#x}"); hexadecimal || rest.starts_with("{}")) {
      fmt::visit_format_arg(Writer{text, hexadecimal}, args.get(next++));
      rest.remove_prefix(hexadecimal ? 5 : 2);
    } else if (!rest.empty()) {
      refuse();
    }
  }
  return text;
}

}  // namespace lathe
