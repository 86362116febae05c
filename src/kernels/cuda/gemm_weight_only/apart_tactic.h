// SPDX-License-Identifier: Apache-2.0
// Products of many rows by packed weights: a launch dequantises those to the workspace (dequantize.cuh), and those of
// another match multiply by them as by matrices that are computed. For numbers of rows that are known: a run of few
// rows would write all of the weights, too.
#pragma once

#include "kernels/cuda/gemm_weight_only/streamed_weights_tactic.h"

namespace lathe::cuda::weight_only {

// The choice: that of the other match.
struct ApartChoice {
  Config product;
};

class Apart {
 public:
  // `transposed`: the rows of input 1 are columns of the factor. What is passed outlives it.
  Apart(const Problem& problem, const PackedStream& weights, bool transposed, Matched (*product)(const Problem&));

  // The best few, for so many rows of each matrix. None for those of the smallest tile, whose weights are read once as
  // it is; where matrix units do not have the type; and where `product` refuses.
  std::vector<Config> configs(int64_t rows) const;
  Result<Emission> emit(const ApartChoice& choice) const;

 private:
  SourceLaunch dequantizing(const Emission& emission) const;
  Expr wide_bytes() const;

  const PackedStream& weights_;
  Matched (*product_)(const Problem&);
  Problem wide_;  // with the weights as the product reads them
};

}  // namespace lathe::cuda::weight_only
