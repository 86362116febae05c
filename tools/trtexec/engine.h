// SPDX-License-Identifier: Apache-2.0
// Engines from plans and files.
#pragma once

#include <memory>
#include <string>

#include "NvInfer.h"
#include "trtexec/log.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

struct OpenedEngine {
  std::unique_ptr<nvinfer1::IRuntime> runtime;
  std::unique_ptr<nvinfer1::ICudaEngine> engine;
  std::string target;  // "cpu-x86_64-avx512", "cuda-sm_90"

  bool runs_on_gpu() const { return target.starts_with("cuda"); }
};

// From the plan, or else from the file of --loadEngine. Throws cli::Failure.
OpenedEngine open_engine(const nvinfer1::IHostMemory* plan, const Options& options, TrtexecLog& log);

// Version of the interface that wrote the file of --loadEngine, as "11.1.0.106".
std::string plan_version(const Options& options);

// Times loading over and over.
void time_deserialize(const nvinfer1::IHostMemory* plan, const Options& options, TrtexecLog& log);

// --refitFromOnnx, --timeRefit, --dumpRefit.
void refit_engine(OpenedEngine& opened, const Options& options, TrtexecLog& log);

void set_weight_budget(nvinfer1::ICudaEngine& engine, const Options& options, TrtexecLog& log);

}  // namespace lathe::trtexec
