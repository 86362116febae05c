// SPDX-License-Identifier: Apache-2.0
// How keys of signatures start as text; hexadecimal digits follow.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace lathe::plan {

inline constexpr std::string_view kPublicKeyText = "ed25519:", kSecretKeyText = "ed25519-secret:";

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lathe::plan
