// SPDX-License-Identifier: Apache-2.0
// lathe inspect
#include <fmt/ranges.h>

#include <algorithm>

#include "engine_report.h"
#include "failure.h"
#include "lathe_onnx.h"
#include "page.h"
#include "parsed_model.h"

namespace lathe::cli {
namespace {

std::string dims_text(const Json& dims) { return to_text(dims.get<std::vector<int64_t>>()); }

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
    rows = {{"variant", ">bytes", ">not in the file", "but derived when it is loaded"}};
    for (const Json& variant : json["variants"]) {
      const auto names = variant["derived_constants"].get<std::vector<std::string>>();
      rows.push_back({text_at(variant, "target"), text_at(variant, "bytes"), text_at(variant, "derived_bytes"),
                      names.empty() ? ""
                                    : fmt::format("{} constants: {}", names.size(),
                                                  shorten(fmt::format("{}", fmt::join(names, ", ")), 60))});
    }
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
    const double us = number_at(layer, "TimeMilliseconds") * 1e3;
    const bool is_measured = number_at(layer, "MeasuredMilliseconds") > 0 || number_at(layer, "Milliseconds") > 0;
    const std::string indent(2 * layer.value("Depth", size_t{0}), ' ');  // steps of a block
    rows.push_back({std::to_string(rows.size() - 1), indent + text_at(layer, "LayerType"), text_at(layer, "TacticName"),
                    shorten(tensors_text(layer["Outputs"]), 40),
                    us > 0 ? fmt::format("{}{:.1f}", is_measured ? "" : "~", us) : "",
                    shorten(origin_text(layer.value("NetworkLayers", Json())), 70)});
  }
  const bool has_details = std::ranges::none_of(json["layers"], [](const Json& layer) { return layer.is_string(); });
  fmt::print("{}\n{}\n", table(rows),
             has_details ? fmt::format("times: {}; ~ is predicted", text_at(json, "time_source"))
                         : "The engine keeps the names of its layers alone, so that neither kernels nor times are "
                           "shown: build it with ProfilingVerbosity::kDETAILED, as `lathe build` does");
}

// Milliseconds of each layer, which the library reports in their order; negative for those that did not run.
class LayerTimes final : public nvinfer1::IProfiler {
 public:
  static constexpr int kRuns = 20;

  explicit LayerTimes(const Json& layers) {
    for (const Json& layer : layers)
      names_.push_back(layer.is_object() ? text_at(layer, "Name") : layer.get<std::string>());
    times_.resize(names_.size());
    for (std::vector<double>& times : times_) times.reserve(kRuns);
  }
  void begin_run() { next_ = 0; }
  void reportLayerTime(const char* layer, float milliseconds) noexcept override {
    while (next_ < names_.size() && names_[next_] != layer) ++next_;
    if (next_ < names_.size()) times_[next_++].push_back(milliseconds);
  }
  std::vector<double> medians() {
    std::vector<double> medians;
    for (std::vector<double>& times : times_) {
      std::sort(times.begin(), times.end());
      medians.push_back(times.empty() ? -1 : times[times.size() / 2]);
    }
    return medians;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<double>> times_;
  size_t next_ = 0;
};

// Of runs after one that warms up. Inputs without a file are made up.
std::vector<double> profile(Session& session, const Json& layers, const std::string& files, ConsoleLogger& logger) {
  const std::vector<HostTensor> inputs = gather_inputs(session, parse_files(files, "--loadInputs"), {}, true);
  LayerTimes times(layers);
  Inference inference(session, inputs, logger);
  inference.run();
  inference.set_profiler(&times);
  for (int i = 0; i < LayerTimes::kRuns; ++i) {
    times.begin_run();
    inference.run();
  }
  return times.medians();
}

// What passes note about tensors, by what such a note begins with.
struct NoteTable {
  const char* key;  // in reports
  std::string_view note;
  std::vector<std::string> header;
};
const NoteTable kNoteTables[] = {
    {"float_products", "multiplies floats: ", {"result of", "multiplies floats, for"}},
    {"lost_attentions", "no attention is made of it: ", {"softmax", "is part of no attention, for"}},
    {"whole_masks",
     "its mask is read for each query and key: ",
     {"attention", "reads a mask of all queries and keys, for"}},
};

// [{"tensor", "why"}]
Json notes_of(const Json& report, std::string_view note) {
  Json found = Json::array();
  for (const Json& tensor : report["tensors"]) {
    const std::string why = text_at(tensor, "why");
    const size_t begin = why.find(note);
    if (begin == std::string::npos) continue;
    const size_t reason = begin + note.size();
    found.push_back(
        {{"tensor", text_at(tensor, "name")}, {"why", why.substr(reason, why.find('\n', reason) - reason)}});
  }
  return found;
}

void show_notes(const Json& json) {
  for (const NoteTable& notes : kNoteTables) {
    if (json[notes.key].empty()) continue;
    std::vector<std::vector<std::string>> rows = {notes.header};
    for (const Json& each : json[notes.key]) rows.push_back({text_at(each, "tensor"), text_at(each, "why")});
    fmt::print("\n{}", table(rows));
  }
}

Json inspect_engine(const InspectCommand& command, ConsoleLogger& logger) {
  std::string report;
  BuildRequest request{&command.settings, {}, true, &report};
  request.shapes = parse_ranges(command.settings.min_shapes, command.settings.opt_shapes, command.settings.max_shapes);
  Session session =
      Session::open(command.file, request, logger, command.profile ? Session::Use::run : Session::Use::inspect);
  Json json = describe_engine(session, command.file);
  const Json built = report.empty() ? Json() : Json::parse(report);
  if (!report.empty()) add_build_report(json, built);
  for (const NoteTable& notes : kNoteTables)
    json[notes.key] = report.empty() ? Json::array() : notes_of(built, notes.note);
  if (command.profile) set_times(json, profile(session, json["layers"], command.inputs, logger));
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
  if (!(command.html.empty() && !command.profile) && (command.support || !command.why.empty()))
    throw UsageError("--html and --profile are about the whole engine: leave --support and --why out");
  if (!command.inputs.empty() && !command.profile) throw UsageError("--loadInputs is for --profile");
  Json json;
  if (!command.why.empty()) {
    if (!is_model_file(command.file))
      throw UsageError("--why needs a model (.onnx): an engine does not hold what was decided while building it");
    json = explain_tensor(command, logger);
    show_tensor(json);
  } else if (command.support) {
    if (!is_model_file(command.file))
      throw UsageError("--support needs a model (.onnx): an engine is supported as a whole");
    ModelParser model(command.settings.input_elements, logger);
    json = Json::parse(take_text(supportJson(model.parser(), command.file.c_str())));
    show_support(json);
  } else {
    if (!command.html.empty()) check_writable(command.html);
    json = inspect_engine(command, logger);
    show_engine(json);
    show_notes(json);
    if (!command.html.empty()) write_file(command.html, page_of(json));
  }
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  return 0;
}

}  // namespace lathe::cli
