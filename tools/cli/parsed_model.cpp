// SPDX-License-Identifier: Apache-2.0
#include "parsed_model.h"

#include "failure.h"
#include "input_elements.h"

namespace lathe::cli {

ModelParser::ModelParser(const std::string& input_elements, ConsoleLogger& logger)
    : builder_(nvinfer1::createInferBuilder(logger)),
      network_(builder_ ? builder_->createNetworkV2(0) : nullptr),
      parser_(network_ ? nvonnxparser::createParser(*network_, logger) : nullptr) {
  if (!parser_) throw Failure(logger.take_errors());
  set_input_elements(*parser_, input_elements);
}

ParsedModel::ParsedModel(const std::string& path, const std::string& input_elements, ConsoleLogger& logger)
    : ModelParser(input_elements, logger) {
  if (!parser().parseFromFile(path.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kWARNING)))
    throw Failure(logger.take_errors());
}

}  // namespace lathe::cli
