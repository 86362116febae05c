// SPDX-License-Identifier: Apache-2.0
// What lathe::setInputElements() has told, for parsers and those of refits.
#pragma once

#include <map>
#include <string>

#include "NvOnnxParser.h"
#include "onnx/import.h"

namespace lathe::api {

using InputElementsByName = std::map<std::string, onnx::InputElements>;

Result<> tell_input_elements(InputElementsByName& told, const char* input, int32_t count, const nvinfer1::Dims* dims);

}  // namespace lathe::api
