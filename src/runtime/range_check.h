// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lathe {

// Whether numbers that a narrower type cannot hold are refused.
enum class RangeCheck : uint8_t { off, on };

}  // namespace lathe
