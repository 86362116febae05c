// SPDX-License-Identifier: Apache-2.0
// --inputElements: what inputs of a model that are sequences or optionals are to be.
#pragma once

#include <string>

#include "NvOnnxParser.h"

namespace lathe::cli {

// "name:3,other:2@4x?,third:none". Throws UsageError for what cannot be understood.
void set_input_elements(nvonnxparser::IParser& parser, const std::string& text);

}  // namespace lathe::cli
