// SPDX-License-Identifier: Apache-2.0
// Lathe's own settings of parsers; see lathe_onnx.h.
#include "api/network/parser.h"
#include "api/network/parser_refitter.h"
#include "lathe_onnx.h"

namespace lathe {

void setInt64AsInt32(nvonnxparser::IParser& parser, bool enabled) noexcept {
  static_cast<api::Parser&>(parser).set_int64_as_int32(enabled);
}

bool setInputElements(nvonnxparser::IParser& parser, const char* input, int32_t count,
                      const nvinfer1::Dims* dims) noexcept {
  return static_cast<api::Parser&>(parser).set_input_elements(input, count, dims);
}

bool setInputElements(nvonnxparser::IParserRefitter& refitter, const char* input, int32_t count,
                      const nvinfer1::Dims* dims) noexcept {
  return static_cast<api::ParserRefitter&>(refitter).set_input_elements(input, count, dims);
}

}  // namespace lathe
