// SPDX-License-Identifier: Apache-2.0
// Attributes of ONNX nodes as fields for creators of plugins.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "NvInferRuntime.h"
#include "onnx/model.h"
#include "ops/tensor.h"

namespace lathe::api {

// Of fields that hold numbers of a known type.
std::optional<DType> element_type(nvinfer1::PluginFieldType type);

class PluginFields {
 public:
  // Fields of `wanted` type hold the attribute's numbers converted, without loss; where none is wanted, floats are
  // kFLOAT32, integers kINT32 (kINT64 if one needs it), strings kCHAR, tensors what their elements are. A zero follows
  // the characters of a string, which its length does not count.
  Result<> add(const onnx::Attribute& attribute, std::optional<nvinfer1::PluginFieldType> wanted);
  nvinfer1::PluginFieldCollection collection() const { return {static_cast<int32_t>(fields_.size()), fields_.data()}; }
  std::string names() const;  // for messages: a, b

 private:
  std::deque<std::string> names_;  // which stay where they are
  std::vector<Tensor> contents_;
  std::vector<nvinfer1::PluginField> fields_;
};

}  // namespace lathe::api
