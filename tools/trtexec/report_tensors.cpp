// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/failure.h"
#include "cli/tensor_file.h"
#include "trtexec/build.h"
#include "trtexec/report.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using nvinfer1::LayerInformationFormat;
using nvinfer1::OptProfileSelector;

// A tensor's name may hold signs that mean something to the file system.
std::string file_name(std::string name, const std::vector<int64_t>& dims) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == ':'; }, '_');
  const std::string shape = shape_text(dims);
  return fmt::format("{}.{}.Binary", name, shape.empty() ? "scalar" : shape);
}

}  // namespace

std::string value_text(const cli::HostTensor& tensor, int64_t index) {
  const double value = cli::element(tensor, index);
  return cli::is_float(tensor.type) ? fmt::format("{:.6g}", value) : fmt::format("{:.0f}", value);
}

void print_outputs(const std::vector<cli::HostTensor>& outputs, TrtexecLog& log) {
  log.info("Output Tensors:");
  for (const cli::HostTensor& output : outputs) {
    log.info("{}: ({})", output.name, shape_text(output.dims));
    const int64_t count = cli::volume(output.dims),
                  row = output.dims.empty() ? 1 : std::max<int64_t>(output.dims.back(), 1);
    for (int64_t from = 0; from < count; from += row) {
      std::string text;
      for (int64_t i = from; i < std::min(from + row, count); ++i)
        text += (i > from ? " " : "") + value_text(output, i);
      log.info("{}", text);
    }
  }
}

void write_raw_bindings(const IoBindings& bindings, const std::vector<cli::HostTensor>& outputs, TrtexecLog& log) {
  for (const IoBinding& binding : bindings.all()) {
    if (!binding.is_input) continue;
    const std::string path = file_name(binding.name, binding.dims);
    cli::write_file(path, {static_cast<const char*>(binding.host.get()), binding.bytes});
    log.info("Input {} is in {}", binding.name, path);
  }
  for (const cli::HostTensor& output : outputs) {
    const std::string path = file_name(output.name, output.dims);
    cli::write_file(path, {reinterpret_cast<const char*>(output.data.data()), output.data.size()});
    log.info("Output {} is in {}", output.name, path);
  }
}

void report_layers(const nvinfer1::ICudaEngine& engine, const nvinfer1::IExecutionContext* context,
                   const Options& options, TrtexecLog& log) {
  if (!options.dump_layer_info && options.export_layer_info.empty()) return;
  const std::unique_ptr<nvinfer1::IEngineInspector> inspector(engine.createEngineInspector());
  if (!inspector) fail_as_reported("Inspector creation failed");
  if (context) inspector->setExecutionContext(context);
  if (options.dump_layer_info) {
    log.info("Layer Information:");
    log.info("{}", inspector->getEngineInformation(LayerInformationFormat::kONELINE));
  }
  if (!options.export_layer_info.empty())
    cli::write_file(options.export_layer_info, inspector->getEngineInformation(LayerInformationFormat::kJSON));
}

void print_profiles(const nvinfer1::ICudaEngine& engine, TrtexecLog& log) {
  log.info("Optimization Profile Information:");
  for (int32_t profile = 0; profile < engine.getNbOptimizationProfiles(); ++profile)
    for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
      const char* name = engine.getIOTensorName(i);
      if (engine.getTensorIOMode(name) != nvinfer1::TensorIOMode::kINPUT) continue;
      const auto shape = [&](OptProfileSelector select) {
        return shape_text(cli::to_vector(engine.getProfileShape(name, profile, select)));
      };
      log.info("{}: profile {}, min={}, opt={}, max={}", name, profile, shape(OptProfileSelector::kMIN),
               shape(OptProfileSelector::kOPT), shape(OptProfileSelector::kMAX));
    }
}

}  // namespace lathe::trtexec
