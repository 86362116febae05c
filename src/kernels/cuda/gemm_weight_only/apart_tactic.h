// SPDX-License-Identifier: Apache-2.0
// Products of many rows by packed weights: a launch dequantises those to the workspace (dequantize.cuh), and those of
// another match multiply by them as by matrices that are computed. Where the number of rows is open, a step has that
// beside what streams the weights, for few rows would write all of them, too.
#pragma once

#include <functional>

#include "kernels/cuda/gemm_weight_only/streamed_weights_tactic.h"

namespace lathe::cuda::weight_only {

// The choice: that of the other match.
struct ApartChoice {
  Config product;
};

// Where the number of rows is open: more than `above` are multiplied apart.
struct ManyRows {
  ApartChoice choice;
  std::string text;
  int64_t above = 0;
};

class Apart {
 public:
  // `transposed`: the rows of input 1 are columns of the factor. What is passed but the problem outlives it.
  Apart(const Problem& problem, const PackedStream& weights, bool transposed, Matched (*product)(const Problem&));

  // The best few, for so many rows of each matrix. None for those of the smallest tile, whose weights are read once as
  // it is; where matrix units do not have the type; and where `product` refuses.
  std::vector<Config> configs(int64_t rows) const;
  // In grids that are multiplied by `is_wanted`. The emission has the problem's inputs, and the weights as they are
  // packed from input 1 on. `rows`: the first factor is in the workspace, from there to its end, and not an input.
  Result<> add_launches(const ApartChoice& choice, const Expr& is_wanted, Emission& emission,
                        const std::optional<Expr>& rows = {}) const;
  int64_t wide_bytes() const;  // of the workspace, for the weights

 private:
  SourceLaunch dequantizing(const Emission& emission, const Expr& begin) const;

  const PackedStream& weights_;
  Matched (*product_)(const Problem&);
  Problem wide_;  // with the weights as the product reads them
};

// From which of `rows` on the best that `apart` gives for a problem is predicted faster than what streams; nullopt
// where that is never so, or the workspace would be more than an engine should pay for rows that it is not tuned for.
std::optional<ManyRows> many_rows(const Problem& problem, const Expr& rows, int64_t wide_bytes,
                                  const std::function<std::vector<Config>(const Problem&)>& apart,
                                  const std::function<double(const Problem&)>& streamed_us);

}  // namespace lathe::cuda::weight_only
