// SPDX-License-Identifier: Apache-2.0
// Work captured as a CUDA graph.
#pragma once

#include "device/cuda/stream.h"
#include "device/device.h"

namespace lathe::cuda {

class CudaGraph : public CapturedGraph {
 public:
  static Result<std::unique_ptr<CudaGraph>> capture(const std::shared_ptr<PrimaryContext>& context,
                                                    const std::function<Result<>(Queue&)>& work);
  // Without make_ready().
  static Result<std::unique_ptr<CudaGraph>> record(const std::shared_ptr<PrimaryContext>& context,
                                                   const std::function<Result<>(Queue&)>& work);
  ~CudaGraph() override;

  Result<> replay(Queue& queue) override;
  Result<> update(const std::function<Result<>(Queue&)>& work) override;
  Result<> record(const std::function<Result<>(Queue&)>& work) override;
  Result<> make_ready() override;

 private:
  explicit CudaGraph(std::shared_ptr<PrimaryContext> context) : context_(std::move(context)) {}
  void destroy_executable();
  void destroy_recorded();

  std::shared_ptr<PrimaryContext> context_;
  std::unique_ptr<Stream> stream_;  // work is captured on it, never run
  CUgraph recorded_ = nullptr;      // that executable_ is to be
  CUgraphExec executable_ = nullptr;
};

// Has the driver take the memory of so many graphs of `work`, which are made and go again.
Result<> reserve_graphs(const std::shared_ptr<PrimaryContext>& context, const std::function<Result<>(Queue&)>& work,
                        size_t graphs);

}  // namespace lathe::cuda
