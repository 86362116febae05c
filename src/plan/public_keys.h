// SPDX-License-Identifier: Apache-2.0
// Keys that tell who has signed a plan (Ed25519), as docs/trust.md says they are written.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe::plan {

using PublicKey = std::array<std::byte, 32>;

// "ed25519:" and 64 hexadecimal digits.
std::string to_text(const PublicKey& key);

// Keys, separated by commas: each as to_text() writes it, or the name of a file whose only line is that. At least one.
Result<std::vector<PublicKey>> parse_keys(std::string_view list);

}  // namespace lathe::plan
