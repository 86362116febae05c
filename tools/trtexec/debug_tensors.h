// SPDX-License-Identifier: Apache-2.0
// Debug tensors in files: --saveDebugTensors and --saveAllDebugTensors.
#pragma once

#include <map>
#include <string>

#include "NvInfer.h"
#include "cli/tensor.h"
#include "trtexec/gpu.h"
#include "trtexec/log.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

// Of one context. Each tensor of --saveDebugTensors goes to its file, the last inference's counts; all of them go to
// files NNNN_<tensor>.<ending>, or to the log (summary), NNNN being the inference.
class DebugTensorFiles final : public nvinfer1::IDebugListener {
 public:
  // `calls` null: tensors lie in memory of the host.
  DebugTensorFiles(const Options& options, const CudaCalls* calls, TrtexecLog& log)
      : options_(options), calls_(calls), log_(log) {}

  // Asks the context for what the options name. Throws cli::Failure where it does not have it.
  void attach(nvinfer1::IExecutionContext& context);
  static bool wanted(const Options& options) {
    return !options.save_debug_tensors.empty() || !options.debug_formats.empty();
  }
  bool processDebugTensor(const void* address, nvinfer1::TensorLocation location, nvinfer1::DataType type,
                          const nvinfer1::Dims& shape, const char* name, cudaStream_t stream) override;

 private:
  void save(const cli::HostTensor& tensor, int inference) const;

  const Options& options_;
  const CudaCalls* calls_;
  TrtexecLog& log_;
  std::map<std::string, int> seen_;  // how often each was
};

}  // namespace lathe::trtexec
