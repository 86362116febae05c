// SPDX-License-Identifier: Apache-2.0
// The version of this library, as it is written into plans and caches.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace lathe {

struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  uint32_t build = 0;

  auto operator<=>(const Version&) const = default;
  std::string to_string() const;  // "0.1.0.0"
};

Version library_version();

}  // namespace lathe
