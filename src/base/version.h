// SPDX-License-Identifier: Apache-2.0
// The version of this library, as it is written into plans and caches.
#pragma once

#include <array>
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

// The version of TensorRT whose interface include/ has: major, minor, patch, build.
inline constexpr std::array<uint8_t, 4> kInterfaceVersion = {11, 1, 0, 106};

}  // namespace lathe
