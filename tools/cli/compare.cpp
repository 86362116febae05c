// SPDX-License-Identifier: Apache-2.0
// lathe compare
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "accuracy_search.h"
#include "failure.h"
#include "parsed_model.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<HostTensor> make_inputs(const CompareCommand& command, const nvinfer1::INetworkDefinition& network) {
  auto files = parse_files(command.inputs, "--loadInputs");
  ShapeMap shapes = parse_shapes(command.shapes, "--shapes");
  std::vector<HostTensor> tensors;
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const nvinfer1::ITensor& input = *network.getInput(i);
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

// The layers whose results are floats, each name once.
std::vector<std::string> narrowable(const nvinfer1::INetworkDefinition& network) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < network.getNbLayers(); ++i) {
    const nvinfer1::ILayer& layer = *network.getLayer(i);
    const std::string name = layer.getName();
    if (layer.getType() == nvinfer1::LayerType::kCONSTANT || layer.getNbOutputs() == 0 || name.empty()) continue;
    if (layer.getOutput(0)->getType() != DataType::kFLOAT) continue;
    if (name.find_first_of(",*") != std::string::npos) {
      fmt::print(stderr,
                 "warning: layer '{}' may become narrow: --layerPrecisions cannot name it, for it has a comma or a *\n",
                 name);
      continue;
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> row_of(const Json& tensor) {
  const auto number = [&](const char* key) {
    if (!tensor.contains(key)) return std::string();
    return tensor[key].is_null() ? std::string("not finite") : fmt::format("{:.3g}", tensor[key].get<double>());
  };
  const std::string cosine = tensor.contains("cosine") && tensor["cosine"].is_number()
                                 ? fmt::format("{:.6f}", tensor["cosine"].get<double>())
                                 : "";
  return {tensor["name"].get<std::string>(),
          fmt::format("{}", tensor["elements"].get<int64_t>()),
          number("max_abs"),
          number("max_rel"),
          number("rms"),
          cosine,
          number("mismatches"),
          tensor["passed"].get<bool>() ? "good" : tensor.value("message", "differs")};
}

void show(const std::string& title, const Json& tensors) {
  std::vector<std::vector<std::string>> rows = {
      {title, ">elements", ">max abs error", ">max rel error", ">rms error", ">cosine", ">beyond tolerance", ""}};
  for (const Json& tensor : tensors) rows.push_back(row_of(tensor));
  fmt::print("{}\n", table(rows));
}

// One model on given inputs, by engines of different settings.
class Comparison {
 public:
  Comparison(const CompareCommand& command, ConsoleLogger& logger)
      : command_(command),
        logger_(logger),
        model_(command.model, command.settings.input_elements, logger),
        inputs_(make_inputs(command, model_.network())) {
    for (const HostTensor& input : inputs_) {
      views_.push_back({input.name.c_str(), input.type, to_dims(input.dims), input.data.data()});
      shapes_[input.name] = input.dims;
    }
  }

  Session build(const BuildSettings& settings, bool shows_progress) const {
    const BuildRequest request{&settings, ShapeRanges::exactly(shapes_), shows_progress, nullptr, &inputs_};
    return Session::open(command_.model, request, logger_);
  }

  // Against the plain evaluation.
  Json with_evaluation(Session& session) const {
    return Json::parse(
        take_text(compareJson(session.engine(), command_.model.c_str(), views_.data(),
                              static_cast<int32_t>(views_.size()), tolerances(command_.reference == "f64").c_str())));
  }

  // Against outputs that others have computed.
  Json with_files(Session& session) const {
    auto files = parse_files(command_.outputs, "--loadOutputs");
    Json reports = Json::array();
    for (const HostTensor& output : run(session)) {
      const auto file = files.extract(output.name);
      if (!file) continue;
      const HostTensor want = read_tensor_file(file.mapped(), {output.name, output.type, output.dims});
      reports.push_back(
          Json::parse(take_text(compareTensorsJson(view(output), view(want), tolerances(false).c_str()))));
    }
    if (!files.empty())
      throw UsageError(fmt::format("--loadOutputs: the model has no output '{}'", files.begin()->first));
    return reports;
  }

  // Against what others have computed on their way.
  Json with_tensors(Session& session) const {
    std::vector<HostTensor> tensors;
    for (const auto& [name, bytes] : parse_npz(read_file(command_.tensors))) {
      tensors.push_back(parse_npy(bytes));
      tensors.back().name = name;
    }
    std::vector<NamedTensor> wanted;
    for (const HostTensor& tensor : tensors) wanted.push_back(view(tensor));
    Json report = Json::parse(take_text(
        compareWithTensorsJson(session.engine(), views_.data(), static_cast<int32_t>(views_.size()), wanted.data(),
                               static_cast<int32_t>(wanted.size()), tolerances(false).c_str())));
    if (report["tensors"].empty() && report["outputs"].empty())
      throw Failure(fmt::format("--loadTensors: the engine computes none of the {} tensors of '{}' by itself",
                                tensors.size(), command_.tensors));
    return report;
  }

  AccuracyResult search() {
    return find_wide_layers({narrowable(model_.network()), command_.budget, [&](const std::vector<std::string>& wide) {
                               constexpr bool kShowsProgress = false;
                               Session session = build(with_wide(wide), kShowsProgress);
                               return error_of(session);
                             }});
  }

  // Of the worst output, beside the plain evaluation in f64, which is done once.
  double error_of(Session& session) {
    if (!in_doubles_)
      in_doubles_.reset(evaluateInDoubles(command_.model.c_str(), views_.data(), static_cast<int32_t>(views_.size())));
    if (!in_doubles_) throw Failure(lastError());
    double worst = 0;
    for (const HostTensor& output : run(session))
      for (int32_t i = 0; i < in_doubles_->size(); ++i)
        if (output.name == in_doubles_->get(i)->name)
          worst = std::max(worst, relative_error(output, *in_doubles_->get(i)));
    return worst;
  }

  BuildSettings with_wide(const std::vector<std::string>& wide) const {
    BuildSettings settings = command_.settings;
    settings.layer_precisions = layer_precisions(wide);
    if (!wide.empty()) settings.constraints = "prefer";
    if (settings.budget < 0) settings.budget = 0;  // of the search's many builds
    return settings;
  }

 private:
  static NamedTensor view(const HostTensor& tensor) {
    return {tensor.name.c_str(), tensor.type, to_dims(tensor.dims), tensor.data.data()};
  }
  std::vector<HostTensor> run(Session& session) const {
    Inference inference(session, inputs_, logger_);
    inference.run();
    return inference.outputs();
  }
  std::string tolerances(bool doubles) const {
    return Json{{"rtol", command_.rtol}, {"atol", command_.atol}, {"doubles", doubles}}.dump();
  }

  const CompareCommand& command_;
  ConsoleLogger& logger_;
  ParsedModel model_;
  std::vector<HostTensor> inputs_;
  std::vector<NamedTensor> views_;
  ShapeMap shapes_;
  std::unique_ptr<ITensorList> in_doubles_;  // null until error_of() needs it
};

void check(const CompareCommand& command) {
  const BuildSettings& settings = command.settings;
  if (command.budget < 0) {
    if (!command.kept.empty()) throw UsageError("--saveLayerPrecisions is for --accuracyBudget");
    return;
  }
  if (!settings.fp16 && !settings.bf16 && !settings.best)
    throw UsageError("--accuracyBudget is for what narrows: --fp16, --bf16 or --best");
  if (!settings.layer_precisions.empty() || !settings.layer_output_types.empty() || !settings.constraints.empty())
    throw UsageError(
        "--accuracyBudget chooses what layers compute in: leave --layerPrecisions, --layerOutputTypes and "
        "--precisionConstraints out");
  if (!command.kept.empty()) check_writable(command.kept);
}

// The result as JSON, too.
Json tell(const CompareCommand& command, const AccuracyResult& result) {
  const std::string arguments = layer_arguments(result.wide);
  fmt::print("error {:.3g} with all layers narrow, {:.3g} with these in float32 ({} engines were built):\n",
             result.error_narrow, result.error, result.builds);
  for (const std::string& layer : result.wide) fmt::print("  {}\n", layer);
  fmt::print("{}\n\n", result.wide.empty() ? "  none" : arguments);
  if (!command.kept.empty()) write_file(command.kept, arguments + "\n");
  return {{"budget", command.budget}, {"error", result.error}, {"error_narrow", result.error_narrow},
          {"builds", result.builds},  {"wide", result.wide},   {"arguments", arguments}};
}

}  // namespace

int compare(const CompareCommand& command) {
  check(command);
  ConsoleLogger logger(command.settings.least_severity());
  Comparison comparison(command, logger);
  std::optional<AccuracyResult> found;
  Json search;
  if (command.budget >= 0) {
    found = comparison.search();
    search = tell(command, *found);
  }
  Session session = comparison.build(found ? comparison.with_wide(found->wide) : command.settings, true);
  Json json = comparison.with_evaluation(session);
  show("tensor", json["tensors"]);
  show("output", json["outputs"]);
  bool passed = json["passed"].get<bool>();
  if (found) {  // kernels that are measured for this engine may be others than those of the search
    const double error = comparison.error_of(session);
    passed = error <= command.budget;
    fmt::print("the error is {} the budget: {:.3g} of {:g}\n", passed ? "within" : "BEYOND", error, command.budget);
    search["error"] = error;
    json["accuracy"] = search;
  }
  if (!command.outputs.empty()) {
    json["files"] = comparison.with_files(session);
    for (const Json& tensor : json["files"]) passed &= tensor["passed"].get<bool>();
    show("output, beside the file's", json["files"]);
  }
  if (!command.tensors.empty()) {
    json["others"] = comparison.with_tensors(session);
    passed &= json["others"]["passed"].get<bool>();
    show("tensor, beside the file's", json["others"]["tensors"]);
    show("output, beside the file's", json["others"]["outputs"]);
  }
  if (!found || !command.outputs.empty() || !command.tensors.empty())
    fmt::print("{}\n", passed ? "the outputs agree" : "THE OUTPUTS DIFFER");
  json["passed"] = passed;
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  return passed ? 0 : 1;
}

}  // namespace lathe::cli
