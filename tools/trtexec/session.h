// SPDX-License-Identifier: Apache-2.0
// An engine that is run, measured and compared.
#pragma once

#include <memory>
#include <vector>

#include "trtexec/engine.h"
#include "trtexec/inference.h"

namespace lathe::trtexec {

class MeasuringSession {
 public:
  // `gpu` is null for engines of the CPU; all of them outlive this. Throws cli::Failure.
  MeasuringSession(nvinfer1::ICudaEngine& engine, const GpuContext* gpu, const QuerySettings& settings,
                   const Options& options, TrtexecLog& log);

  // Makes the contexts, with inputs in place.
  void prepare();
  // Warms up, measures, and reports times and outputs.
  void measure();
  // Times layers, in a run of its own.
  void profile_layers();
  // One inference of its own with debug tensors saved.
  void save_debug_tensors();
  // Whether outputs are as --loadRefOutputs has them.
  bool compare();
  const nvinfer1::IExecutionContext* context() const { return contexts_.empty() ? nullptr : contexts_[0].get(); }

 private:
  std::unique_ptr<nvinfer1::IExecutionContext> make_context();
  std::unique_ptr<QueryStream> make_stream(nvinfer1::IExecutionContext& context, const QuerySettings& settings,
                                           const ReferencePair& files);
  void give_memory(nvinfer1::IExecutionContext& context);
  RunLimits limits() const;
  QuerySettings repeated() const;
  void warm_up(const std::vector<std::unique_ptr<QueryStream>>& streams);
  RunTrace run(const std::vector<std::unique_ptr<QueryStream>>& streams);
  std::vector<cli::HostTensor> run_once(QueryStream& stream);

  nvinfer1::ICudaEngine& engine_;
  const GpuContext* gpu_;
  QuerySettings settings_;
  const Options& options_;
  TrtexecLog& log_;
  IoPlace place_;
  std::vector<std::shared_ptr<void>> memory_;  // of contexts, where the application gives it
  std::vector<std::unique_ptr<nvinfer1::IExecutionContext>> contexts_;
  std::vector<std::unique_ptr<QueryStream>> streams_;
};

}  // namespace lathe::trtexec
