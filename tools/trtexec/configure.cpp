// SPDX-License-Identifier: Apache-2.0
// The network's and the builder's settings. What the library cannot do, it says itself: an error ends the program.
#include <algorithm>

#include "cli/failure.h"
#include "cli/layer_types.h"
#include "cli/tactic_sources.h"
#include "cli/tensor.h"
#include "cli/tensor_file.h"
#include "lathe.h"
#include "trtexec/build.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using cli::Failure;
using cli::UsageError;
using nvinfer1::BuilderFlag;
using nvinfer1::DataType;

const char* io_type_text(DataType type) {
  const cli::TypeInfo* info = cli::find_type(type);
  return info ? info->name : "another type";
}

// The entry that is for this tensor: the only one, or the one at its place.
const IoFormat* format_at(const std::vector<IoFormat>& formats, int32_t index, int32_t count, const char* flag) {
  if (formats.empty()) return nullptr;
  if (formats.size() == 1) return formats.data();
  if (formats.size() != static_cast<size_t>(count))
    throw UsageError(fmt::format("{} has {} entries, but the model has {} such tensors: give one, or one for each",
                                 flag, formats.size(), count));
  return &formats[static_cast<size_t>(index)];
}

void set_format(nvinfer1::ITensor& tensor, const IoFormat* format, const char* flag) {
  if (!format) return;
  if (format->type != tensor.getType())
    throw UsageError(fmt::format("{}: {} is {} in the model, not {}; put a Cast into the model", flag, tensor.getName(),
                                 io_type_text(tensor.getType()), io_type_text(format->type)));
  tensor.setAllowedFormats(format->formats);
}

void mark_debug_tensors(nvinfer1::INetworkDefinition& network, const Options& options) {
  for (const std::string& name : options.debug_tensors) {
    bool found = false;
    const auto mark = [&](nvinfer1::ITensor& tensor) {
      if (!name_fits(name, tensor.getName())) return;
      found = true;
      network.markDebug(tensor);
    };
    for (int32_t i = 0; i < network.getNbInputs(); ++i) mark(*network.getInput(i));
    for (int32_t i = 0; i < network.getNbLayers(); ++i)
      for (int32_t k = 0; k < network.getLayer(i)->getNbOutputs(); ++k) mark(*network.getLayer(i)->getOutput(k));
    if (!found) throw UsageError(fmt::format("--markDebug: the network has no tensor {}", name));
  }
  if (options.unfused_debug_tensors) network.markUnfusedTensorsAsDebugTensors();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // --directIO speaks of a deprecated flag
constexpr BuilderFlag kDirectIo = BuilderFlag::kDIRECT_IO;
#pragma GCC diagnostic pop

void set_flags(nvinfer1::IBuilderConfig& config, const Options& options) {
  const std::pair<bool, BuilderFlag> flags[] = {
      {options.refit, BuilderFlag::kREFIT},
      {options.strip_weights || options.strip_all_weights, BuilderFlag::kSTRIP_PLAN},
      {options.strip_all_weights, BuilderFlag::kREFIT},
      {options.weight_streaming, BuilderFlag::kWEIGHT_STREAMING},
      {options.version_compatible, BuilderFlag::kVERSION_COMPATIBLE},
      {!options.lean_runtime_in_plan, BuilderFlag::kEXCLUDE_LEAN_RUNTIME},
      {options.direct_io, kDirectIo},
      {options.gpu_fallback, BuilderFlag::kGPU_FALLBACK},
      {options.sparsity != "disable", BuilderFlag::kSPARSE_WEIGHTS},
      {!options.builder_cache, BuilderFlag::kDISABLE_TIMING_CACHE},
      {!options.compilation_cache, BuilderFlag::kDISABLE_COMPILATION_CACHE},
      {options.error_on_cache_miss, BuilderFlag::kERROR_ON_TIMING_CACHE_MISS},
      {options.monitor_memory, BuilderFlag::kMONITOR_MEMORY},
      {options.distributive_independence, BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE}};
  for (const auto& [wanted, flag] : flags)
    if (wanted) config.setFlag(flag);
  if (!options.tf32) config.clearFlag(BuilderFlag::kTF32);
  if (options.sparsity == "force") lathe::setForcedSparsity(config, true);
}

void set_precision(nvinfer1::IBuilderConfig& config, const Options& options) {
  const DataType narrow = options.fp16 ? DataType::kHALF : options.bf16 ? DataType::kBF16 : DataType::kFLOAT;
  if (!lathe::setPrecision(config, narrow)) throw UsageError(lathe::lastError());
  if (options.int8) lathe::setInt8(config, true);
  if (options.calibration.empty()) return;
  const std::string cache = cli::read_file(options.calibration);
  if (!lathe::setCalibrationCache(config, cache.data(), cache.size()))
    fail_as_reported("Reading the calibration cache failed");
}

// "+A,-B".
void set_previews(nvinfer1::IBuilderConfig& config, const Options& options) {
  using nvinfer1::PreviewFeature;
  for (const std::string& change : words(options.preview)) {
    const std::string name = change.empty() ? "" : change.substr(1);
    const bool known = name == "aliasedPluginIO1003" || name == "runtimeActivationResize";
    if (!known || (change[0] != '+' && change[0] != '-'))
      throw UsageError(
          fmt::format("--preview: '{}' is no change: say + or - and aliasedPluginIO1003 or "
                      "runtimeActivationResize",
                      change));
    config.setPreviewFeature(name == "aliasedPluginIO1003" ? PreviewFeature::kALIASED_PLUGIN_IO_10_03
                                                           : PreviewFeature::kRUNTIME_ACTIVATION_RESIZE_10_10,
                             change[0] == '+');
  }
}

void set_portability(nvinfer1::IBuilderConfig& config, const Options& options) {
  using nvinfer1::HardwareCompatibilityLevel;
  if (options.hardware_compatibility == "ampere+")
    config.setHardwareCompatibilityLevel(HardwareCompatibilityLevel::kAMPERE_PLUS);
  if (options.hardware_compatibility == "sameComputeCapability")
    config.setHardwareCompatibilityLevel(HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY);
  if (options.runtime_platform == "WindowsAMD64") config.setRuntimePlatform(nvinfer1::RuntimePlatform::kWINDOWS_AMD64);
}

void set_device_types(nvinfer1::IBuilderConfig& config, const nvinfer1::INetworkDefinition& network,
                      const Options& options) {
  for (const auto& [pattern, device] : named_values("--layerDeviceTypes", options.layer_device_types)) {
    if (device != "GPU" && device != "DLA")
      throw UsageError(fmt::format("--layerDeviceTypes: '{}' is neither GPU nor DLA", device));
    bool found = false;
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
      const nvinfer1::ILayer* layer = network.getLayer(i);
      if (!name_fits(pattern, layer->getName())) continue;
      found = true;
      config.setDeviceType(layer, device == "DLA" ? nvinfer1::DeviceType::kDLA : nvinfer1::DeviceType::kGPU);
    }
    if (!found) throw UsageError(fmt::format("--layerDeviceTypes: the network has no layer {}", pattern));
  }
}

}  // namespace

void set_network(nvinfer1::INetworkDefinition& network, const Options& options) {
  for (int32_t i = 0; i < network.getNbInputs(); ++i)
    set_format(*network.getInput(i), format_at(options.input_formats, i, network.getNbInputs(), "--inputIOFormats"),
               "--inputIOFormats");
  for (int32_t i = 0; i < network.getNbOutputs(); ++i)
    set_format(*network.getOutput(i), format_at(options.output_formats, i, network.getNbOutputs(), "--outputIOFormats"),
               "--outputIOFormats");
  mark_debug_tensors(network, options);
}

void set_config(nvinfer1::IBuilderConfig& config, const Options& options) {
  if (!options.target.empty() && !lathe::setTarget(config, options.target.c_str()))
    throw UsageError(fmt::format("--target: {}", lathe::lastError()));
  if (!lathe::setBuildBudget(config, options.build_budget) || !lathe::setCpuThreads(config, options.cpu_threads))
    throw UsageError(lathe::lastError());
  for (const auto& [pool, size] : options.pools) config.setMemoryPoolLimit(pool, size);
  config.setProfilingVerbosity(options.profiling_verbosity);
  if (options.level) config.setBuilderOptimizationLevel(*options.level);
  if (options.max_tactics && *options.max_tactics >= 0) config.setMaxNbTactics(*options.max_tactics);
  if (options.average_timing) config.setAvgTimingIterations(*options.average_timing);
  if (options.max_aux_streams) config.setMaxAuxStreams(*options.max_aux_streams);
  if (options.tiling_level)
    config.setTilingOptimizationLevel(static_cast<nvinfer1::TilingOptimizationLevel>(*options.tiling_level));
  if (options.l2_limit) config.setL2LimitForTiling(*options.l2_limit);
  if (!options.build_route.empty()) config.setBuildRoute(options.build_route.c_str());
  set_flags(config, options);
  set_precision(config, options);
  set_previews(config, options);
  set_portability(config, options);
  cli::set_tactic_sources(config, options.tactic_sources);
}

void set_layers(nvinfer1::IBuilderConfig& config, nvinfer1::INetworkDefinition& network, const Options& options,
                TrtexecLog& log) {
  cli::BuildSettings types;
  types.constraints = options.constraints;
  const bool counts = options.constraints == "prefer" || options.constraints == "obey";
  const bool given = !options.layer_precisions.empty() || !options.layer_output_types.empty();
  if (given && !counts)
    log.warn("Types of single layers have no effect without --precisionConstraints=prefer or obey.");
  if (counts) {
    types.layer_precisions = options.layer_precisions;
    types.layer_output_types = options.layer_output_types;
  }
  cli::set_layer_types(config, types);
  set_device_types(config, network, options);
  for (const std::string& name : options.decomposable_attentions) {
    bool found = false;
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
      const auto* boundary = dynamic_cast<const nvinfer1::IAttentionInputLayer*>(network.getLayer(i));
      nvinfer1::IAttention* attention = boundary ? boundary->getAttention() : nullptr;
      if (!attention || !name_fits(name, attention->getName())) continue;
      found = true;
      attention->setDecomposable(true);
    }
    if (!found) log.warn("--decomposableAttentions: the network has no attention {}.", name);
  }
}

}  // namespace lathe::trtexec
