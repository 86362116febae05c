// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include "trtexec/report.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using nvinfer1::MemoryPoolType;

const char* enabled(bool is) { return is ? "Enabled" : "Disabled"; }

std::string pools_text(const Options& options) {
  constexpr std::pair<const char*, MemoryPoolType> kPools[] = {
      {"workspace", MemoryPoolType::kWORKSPACE},
      {"dlaSRAM", MemoryPoolType::kDLA_MANAGED_SRAM},
      {"dlaLocalDRAM", MemoryPoolType::kDLA_LOCAL_DRAM},
      {"dlaGlobalDRAM", MemoryPoolType::kDLA_GLOBAL_DRAM},
      {"tacticSharedMem", MemoryPoolType::kTACTIC_SHARED_MEMORY}};
  std::string text;
  for (const auto& [name, pool] : kPools) {
    const auto set = options.pools.find(pool);
    const std::string size =
        set == options.pools.end() ? "default" : fmt::format("{:.6g} MiB", static_cast<double>(set->second) / 0x1p20);
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, size);
  }
  return text;
}

std::string precision_text(const Options& options) {
  return fmt::format("FP32{}{}{}", options.fp16 ? "+FP16" : "", options.bf16 ? "+BF16" : "",
                     options.int8 ? "+INT8" : "");
}

void print_shapes(const Options& options, TrtexecLog& log) {
  bool any = false;
  for (size_t i = 0; i < options.profiles.size(); ++i)
    for (const auto& [name, opt] : options.profiles[i].opt) {
      const auto* least = find_named(options.profiles[i].min, name);
      const auto* largest = find_named(options.profiles[i].max, name);
      log.info("Input build shape (profile {}): {}={}+{}+{}", i, name, shape_text(least ? *least : opt),
               shape_text(opt), shape_text(largest ? *largest : opt));
      any = true;
    }
  if (!any) log.info("Input build shapes: model");
}

void print_build(const Options& options, TrtexecLog& log) {
  const auto number = [](const std::optional<int>& value) { return value.value_or(-1); };
  log.info("=== Build Options ===");
  log.info("Memory Pools: {}", pools_text(options));
  log.info("avgTiming: {}", options.average_timing.value_or(8));
  log.info("Precision: {}", precision_text(options));
  log.info("LayerPrecisions: {}", options.layer_precisions);
  log.info("Layer Device Types: {}", options.layer_device_types);
  log.info("Refit: {}", enabled(options.refit));
  log.info("Strip weights: {}", enabled(options.strip_weights || options.strip_all_weights));
  log.info("Version Compatible: {}", enabled(options.version_compatible));
  log.info("ONNX Plugin InstanceNorm: {}", enabled(options.plugin_instance_norm));
  log.info("TensorRT runtime: {}", options.use_runtime);
  log.info("Lean DLL Path: {}", options.lean_library);
  log.info("Tempfile Controls: {{ {} }}",
           options.tempfile_controls.empty() ? "in_memory: allow, temporary: allow" : options.tempfile_controls);
  log.info("Exclude Lean Runtime: {}", enabled(!options.lean_runtime_in_plan));
  log.info("Sparsity: {}", options.sparsity == "enable"  ? "Enabled"
                           : options.sparsity == "force" ? "Forced"
                                                         : "Disabled");
  log.info("DirectIO mode: {}", enabled(options.direct_io));
  log.info("Skip inference: {}", enabled(options.skip_inference));
  log.info("Save engine: {}", options.save_engine);
  log.info("Load engine: {}", options.load_engine);
  log.info("Profiling verbosity: {}", static_cast<int>(options.profiling_verbosity));
  log.info("Tactic sources: {}",
           options.tactic_sources.empty() ? "Using default tactic sources" : options.tactic_sources);
  log.info("timingCacheMode: {}", !options.builder_cache         ? "disable"
                                  : options.timing_cache.empty() ? "local"
                                                                 : "global");
  log.info("timingCacheFile: {}", options.timing_cache);
  log.info("Enable Compilation Cache: {}", enabled(options.compilation_cache));
  log.info("Enable Monitor Memory: {}", enabled(options.monitor_memory));
  log.info("errorOnTimingCacheMiss: {}", enabled(options.error_on_cache_miss));
  log.info("Preview Features: {}", options.preview.empty() ? "Use default preview flags." : options.preview);
  log.info("MaxAuxStreams: {}", number(options.max_aux_streams));
  log.info("BuilderOptimizationLevel: {}", number(options.level));
  log.info("MaxTactics: {}", number(options.max_tactics));
  log.info("Weight Streaming: {}", enabled(options.weight_streaming));
  log.info("Runtime Platform: {}", options.runtime_platform == "SameAsBuild" ? "Same As Build" : "Windows AMD64");
  log.info("Debug Tensors: {}", fmt::join(options.debug_tensors, ","));
  print_shapes(options, log);
}

void print_inference(const Options& options, const QuerySettings& settings, TrtexecLog& log) {
  log.info("=== Inference Options ===");
  log.info("Batch: Explicit");
  for (const auto& [name, dims] : options.shapes) log.info("Input inference shape : {}={}", name, shape_text(dims));
  if (options.shapes.empty()) log.info("Input inference shapes: model");
  log.info("Iterations: {}", options.iterations);
  log.info("Duration: {:g}s (+ {}ms warm up)", options.seconds, options.warm_up_ms);
  log.info("Sleep time: {}ms", options.sleep_ms);
  log.info("Idle time: {}ms", options.idle_ms);
  log.info("Inference Streams: {}", options.streams);
  log.info("ExposeDMA: {}", enabled(options.expose_dma));
  log.info("Data transfers: {}", enabled(settings.transfers));
  log.info("Spin-wait: {}", enabled(settings.spin_wait));
  log.info("Multithreading: {}", enabled(options.thread_per_stream));
  log.info("CUDA Graph: {}", enabled(settings.cuda_graph));
  log.info("Separate profiling: Enabled");
  log.info("Time Deserialize: {}", enabled(options.time_deserialize));
  log.info("Time Refit: {}", enabled(options.time_refit));
  log.info("Persistent Cache Ratio: {:g}", options.persistent_cache_ratio);
  log.info("Optimization Profile Index: {}", options.use_profile);
  log.info("Weight Streaming Budget: {}", options.weight_budget.empty() ? "100.000000%" : options.weight_budget);
  log.info("Inputs:");
  for (const auto& [name, path] : options.pairs[0].inputs) log.info("{}<-{}", name, path);
  log.info("Debug Tensor Save Destinations:");
  for (const auto& [name, path] : options.save_debug_tensors) log.info("{}: {}", name, path);
}

}  // namespace

void print_options(const Options& options, const QuerySettings& settings, TrtexecLog& log) {
  log.info("=== Model Options ===");
  log.info("Format: {}", options.onnx.empty() ? "*" : "ONNX");
  log.info("Model: {}", options.onnx);
  log.info("Output:");
  print_build(options, log);
  log.info("=== System Options ===");
  log.info("Device: {}", options.device);
  log.info("DLACore: ");
  log.info("Plugins: {}", fmt::join(options.static_plugins, " "));
  log.info("setPluginsToSerialize: {}", fmt::join(options.plugins_to_serialize, " "));
  log.info("dynamicPlugins: {}", fmt::join(options.dynamic_plugins, " "));
  log.info("ignoreParsedPluginLibs: {}", options.store_parsed_plugins ? 0 : 1);
  log.blank();
  print_inference(options, settings, log);
  log.info("=== Reporting Options ===");
  log.info("Verbose: {}", enabled(options.verbose));
  log.info("Averages: {} inferences", options.average_runs);
  log.info("Percentiles: {}", fmt::join(options.percentiles, ","));
  log.info("Dump refittable layers:{}", enabled(options.dump_refit));
  log.info("Dump output: {}", enabled(options.dump_output));
  log.info("Profile: {}", enabled(options.dump_profile));
  log.info("Export timing to JSON file: {}", options.export_times);
  log.info("Export output to JSON file: {}", options.export_output);
  log.info("Export profile to JSON file: {}", options.export_profile);
  log.blank();
}

void print_devices(const CudaCalls* calls, const std::string& why, const Options& options, TrtexecLog& log) {
  log.info("=== Device Information ===");
  if (!calls) {
    log.info("Available Devices: none, for {}", why);
    log.info("Selected Device: CPU");
    log.blank();
    return;
  }
  log.info("Available Devices: ");
  for (int i = 0; i < gpu_count(*calls); ++i) {
    const GpuFacts facts = gpu_facts(*calls, i);
    log.info("  Device {}: \"{}\" UUID: {}", i, facts.name, facts.uuid);
  }
  const GpuFacts facts = gpu_facts(*calls, options.device);
  log.info("Selected Device: {}", facts.name);
  log.info("Selected Device ID: {}", options.device);
  log.info("Selected Device UUID: {}", facts.uuid);
  log.info("Compute Capability: {}.{}", facts.major, facts.minor);
  log.info("SMs: {}", facts.multiprocessors);
  log.info("Device Global Memory: {} MiB", facts.memory_bytes >> 20);
  log.info("Shared Memory per SM: {} KiB", facts.shared_bytes >> 10);
  log.info("Memory Bus Width: {} bits (ECC {})", facts.bus_bits, facts.ecc ? "enabled" : "disabled");
  log.info("Application Compute Clock Rate: {:.6g} GHz", facts.clock_khz / 1e6);
  log.info("Application Memory Clock Rate: {:.6g} GHz", facts.memory_clock_khz / 1e6);
  log.blank();
  log.info(
      "Note: The application clock rates do not reflect the actual clock rates that the GPU is currently running "
      "at.");
  log.blank();
}

}  // namespace lathe::trtexec
