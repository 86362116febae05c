// SPDX-License-Identifier: Apache-2.0
// JSON that other tools put in front of an engine file.
#pragma once

#include <cstddef>
#include <span>

namespace lathe::plan {

// Bytes before the plan: 0 when the plan starts at once or when there is no JSON object to skip.
size_t foreign_prefix_bytes(std::span<const std::byte> bytes);

}  // namespace lathe::plan
