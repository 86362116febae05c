// SPDX-License-Identifier: Apache-2.0
// A convolution as a matrix product of pixels by output channels, however its weights are read.
#pragma once

#include "kernels/conv_shape_tactic.h"
#include "kernels/cuda/conv/shuffle_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"

namespace lathe::cuda::conv {

// How the input's pixels are read.
enum class PixelLoad {
  dense,   // as a matrix of pixels by channels: every output pixel reads the input pixel at its place
  window,  // vectors of channels
  gather,  // element by element
};

struct ImplicitGemm {
  ConvShape attributes;
  PixelLoad load = PixelLoad::gather;
  int width = 1;         // channels copied at once
  int64_t channels = 0;  // of a group
  int64_t padded = 0;    // as K counts them
  int64_t outputs = 0;   // channels of a group
  int64_t taps = 1;
  Expr pixels;     // of the output, over the whole batch
  Operand output;  // with the op's own dimensions
  Shuffle shuffle;
  int64_t k() const { return taps * padded; }
  int64_t copied_channels(DType dtype) const;  // as K counts them where the copy engine brings windows: whole panels
};

// A reason in words when tiles cannot compute the problem.
std::optional<std::string> describe(const Problem& problem, ImplicitGemm& form);
gemm::Extent extent_of(const Problem& problem, const ImplicitGemm& form);  // as the cost model sees it
// The product that tensor maps may describe, of images that are a matrix of pixels by channels, or whose windows the
// copy engine can bring, without groups.
std::optional<gemm::Product> product_of(const Problem& problem, const ImplicitGemm& form);
// The text that a kernel begins with.
std::string declare_product(Source& source, const gemm::TileShape& tile, DType dtype, const ImplicitGemm& form);
// The text that declares the loader of A, which is input 0 of the emission.
std::string input_loader(Source& source, const Problem& problem, const ImplicitGemm& form, const gemm::TileShape& tile,
                         Emission& emission);
gemm::Ending ending_of(const ImplicitGemm& form, DType dtype);

}  // namespace lathe::cuda::conv
