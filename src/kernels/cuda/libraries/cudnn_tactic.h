// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN. Programs of a few stages, as a bias and an activation, run on the library's sums where it has
// an engine for them; any other program runs in a launch of its own, and is timed with it.
#pragma once

#include <memory>

#include "device/cuda/convolution_call.h"
#include "kernels/cuda/libraries/staging_tactic.h"

namespace lathe::cuda {

// What is chosen.
struct ConvolutionChoice {
  bool fused = true;    // the library runs the program, too
  int64_t version = 0;  // of the library that the engine is of; 0 = it chooses when the plan is loaded
  convolution::CudnnEngine engine;
};

class CudnnTactic final : public Tactic {
 public:
  // As for CublasLtTactic.
  CudnnTactic(std::shared_ptr<const CudnnHandle> handle, std::string missing)
      : handle_(std::move(handle)), missing_(std::move(missing)) {}

  std::string_view name() const override { return kCudnnName; }
  Matched match(const Problem& problem) const override;

 private:
  std::shared_ptr<const CudnnHandle> handle_;
  std::string missing_;
  mutable LibraryAnswers<convolution::Values, convolution::CudnnEngine> answers_;
};

}  // namespace lathe::cuda
