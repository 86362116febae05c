// SPDX-License-Identifier: Apache-2.0
// Reads what base/deflate.h writes. All fail with plan_malformed where the stream is damaged, or of more bytes than
// `most`.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace lathe {

Result<std::vector<std::byte>> inflate_bytes(std::span<const std::byte> compressed, size_t most);

// In parts, which the sink gets one after the other: takes 40 KB, whatever they are together. What the sink has got by
// then is not to be used where this fails.
using InflatedSink = std::function<Result<>(std::span<const std::byte> part)>;
Result<> inflate_to(std::span<const std::byte> compressed, size_t most, const InflatedSink& sink);

}  // namespace lathe
