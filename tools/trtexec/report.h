// SPDX-License-Identifier: Apache-2.0
// What is printed before, and what after an engine runs; the lines are those that scripts look for.
#pragma once

#include <string>
#include <vector>

#include "trtexec/gpu.h"
#include "trtexec/inference.h"
#include "trtexec/log.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

// Model, Build, System, Inference and Reporting Options.
void print_options(const Options& options, const QuerySettings& settings, TrtexecLog& log);

// `calls` null: there is no GPU, for the reason given.
void print_devices(const CudaCalls* calls, const std::string& why, const Options& options, TrtexecLog& log);

struct PerformanceContext {
  bool on_gpu = false;
  QuerySettings settings;
};
void print_performance(const RunTrace& trace, const Options& options, const PerformanceContext& context,
                       TrtexecLog& log);

// JSON of --exportTimes and --exportOutput.
void export_times(const RunTrace& trace, const std::string& path);
void export_outputs(const std::vector<cli::HostTensor>& outputs, const std::string& path);

void print_outputs(const std::vector<cli::HostTensor>& outputs, TrtexecLog& log);
void write_raw_bindings(const IoBindings& bindings, const std::vector<cli::HostTensor>& outputs, TrtexecLog& log);
std::string value_text(const cli::HostTensor& tensor, int64_t index);

// --dumpLayerInfo, --exportLayerInfo, --dumpOptimizationProfile.
void report_layers(const nvinfer1::ICudaEngine& engine, const nvinfer1::IExecutionContext* context,
                   const Options& options, TrtexecLog& log);
void print_profiles(const nvinfer1::ICudaEngine& engine, TrtexecLog& log);

}  // namespace lathe::trtexec
