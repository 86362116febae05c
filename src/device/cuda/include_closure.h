// SPDX-License-Identifier: Apache-2.0
// The headers that a source depends on.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "device/cuda/source_header.h"

namespace lathe::cuda {

// Those of `headers` that `source` includes, directly or through others, in the order of `headers`. Every #include line
// counts, whatever conditions it stands under.
std::vector<SourceHeader> include_closure(std::string_view source, std::span<const SourceHeader> headers);

}  // namespace lathe::cuda
