// SPDX-License-Identifier: Apache-2.0
// What each subcommand can be told, and what does it. All throw Failure or UsageError; their result is the exit status.
#pragma once

#include <string>
#include <vector>

#include "NvInfer.h"

namespace lathe::cli {

// How a model becomes an engine.
struct BuildSettings {
  std::string min_shapes, opt_shapes, max_shapes;
  std::string input_elements;  // of inputs that are sequences or optionals
  std::string timing_cache;
  double budget = -1;
  int threads = 0;
  int level = -1;
  std::string target;   // empty: the library's default
  std::string targets;  // several, separated by commas
  bool stores_weights = false;
  std::string tactic_sources;  // "+CUBLAS_LT,-CUDNN"; changes to the default
  bool fp16 = false, bf16 = false, int8 = false, best = false, no_tf32 = false, strongly_typed = false;
  std::string sparsity = "disable";
  std::string constraints, layer_precisions, layer_output_types;
  std::string pass_dump;          // folder for the network after each pass
  std::vector<std::string> skip;  // passes
  bool version_compatible = false, exclude_lean_runtime = false;
  bool verbose = false;

  nvinfer1::ILogger::Severity least_severity() const {
    return verbose ? nvinfer1::ILogger::Severity::kVERBOSE : nvinfer1::ILogger::Severity::kWARNING;
  }
};

// What loads and runs an engine.
struct RuntimeSettings {
  std::string which = "full", lean_library;
  std::string trusted_keys;  // of setTrustedKeys(); empty: none besides those of the environment
  std::string cache_file;    // of setRuntimeCacheFile(); empty: none
  bool allow_host_code = false;
};

struct BuildCommand {
  std::string model, output;
  BuildSettings settings;
};
int build(const BuildCommand& command);

struct RunCommand {
  std::string file, inputs, output_directory;
  BuildSettings settings;
  RuntimeSettings runtime;
};
int run(const RunCommand& command);

struct BenchCommand {
  std::string file, shapes, inputs, json;
  double seconds = 3;
  BuildSettings settings;
  RuntimeSettings runtime;
};
int bench(const BenchCommand& command);

struct InspectCommand {
  std::string file, json, html;
  std::string inputs;  // of the runs that measure; others are made up
  bool support = false, profile = false;
  std::string why;  // a tensor's name
  BuildSettings settings;
};
int inspect(const InspectCommand& command);

struct TuneCommand {
  std::string model;
  std::vector<std::string> caches;  // files that are merged into the timing cache
  BuildSettings settings;           // with a timing cache
};
int tune(const TuneCommand& command);

// Two engines. The exit status is 0 when they are the same, 1 when they differ, 2 when they cannot be compared.
struct DiffCommand {
  std::string a, b, json;
};
int diff(const DiffCommand& command);

struct MergeCommand {
  std::vector<std::string> files;
  std::string output;
  bool stores_weights = false;
};
int merge(const MergeCommand& command);

// Engines that are kept beside models: include/lathe_artifacts.h.
struct CacheCommand {
  std::string path;       // a folder; of `explain` and `get` a model
  std::string directory;  // where the model's artifacts lie
  std::string precision = "fp32", target, output;
  int batch = 1;
  int64_t most_bytes = 0;
  BuildSettings settings;
};
int list_artifacts(const CacheCommand& command);
int verify_artifacts(const CacheCommand& command);
int prune_artifacts(const CacheCommand& command);
int explain_artifact(const CacheCommand& command);
int get_artifact(const CacheCommand& command);

// New key files, NAME.key and NAME.pub.
struct KeyCommand {
  std::string name;
};
int make_key(const KeyCommand& command);

struct SignCommand {
  std::string file, key, output;  // no output: in place
};
int sign(const SignCommand& command);

struct VerifyCommand {
  std::string file, trusted_keys;  // no keys: those of the environment
};
int verify(const VerifyCommand& command);

struct CompareCommand {
  std::string model, shapes, inputs, json;
  std::string outputs;              // name:file,...: of others, to compare with
  std::string tensors;              // a .npz file of such, and of values inside
  std::string reference = "model";  // or "f64": floats of the plain evaluation
  double rtol = 1e-3, atol = 1e-5;
  double budget = -1;  // of the error of a narrow engine; negative = layers are as the settings say
  std::string kept;    // file for the arguments that keep layers wide
  BuildSettings settings;
};
int compare(const CompareCommand& command);

struct QuantizeCommand {
  std::string model, data, output, json;
  std::string method, types = "i8,i8";  // "" = the one for the types
  double percentile = 99.99;
  bool asymmetric = false, per_tensor = false;
  std::vector<std::string> exclude;
  int64_t batch = 32;      // samples, where the model leaves that open
  double budget = -1;      // of the error of outputs; negative = no layer is sought out
  int32_t trials = 8;      // batches that the error is measured on
  BuildSettings settings;  // of the engines that measure it
};
int quantize(const QuantizeCommand& command);

struct ConformanceCommand {
  std::vector<std::string> directories;
  std::string mode = "runtime", json, target;
  bool no_tf32 = false;
  int jobs = 0;
  double timeout = 120;
  bool quiet = false;
};
int conformance(const ConformanceCommand& command);

struct DoctorCommand {
  std::string json;
};
int doctor(const DoctorCommand& command);

}  // namespace lathe::cli
