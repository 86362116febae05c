// SPDX-License-Identifier: Apache-2.0
// lathe compare
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "NvOnnxParser.h"
#include "failure.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<HostTensor> make_inputs(const CompareCommand& command, ConsoleLogger& logger) {
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder ? builder->createNetworkV2(0) : nullptr);
  const std::unique_ptr<nvonnxparser::IParser> parser(network ? nvonnxparser::createParser(*network, logger) : nullptr);
  if (!parser || !parser->parseFromFile(command.model.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kWARNING)))
    throw Failure(logger.take_errors());
  auto files = parse_files(command.inputs, "--loadInputs");
  ShapeMap shapes = parse_shapes(command.shapes, "--shapes");
  std::vector<HostTensor> tensors;
  for (int32_t i = 0; i < network->getNbInputs(); ++i) {
    const nvinfer1::ITensor& input = *network->getInput(i);
    InputSpec expected{input.getName(), input.getType(), to_vector(input.getDimensions())};
    if (const auto shape = shapes.extract(expected.name)) expected.dims = shape.mapped();
    if (const auto file = files.extract(expected.name)) {
      tensors.push_back(read_tensor_file(file.mapped(), expected));
      continue;
    }
    for (int64_t& dim : expected.dims) dim = dim < 0 ? 1 : dim;
    tensors.push_back(make_input(expected.name, expected.type, expected.dims, tensors.size() + 1));
  }
  if (!files.empty()) throw UsageError(fmt::format("the model has no input '{}'", files.begin()->first));
  if (!shapes.empty()) throw UsageError(fmt::format("the model has no input '{}'", shapes.begin()->first));
  return tensors;
}

std::vector<std::string> row_of(const Json& tensor) {
  const auto number = [&](const char* key) {
    return tensor.contains(key) ? fmt::format("{:.3g}", tensor[key].get<double>()) : std::string();
  };
  return {tensor["name"].get<std::string>(),
          fmt::format("{}", tensor["elements"].get<int64_t>()),
          number("max_abs"),
          number("max_rel"),
          number("mismatches"),
          tensor["passed"].get<bool>() ? "good" : tensor.value("message", "differs")};
}

}  // namespace

int compare(const CompareCommand& command) {
  ConsoleLogger logger(command.settings.least_severity());
  const std::vector<HostTensor> inputs = make_inputs(command, logger);
  std::vector<NamedTensor> views;
  for (const HostTensor& input : inputs)
    views.push_back({input.name.c_str(), input.type, to_dims(input.dims), input.data.data()});
  ShapeMap shapes;
  for (const HostTensor& input : inputs) shapes[input.name] = input.dims;
  const BuildRequest request{&command.settings, ShapeRanges::exactly(shapes), true, nullptr, &inputs};
  Session session = Session::open(command.model, request, logger);
  const Json options = {{"rtol", command.rtol}, {"atol", command.atol}};
  const Json json = Json::parse(take_text(compareJson(session.engine(), command.model.c_str(), views.data(),
                                                      static_cast<int32_t>(views.size()), options.dump().c_str())));
  std::vector<std::vector<std::string>> rows = {
      {"tensor", ">elements", ">max abs error", ">max rel error", ">beyond tolerance", ""}};
  for (const char* list : {"tensors", "outputs"})
    for (const Json& tensor : json.value(list, Json::array())) rows.push_back(row_of(tensor));
  const bool passed = json["passed"].get<bool>();
  fmt::print("{}\n{}\n", table(rows), passed ? "the outputs agree" : "THE OUTPUTS DIFFER");
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  return passed ? 0 : 1;
}

}  // namespace lathe::cli
