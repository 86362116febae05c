// SPDX-License-Identifier: Apache-2.0
// lathe inspect
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "failure.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dims_text(const Json& dims) { return to_text(dims.get<std::vector<int64_t>>()); }

std::string text_at(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return "";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

std::string origin_text(const Json& origin) {
  if (!origin.is_array()) return origin.is_string() ? origin.get<std::string>() : "";
  std::string text;
  for (const Json& node : origin) text += (text.empty() ? "" : " + ") + node.get<std::string>();
  return text;
}

std::string tensors_text(const Json& tensors) {
  std::string text;
  for (const Json& tensor : tensors)
    if (tensor.is_object())
      text += (text.empty() ? "" : ", ") + text_at(tensor, "Type") + " " + dims_text(tensor["Dimensions"]);
  return text;
}

void show_engine(const Json& json) {
  fmt::print("{} for {}, {} thread(s): {} steps, weights {}, scratch memory {}, file {}\n\n", text_at(json, "file"),
             text_at(json, "target").empty() ? "any CPU" : text_at(json, "target"), text_at(json, "threads"),
             json["layers"].size(), human_bytes(json["weights_bytes"].get<double>()),
             json["scratch_bytes"].get<int64_t>() < 0 ? "depends on the sizes"
                                                      : human_bytes(json["scratch_bytes"].get<double>()),
             human_bytes(json["bytes"].get<double>()));
  if (const auto share = json["metadata"].find("evaluated_share"); share != json["metadata"].end())
    fmt::print("{}\n\n", evaluated_text(std::stod(share->get<std::string>())));
  fmt::print("built by Lathe {}; {}\n\n", text_at(json, "version"),
             json["version_compatible"].get<bool>() ? "later versions run it, too" : "that version alone runs it");
  std::vector<std::vector<std::string>> rows = {{"section", ">bytes", "is", "digest"}};
  for (const Json& section : json["sections"])
    rows.push_back({text_at(section, "name"), text_at(section, "bytes"), text_at(section, "trust"),
                    text_at(section, "digest").substr(0, 16) + "..."});
  fmt::print("{}\n", table(rows));
  if (!json["variants"].empty()) {
    rows = {{"variant", ">bytes"}};
    for (const Json& variant : json["variants"])
      rows.push_back({text_at(variant, "target"), text_at(variant, "bytes")});
    fmt::print("{}\n", table(rows));
  }
  rows = {{"tensor", "is", "type", "shape"}};
  for (const Json& binding : json["bindings"])
    rows.push_back({text_at(binding, "name"), binding["input"].get<bool>() ? "input" : "output",
                    text_at(binding, "dtype"), dims_text(binding["dims"])});
  fmt::print("{}\n", table(rows));
  rows = {{">step", "kernel", "tactic", "result", ">us", "does the work of"}};
  for (const Json& layer : json["layers"]) {
    if (!layer.is_object()) {
      rows.push_back({std::to_string(rows.size() - 1), "", "", "", "", layer.get<std::string>()});
      continue;
    }
    const double us = layer.value("Milliseconds", 0.0) * 1e3;
    const std::string indent(2 * layer.value("Depth", size_t{0}), ' ');  // steps of a block
    rows.push_back({std::to_string(rows.size() - 1), indent + text_at(layer, "LayerType"), text_at(layer, "TacticName"),
                    shorten(tensors_text(layer["Outputs"]), 40), us > 0 ? fmt::format("{:.1f}", us) : "",
                    shorten(origin_text(layer.value("NetworkLayers", Json())), 70)});
  }
  fmt::print("{}", table(rows));
}

Json describe_engine(const InspectCommand& command, ConsoleLogger& logger) {
  BuildRequest request{&command.settings, {}, true, nullptr};
  request.shapes = parse_ranges(command.settings.min_shapes, command.settings.opt_shapes, command.settings.max_shapes);
  Session session = Session::open(command.file, request, logger, Session::Use::inspect);
  const Plan plan(session.engine().serialize());
  if (!plan) throw Failure(lastError());
  Json json = Json::parse(take_text(planJson(plan->data(), plan->size())));
  const std::unique_ptr<nvinfer1::IEngineInspector> inspector(session.engine().createEngineInspector());
  if (!inspector) throw Failure(lastError());
  const Json layers = Json::parse(inspector->getEngineInformation(nvinfer1::LayerInformationFormat::kJSON));
  json["file"] = command.file;
  if (!is_model_file(command.file)) {  // whose variant the engine may be
    const std::string file = read_file(command.file);
    const Json whole = Json::parse(take_text(planJson(file.data(), file.size())));
    for (const char* key : {"variants", "signed_by"}) json[key] = whole[key];
  }
  json["scratch_bytes"] = session.engine().getDeviceMemorySizeV2();
  json["layers"] = layers["Layers"];
  json.erase("steps");
  return json;
}

void show_support(const Json& json) {
  std::vector<std::vector<std::string>> rows = {{">node", "operator", "name", "support", "reason"}};
  for (const Json& node : json["list"]) {
    const std::string domain = text_at(node, "domain");
    rows.push_back({text_at(node, "node"), (domain.empty() ? "" : domain + ".") + text_at(node, "op"),
                    shorten(text_at(node, "name"), 40), text_at(node, "support"), text_at(node, "message")});
  }
  fmt::print("{}\n{}\n", table(rows),
             json["supported"].get<bool>() ? fmt::format("all {} nodes are supported", json["list"].size())
                                           : fmt::format("{} of {} nodes keep this model from being built",
                                                         json["problems"].size(), json["list"].size()));
}

// Of a build with these settings.
Json explain_tensor(const InspectCommand& command, ConsoleLogger& logger) {
  std::string report;
  BuildRequest request{&command.settings, {}, true, &report};
  request.shapes = parse_ranges(command.settings.min_shapes, command.settings.opt_shapes, command.settings.max_shapes);
  build_plan(command.file, request, logger);
  const Json json = Json::parse(report);
  std::string known;
  for (const Json& tensor : json["tensors"]) {
    if (tensor["name"] == command.why) return tensor;
    known += "\n  " + text_at(tensor, "name");
  }
  throw UsageError(
      fmt::format("--why: the network, as passes have left it, has no tensor '{}'; it has{}", command.why, known));
}

void show_tensor(const Json& json) {
  const std::string layout = text_at(json, "layout");
  fmt::print("{} {}{}\n{}", text_at(json, "name"), text_at(json, "type"), layout.empty() ? "" : ", " + layout,
             text_at(json, "why"));
}

}  // namespace

int inspect(const InspectCommand& command) {
  ConsoleLogger logger(command.settings.least_severity());
  Json json;
  if (!command.why.empty()) {
    if (!is_model_file(command.file))
      throw UsageError("--why needs a model (.onnx): an engine does not hold what was decided while building it");
    json = explain_tensor(command, logger);
    show_tensor(json);
  } else if (command.support) {
    if (!is_model_file(command.file))
      throw UsageError("--support needs a model (.onnx): an engine is supported as a whole");
    json = Json::parse(take_text(supportJson(command.file.c_str())));
    show_support(json);
  } else {
    json = describe_engine(command, logger);
    show_engine(json);
  }
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  return 0;
}

}  // namespace lathe::cli
