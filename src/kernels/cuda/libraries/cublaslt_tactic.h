// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt. Bias, ReLU and GELU (by tanh) run on the library's sums; any other program runs in a
// launch of its own, and is timed with it.
#pragma once

#include <memory>

#include "device/cuda/matmul_call.h"
#include "kernels/cuda/libraries/staging_tactic.h"

namespace lathe::cuda {

// What is chosen.
struct MatmulChoice {
  int64_t version = 0;  // of the library that the algorithm is of; 0 = it chooses when the engine is loaded
  cublasLtMatmulAlgo_t algorithm{};
};

class CublasLtTactic final : public Tactic {
 public:
  // With a handle the library lists its algorithms; without one it chooses when the engine is loaded. `missing`: why
  // the library cannot be used at all, "" where it can.
  CublasLtTactic(std::shared_ptr<const CublasLtHandle> handle, std::string missing)
      : handle_(std::move(handle)), missing_(std::move(missing)) {}

  std::string_view name() const override { return kCublasLtName; }
  Matched match(const Problem& problem) const override;

 private:
  std::shared_ptr<const CublasLtHandle> handle_;
  std::string missing_;
  mutable LibraryAnswers<matmul::Values, matmul::CublasLtAlgorithm> answers_;
};

}  // namespace lathe::cuda
