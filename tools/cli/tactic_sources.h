// SPDX-License-Identifier: Apache-2.0
// --tacticSources
#pragma once

#include <string_view>

#include "NvInfer.h"

namespace lathe::cli {

// "+A,-B" turns A on and B off; "" changes nothing. Throws UsageError.
void set_tactic_sources(nvinfer1::IBuilderConfig& config, std::string_view text);

}  // namespace lathe::cli
