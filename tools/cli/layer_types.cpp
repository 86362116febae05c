// SPDX-License-Identifier: Apache-2.0
#include "layer_types.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "failure.h"
#include "lathe.h"

namespace lathe::cli {
namespace {

using nvinfer1::DataType;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

DataType type_of(const std::string& name) {
  constexpr std::pair<const char*, DataType> kTypes[] = {{"fp32", DataType::kFLOAT},
                                                         {"fp16", DataType::kHALF},
                                                         {"bf16", DataType::kBF16},
                                                         {"int8", DataType::kINT8},
                                                         {"int32", DataType::kINT32}};
  for (const auto& [known, type] : kTypes)
    if (name == known) return type;
  throw UsageError(fmt::format("'{}' is no type of a layer: fp32, fp16, bf16 or int8", name));
}

// "name:type,...": what stands before and after the last colon of each.
std::vector<std::pair<std::string, std::string>> layers_of(const std::string& option, const std::string& text) {
  std::vector<std::pair<std::string, std::string>> layers;
  if (text.empty()) return layers;
  for (const std::string& part : split(text, ',')) {
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == part.size())
      throw UsageError(fmt::format("{}: '{}' is not name:type", option, part));
    layers.emplace_back(part.substr(0, colon), part.substr(colon + 1));
  }
  return layers;
}

}  // namespace

void set_layer_types(nvinfer1::IBuilderConfig& config, const BuildSettings& settings) {
  const PrecisionConstraints constraints = settings.constraints == "obey"     ? PrecisionConstraints::kOBEY
                                           : settings.constraints == "prefer" ? PrecisionConstraints::kPREFER
                                                                              : PrecisionConstraints::kNONE;
  setPrecisionConstraints(config, constraints);
  for (const auto& [layer, type] : layers_of("--layerPrecisions", settings.layer_precisions))
    if (!setLayerPrecision(config, layer.c_str(), type_of(type))) throw UsageError(lastError());
  for (const auto& [layer, types] : layers_of("--layerOutputTypes", settings.layer_output_types)) {
    int32_t output = 0;
    for (const std::string& type : split(types, '+'))
      if (!setLayerOutputType(config, layer.c_str(), output++, type_of(type))) throw UsageError(lastError());
  }
  if (constraints == PrecisionConstraints::kNONE &&
      !(settings.layer_precisions.empty() && settings.layer_output_types.empty()))
    fmt::print(stderr,
               "warning: types of single layers have no effect without --precisionConstraints=prefer or obey\n");
}

}  // namespace lathe::cli
