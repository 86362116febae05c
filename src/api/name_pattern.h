// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lathe::api {

// `pattern` has one '*' at most, which stands for anything.
inline bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

}  // namespace lathe::api
