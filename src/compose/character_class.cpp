// SPDX-License-Identifier: Apache-2.0
#include "compose/character_class.h"

#include <algorithm>

namespace lathe {
namespace {

struct NamedClass {
  std::string_view name;
  std::string_view pairs;  // first and last character of each range
};
constexpr NamedClass kClasses[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", {"\0\x7f", 2}},
    {"blank", "\t\t  "},
    {"cntrl", {"\0\x1f\x7f\x7f", 4}},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"},
};

Ranges ranges_of(std::string_view pairs) {
  Ranges ranges;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    ranges.push_back({static_cast<unsigned char>(pairs[i]), static_cast<unsigned char>(pairs[i + 1])});
  return ranges;
}

}  // namespace

bool is_word(uint32_t code) {
  return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') || code == '_';
}

Ranges united(Ranges ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  Ranges apart;
  for (const CodeRange& range : ranges) {
    if (!apart.empty() && range.first <= apart.back().last + 1)
      apart.back().last = std::max(apart.back().last, range.last);
    else
      apart.push_back(range);
  }
  return apart;
}

Ranges all_but(Ranges ranges) {
  Ranges others;
  uint32_t next = 0;
  for (const CodeRange& range : united(std::move(ranges))) {
    if (range.first > next) others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) others.push_back({next, kLastCode});
  return others;
}

Ranges with_other_case(Ranges ranges) {
  const auto has = [](const Ranges& all, uint32_t code) {
    return std::ranges::any_of(all, [&](const CodeRange& range) { return range.first <= code && code <= range.last; });
  };
  Ranges both = ranges;
  for (uint32_t letter = 'a'; letter <= 'z'; ++letter) {
    const uint32_t capital = letter - 'a' + 'A';
    if (!has(ranges, letter) && !has(ranges, capital)) continue;
    both.push_back({letter, letter});
    both.push_back({capital, capital});
    if (letter == 'k') both.push_back({0x212a, 0x212a});  // the sign of Kelvin
    if (letter == 's') both.push_back({0x17f, 0x17f});    // the long s
  }
  return both;
}

std::optional<Ranges> escaped_class(char letter) {
  switch (letter) {
    case 'd':
      return ranges_of("09");
    case 'D':
      return all_but(ranges_of("09"));
    case 's':
      return united(ranges_of("\t\n\f\r  "));
    case 'S':
      return all_but(ranges_of("\t\n\f\r  "));
    case 'w':
      return united(ranges_of("09AZaz__"));
    case 'W':
      return all_but(ranges_of("09AZaz__"));
    default:
      return std::nullopt;
  }
}

std::optional<Ranges> named_class(std::string_view name) {
  const bool is_negated = name.starts_with('^');
  if (is_negated) name.remove_prefix(1);
  for (const NamedClass& known : kClasses)
    if (known.name == name) return is_negated ? all_but(ranges_of(known.pairs)) : united(ranges_of(known.pairs));
  return std::nullopt;
}

}  // namespace lathe
