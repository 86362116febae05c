// SPDX-License-Identifier: Apache-2.0
// Options of IQuantizer.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "quantization/level_range.h"

namespace lathe::api::quantize {

struct QuantizeOptions {
  ActivationLevels activations;
  DType weights = DType::i8;
  bool per_channel = true;
  std::vector<std::string> exclude;
};

// Of a JSON object; null = the defaults.
Result<QuantizeOptions> parse_options(const char* text);

}  // namespace lathe::api::quantize
