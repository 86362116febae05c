// SPDX-License-Identifier: Apache-2.0
// Lathe's own additions to the ONNX parser.
#ifndef LATHE_ONNX_H
#define LATHE_ONNX_H

#include "NvOnnxParser.h"
#include "lathe.h"

namespace lathe {

// For programs that were written when there was no INT64: models that the parser reads from now on have INT32 instead.
// Weights of INT64 are clamped to the limits of INT32, and inputs and outputs of INT64 become INT32, outputs clamped;
// what nodes compute of them stays exact. One warning for each model names and counts what has become INT32 and what
// was clamped. Off by default: INT64 is exact. IParserRefitter knows nothing of it and takes weights as they are.
// The parser must be Lathe's; one thread at a time.
TENSORRTAPI void setInt64AsInt32(nvonnxparser::IParser& parser, bool enabled) noexcept;

// What models that the parser reads from now on have for an input that is a sequence or an optional. A sequence `x` of
// `count` tensors is as many inputs of the network, `x_0`, `x_1` and so on; without this it is refused, for models do
// not tell how many there are. (An output `y` that is a sequence is `y_0` and so on, too, or, where only running tells
// its length, `y_elements` and `y_dims`: the elements of all tensors, and the dims of each, -1 behind those of tensors
// that have fewer.) An optional has an element unless `count` is -1; then it is no input of the network.
// `dims` are those of each tensor, -1 where they are open; null = as the model declares them. False, with a report, for
// a count below -1 or dims that are none. The parser must be Lathe's; one thread at a time.
TENSORRTAPI bool setInputElements(nvonnxparser::IParser& parser, char const* input, int32_t count,
                                  nvinfer1::Dims const* dims = nullptr) noexcept;

// The same for models that weights are taken from: a model that was parsed with it needs the same here. The refitter
// must be Lathe's; one thread at a time.
TENSORRTAPI bool setInputElements(nvonnxparser::IParserRefitter& refitter, char const* input, int32_t count,
                                  nvinfer1::Dims const* dims = nullptr) noexcept;

// supportJson() of lathe.h, with what the parser has been told by these functions. The network stays as it is. Null,
// with lastError(), for a file that is no model. The caller deletes the object. The parser must be Lathe's; one thread
// at a time.
TENSORRTAPI nvinfer1::IHostMemory* supportJson(nvonnxparser::IParser const& parser, char const* onnxPath) noexcept;

}  // namespace lathe

#endif
