// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised before they are multiplied (Operand::normalization): by the kernel of few rows itself, or by
// a launch before it.
#pragma once

#include <optional>
#include <string>

#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::gemv {

// Why the rows of input 0 are none that kernels normalise; nullopt also where they are multiplied as they are.
std::optional<std::string> refuse_normalization(const Problem& problem);

// How kernels normalise the rows of such an input (normalized_rows.cuh).
class NormalizedRows {
 public:
  // Scale and bias are the emission's inputs from `first_input` on.
  NormalizedRows(const Problem& problem, size_t first_input);

  // Bytes of shared memory before those of the rows, of a tile of so many rows and K in panels.
  int64_t shared_bytes(int64_t rows, int64_t panels, int64_t threads) const;
  // What a block does beside its panels, in clocks.
  double clocks(int64_t rows, int64_t threads) const;
  std::string reader(int64_t rows, int64_t threads) const;           // the type
  std::string rows(Source& source, const std::string& plain) const;  // what it reads: declares scale and bias

  // Adds the launches that write the rows normalised to the workspace, from where that ends, in grids that are
  // multiplied by `is_wanted`. Gives where they are.
  Result<Expr> add_launches(const Expr& is_wanted, Emission& emission) const;
  Operand written() const;      // these rows, as a first factor
  Expr pitch() const;           // elements between them
  double predicted_us() const;  // of these launches

 private:
  const Problem& problem_;
  const size_t first_input_;
  const int64_t k_;
  RowStatistic statistic_;
  bool has_scale_ = false, has_bias_ = false;
};

}  // namespace lathe::cuda::gemv
