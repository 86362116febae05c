// SPDX-License-Identifier: Apache-2.0
// lathe quantize
#include "lathe_quantize.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "accuracy_search.h"
#include "calibration_data.h"
#include "failure.h"
#include "parsed_model.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<InputSpec> inputs_of(const nvinfer1::INetworkDefinition& network) {
  std::vector<InputSpec> inputs;
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const nvinfer1::ITensor& input = *network.getInput(i);
    inputs.push_back({input.getName(), input.getType(), to_vector(input.getDimensions())});
  }
  return inputs;
}

// Engines of models that differ in the layers that are quantised, on the same batches.
class QuantizationSearch {
 public:
  QuantizationSearch(const QuantizeCommand& command, ConsoleLogger& logger, std::vector<Batch> batches)
      : command_(command), logger_(logger), batches_(std::move(batches)) {
    for (const std::vector<HostTensor>& outputs : outputs_of(command.model)) wanted_.push_back(outputs);
  }

  // The greatest of all outputs and batches.
  double error_of(const std::string& model) {
    double worst = 0;
    const std::vector<std::vector<HostTensor>> outputs = outputs_of(model);
    for (size_t b = 0; b < outputs.size(); ++b)
      for (size_t i = 0; i < outputs[b].size(); ++i) {
        const HostTensor& want = wanted_[b][i];
        worst = std::max(
            worst, relative_error(outputs[b][i], {want.name.c_str(), want.type, to_dims(want.dims), want.data.data()}));
      }
    return worst;
  }

 private:
  std::vector<std::vector<HostTensor>> outputs_of(const std::string& model) {
    BuildSettings settings = command_.settings;
    if (settings.budget < 0) settings.budget = 0;  // of the search's many builds
    ShapeMap shapes;
    for (const HostTensor& input : batches_[0]) shapes[input.name] = input.dims;
    ShapeRanges ranges = ShapeRanges::exactly(shapes);
    for (const Batch& batch : batches_)
      for (const HostTensor& input : batch)
        for (size_t d = 0; d < input.dims.size(); ++d) {
          int64_t &least = ranges.min[input.name].at(d), &most = ranges.max[input.name].at(d);
          least = std::min(least, input.dims[d]), most = std::max(most, input.dims[d]);
        }
    const BuildRequest request{&settings, ranges, false, nullptr, &batches_[0]};
    Session session = Session::open(model, request, logger_);
    std::vector<std::vector<HostTensor>> outputs;
    for (const Batch& batch : batches_) {
      Inference inference(session, batch, logger_);
      inference.run();
      outputs.push_back(inference.outputs());
    }
    return outputs;
  }

  const QuantizeCommand& command_;
  ConsoleLogger& logger_;
  std::vector<Batch> batches_;
  std::vector<std::vector<HostTensor>> wanted_;
};

// A file that is gone when this is.
class ScratchFile {
 public:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Quantization {
 public:
  Quantization(const QuantizeCommand& command, ConsoleLogger& logger)
      : command_(command),
        logger_(logger),
        quantizer_(createQuantizer(command.model.c_str(), command.settings.threads, logger)) {
    if (!quantizer_) throw Failure(logger_.take_errors());
  }

  // All of the data; keeps the first batches for the search.
  void calibrate(const CalibrationData& data) {
    Progress progress(-1);
    constexpr const char* kPhase = "calibrating";
    progress.phaseStart(kPhase, nullptr, static_cast<int32_t>(data.size()) * kPartsOfSet);
    for (size_t i = 0; i < data.size(); ++i) {
      std::vector<Batch> batches = data.read(i);
      for (size_t b = 0; b < batches.size(); ++b) {
        add(batches[b]);
        progress.stepComplete(kPhase,
                              static_cast<int32_t>(i * kPartsOfSet + (b + 1) * kPartsOfSet / batches.size()) - 1);
        if (command_.budget >= 0 && kept_.size() < static_cast<size_t>(command_.trials))
          kept_.push_back(std::move(batches[b]));
      }
    }
    progress.phaseFinish(kPhase);
  }

  std::optional<AccuracyResult> search() {
    if (command_.budget < 0) return std::nullopt;
    QuantizationSearch search(command_, logger_, std::move(kept_));
    const ScratchFile trial(command_.output + ".trial.onnx");
    const std::vector<std::string> names = quantized_layers();
    return find_wide_layers({names, command_.budget, [&](const std::vector<std::string>& wide) {
                               if (wide.size() == names.size()) return 0.0;
                               write_file(trial.path(), model(wide));
                               return search.error_of(trial.path());
                             }});
  }

  std::string model(const std::vector<std::string>& wide) {
    const Plan bytes(quantizer_->model(options(wide).c_str()));
    if (!bytes) throw Failure(logger_.take_errors());
    return std::string(text_of(*bytes));
  }
  Json layers(const std::vector<std::string>& wide) {
    const Plan text(quantizer_->layersJson(options(wide).c_str()));
    if (!text) throw Failure(logger_.take_errors());
    return Json::parse(text_of(*text));
  }

 private:
  static constexpr int kPartsOfSet = 1000;  // of the progress

  void add(const Batch& batch) {
    std::vector<NamedTensor> tensors;
    for (const HostTensor& tensor : batch)
      tensors.push_back({tensor.name.c_str(), tensor.type, to_dims(tensor.dims), tensor.data.data()});
    if (!quantizer_->addBatch(tensors.data(), static_cast<int32_t>(tensors.size())))
      throw Failure("--data: " + logger_.take_errors());
  }

  std::string options(const std::vector<std::string>& wide) const {
    const size_t comma = command_.types.find(',');
    std::vector<std::string> exclude = command_.exclude;
    exclude.insert(exclude.end(), wide.begin(), wide.end());
    Json json;
    json["percentile"] = command_.percentile;
    json["activations"] = command_.types.substr(0, comma);
    json["weights"] = command_.types.substr(comma + 1);
    json["symmetric"] = !command_.asymmetric;
    json["perChannel"] = !command_.per_tensor;
    json["exclude"] = std::move(exclude);
    if (!command_.method.empty()) json["method"] = command_.method;
    return json.dump();
  }

  std::vector<std::string> quantized_layers() {
    const Json all = layers({});
    std::vector<std::string> names;
    for (const Json& layer : all["layers"])
      if (layer["quantized"].get<bool>()) names.push_back(layer["name"]);
    return names;
  }

  const QuantizeCommand& command_;
  ConsoleLogger& logger_;
  std::unique_ptr<IQuantizer> quantizer_;
  std::vector<Batch> kept_;
};

void show(const Json& layers) {
  std::vector<std::vector<std::string>> rows = {{"layer", "operator", ">low", ">high", ">scale", ">zero", ""}};
  for (const Json& layer : layers) {
    const bool quantized = layer["quantized"].get<bool>();
    const auto number = [&](const char* key) {
      return quantized ? fmt::format("{:.4g}", layer[key].get<double>()) : std::string();
    };
    rows.push_back({layer["name"], layer["op"], number("low"), number("high"), number("scale"), number("zero_point"),
                    quantized ? "" : "floats: " + layer["why"].get<std::string>()});
  }
  fmt::print("{}\n", table(rows));
}

// What the search found, as JSON, too.
Json tell(const QuantizeCommand& command, const AccuracyResult& found) {
  fmt::print("error {:.3g} with all of them quantised, {:.3g} with these in floats ({} engines were built):\n",
             found.error_narrow, found.error, found.builds);
  for (const std::string& layer : found.wide) fmt::print("  {}\n", layer);
  if (found.wide.empty()) fmt::print("  none\n");
  return {{"budget", command.budget},
          {"error", found.error},
          {"error_narrow", found.error_narrow},
          {"builds", found.builds},
          {"wide", found.wide}};
}

}  // namespace

int quantize(const QuantizeCommand& command) {
  check_writable(command.output);
  ConsoleLogger logger(command.settings.least_severity());
  const ParsedModel parsed(command.model, command.settings.input_elements, logger);
  const CalibrationData data(command.data, inputs_of(parsed.network()), command.batch);
  const auto start = Clock::now();
  Quantization quantization(command, logger);
  quantization.calibrate(data);
  const std::optional<AccuracyResult> found = quantization.search();
  const std::vector<std::string> wide = found ? found->wide : std::vector<std::string>();
  Json json = quantization.layers(wide);
  show(json["layers"]);
  if (found) json["accuracy"] = tell(command, *found);
  const std::string model = quantization.model(wide);
  write_file(command.output, model);
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  size_t count = 0;
  for (const Json& layer : json["layers"]) count += layer["quantized"].get<bool>();
  fmt::print("{}: {}, {} of {} layers quantised by {} batches in {:.1f} s\n", command.output,
             human_bytes(static_cast<double>(model.size())), count, json["layers"].size(),
             json["batches"].get<int64_t>(), seconds_since(start));
  return 0;
}

}  // namespace lathe::cli
