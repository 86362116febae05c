// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "NvOnnxParser.h"
#include "console.h"

namespace lathe::cli {

// A model as its layers are. Throws Failure.
class ParsedModel {
 public:
  // `input_elements` as --inputElements says them.
  ParsedModel(const std::string& path, const std::string& input_elements, ConsoleLogger& logger);
  const nvinfer1::INetworkDefinition& network() const { return *network_; }

 private:
  std::unique_ptr<nvinfer1::IBuilder> builder_;
  std::unique_ptr<nvinfer1::INetworkDefinition> network_;
  std::unique_ptr<nvonnxparser::IParser> parser_;
};

}  // namespace lathe::cli
