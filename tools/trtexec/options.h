// SPDX-License-Identifier: Apache-2.0
// What the command line of trtexec says.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "cli/shapes.h"

namespace lathe::trtexec {

using nvinfer1::DataType;
using nvinfer1::TensorFormat;

// What a tensor of the application may be: an entry of --inputIOFormats or --outputIOFormats.
struct IoFormat {
  DataType type = DataType::kFLOAT;
  nvinfer1::TensorFormats formats = 0;  // bit i stands for TensorFormat i
};

// Files of one run: inputs, and outputs to compare with.
struct ReferencePair {
  std::map<std::string, std::string> inputs, outputs;  // name to path
};

struct Options {
  // ---- The model and how it is built ----
  std::string onnx, load_engine, save_engine;
  bool async_file_reader = false, plan_version_only = false;
  std::vector<cli::ShapeRanges> profiles{1};
  size_t profile = 0;  // the one that --minShapes and the like speak of
  std::vector<IoFormat> input_formats, output_formats;
  std::map<nvinfer1::MemoryPoolType, size_t> pools;  // bytes
  std::optional<int> level, max_tactics, average_timing, tiling_level, max_aux_streams;
  std::optional<int64_t> l2_limit;  // bytes
  nvinfer1::ProfilingVerbosity profiling_verbosity = nvinfer1::ProfilingVerbosity::kLAYER_NAMES_ONLY;
  std::string timing_cache;
  std::string calibration;  // file of a cache
  bool builder_cache = true, compilation_cache = true, error_on_cache_miss = false, monitor_memory = false;
  std::string tactic_sources, preview, build_route, remote_tuning;
  bool fp16 = false, bf16 = false, int8 = false, tf32 = true;
  std::string constraints, layer_precisions, layer_output_types;
  std::string layer_device_types, sparsity = "disable";
  bool refit = false, strip_weights = false, strip_all_weights = false, weight_streaming = false;
  bool version_compatible = false, lean_runtime_in_plan = true, direct_io = false, gpu_fallback = false;
  bool distributive_independence = false;
  std::string hardware_compatibility = "none", runtime_platform = "SameAsBuild";
  std::string temporary_directory, tempfile_controls;
  bool plugin_instance_norm = false, plugin_override = false;
  bool uint8_dla = false, report_capability_dla = false, adjust_for_dla = false;
  std::vector<std::string> decomposable_attentions, debug_tensors;
  bool unfused_debug_tensors = false;
  std::string refit_model;  // --refitFromOnnx
  std::string use_runtime = "full", lean_library;
  double build_budget = -1;  // seconds; negative: the level decides
  std::string target;        // empty: the device where there is one, else LATHE_TARGET's, else the CPU
  int cpu_threads = 0;       // 0: all

  // ---- Inference ----
  cli::ShapeMap shapes;
  int use_profile = 0;
  std::vector<ReferencePair> pairs{1};
  size_t pair = 0;  // the one that --loadInputs and --loadRefOutputs speak of
  int iterations = 10, warm_up_ms = 200, sleep_ms = 0, idle_ms = 0, streams = 1;
  double seconds = 3;  // negative: until interrupted
  bool thread_per_stream = false, expose_dma = false, managed_memory = false;
  int generation = 0;  // whose defaults count; 0: of the version that the library has
  std::optional<bool> transfers, cuda_graph, spin_wait;
  std::string allocation_strategy = "static", weight_budget;
  double persistent_cache_ratio = 0;
  bool skip_inference = false, time_deserialize = false, time_refit = false;
  std::string accuracy = "l0";
  double atol = 1e-5, rtol = 1e-5;
  std::optional<double> accuracy_threshold;
  std::map<std::string, std::string> save_debug_tensors;  // name to path
  std::vector<std::string> debug_formats;                 // of --saveAllDebugTensors

  // ---- Reporting and the system ----
  bool verbose = false, dump_refit = false, dump_output = false, dump_raw_bindings = false, dump_profile = false;
  bool dump_layer_info = false, dump_optimization_profile = false;
  int average_runs = 10;
  std::vector<double> percentiles{90, 95, 99};
  std::string export_times, export_output, export_profile, export_layer_info;
  int device = 0;
  std::vector<std::string> static_plugins, dynamic_plugins, plugins_to_serialize;
  bool store_parsed_plugins = true;
  std::string help;                   // "text" or "markdown"
  std::string help_route;             // "all", or a knob
  std::vector<std::string> warnings;  // what was accepted without doing what it says

  bool builds() const { return !onnx.empty() && load_engine.empty(); }
  bool profiles_layers() const { return dump_profile || !export_profile.empty(); }
};

}  // namespace lathe::trtexec
