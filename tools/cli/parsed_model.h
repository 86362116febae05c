// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "NvOnnxParser.h"
#include "console.h"

namespace lathe::cli {

// A parser with what it needs, before it reads a model. Throws Failure.
class ModelParser {
 public:
  // `input_elements` as --inputElements says them.
  ModelParser(const std::string& input_elements, ConsoleLogger& logger);
  nvonnxparser::IParser& parser() { return *parser_; }
  const nvinfer1::INetworkDefinition& network() const { return *network_; }

 private:
  std::unique_ptr<nvinfer1::IBuilder> builder_;
  std::unique_ptr<nvinfer1::INetworkDefinition> network_;
  std::unique_ptr<nvonnxparser::IParser> parser_;
};

// A model as its layers are. Throws Failure.
class ParsedModel : public ModelParser {
 public:
  ParsedModel(const std::string& path, const std::string& input_elements, ConsoleLogger& logger);
};

}  // namespace lathe::cli
