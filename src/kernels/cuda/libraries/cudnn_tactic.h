// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN. Programs of a few stages, as a bias and an activation, run on the library's sums where it has
// an engine for them; any other program runs in a launch of its own, and is timed with it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/convolution_call.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

class CudnnTactic final : public Tactic {
 public:
  // As for CublasLtTactic.
  CudnnTactic(std::shared_ptr<const CudnnHandle> handle, std::string missing)
      : handle_(std::move(handle)), missing_(std::move(missing)) {}

  std::string_view name() const override { return kCudnnName; }
  std::optional<std::string> refuse(const Problem& problem) const override;
  std::vector<Config> configs(const Problem& problem) const override;
  Result<Emission> emit(const Problem& problem, const Config& config) const override;

 private:
  Result<std::vector<convolution::Engine>> engines(const Problem& problem, bool fused) const;

  std::shared_ptr<const CudnnHandle> handle_;
  std::string missing_;
  mutable std::mutex mutex_;
  mutable std::map<convolution::Values, std::vector<convolution::Engine>> asked_;  // what the library has answered
};

}  // namespace lathe::cuda
