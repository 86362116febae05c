// SPDX-License-Identifier: Apache-2.0
#include "parsed_model.h"

#include "failure.h"
#include "input_elements.h"

namespace lathe::cli {

ParsedModel::ParsedModel(const std::string& path, const std::string& input_elements, ConsoleLogger& logger)
    : builder_(nvinfer1::createInferBuilder(logger)),
      network_(builder_ ? builder_->createNetworkV2(0) : nullptr),
      parser_(network_ ? nvonnxparser::createParser(*network_, logger) : nullptr) {
  if (parser_) set_input_elements(*parser_, input_elements);
  if (!parser_ || !parser_->parseFromFile(path.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kWARNING)))
    throw Failure(logger.take_errors());
}

}  // namespace lathe::cli
