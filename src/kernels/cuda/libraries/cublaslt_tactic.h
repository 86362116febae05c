// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt. Bias, ReLU and GELU (by tanh) run on the library's sums; any other program runs in a
// launch of its own, and is timed with it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/matmul_call.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

class CublasLtTactic final : public Tactic {
 public:
  // With a handle the library lists its algorithms; without one it chooses when the engine is loaded. `missing`: why
  // the library cannot be used at all, "" where it can.
  CublasLtTactic(std::shared_ptr<const CublasLtHandle> handle, std::string missing)
      : handle_(std::move(handle)), missing_(std::move(missing)) {}

  std::string_view name() const override { return kCublasLtName; }
  bool writes_parts() const override { return true; }
  bool reads_parts(size_t input) const override { return input < 2; }
  std::optional<std::string> refuse(const Problem& problem) const override;
  std::vector<Config> configs(const Problem& problem) const override;
  Result<Emission> emit(const Problem& problem, const Config& config) const override;

 private:
  Result<std::vector<matmul::Algorithm>> algorithms(const Problem& problem) const;

  std::shared_ptr<const CublasLtHandle> handle_;
  std::string missing_;
  mutable std::mutex mutex_;
  mutable std::map<matmul::Values, std::vector<matmul::Algorithm>> asked_;  // what the library has answered
};

}  // namespace lathe::cuda
