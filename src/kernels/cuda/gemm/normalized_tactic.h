// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised behind their products (Operand::normalization, gemm/normalized_rows.cuh).
#pragma once

#include <optional>
#include <string>

#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::gemm {

// Why the rows of input 0 are none that tiles normalise; nullopt also where they are multiplied as they are.
std::optional<std::string> refuse_normalization(const Problem& problem, const Product& product);

class NormalizedSums {
 public:
  NormalizedSums(const Problem& problem, const Product& product, const TileShape& tile);

  // Multiplies the packed weights, the emission's first, by the scale, and adds what else the sink reads.
  Result<> add_terms(Emission& emission);
  // Where the tile does not find the factors of rows, a launch does, and writes them to the workspace.
  void add_statistics(Emission& emission) const;
  void add_workspace(Emission& emission) const;

  std::string rows() const;                                        // of run_pipeline()
  std::string sink(Source& source, const std::string& own) const;  // around another one

 private:
  std::string statistic() const;

  const Problem& problem_;
  const Product& product_;
  const bool finds_them_;  // the tile
  const int64_t k_;
  RowNormalization attributes_;
  const Tensor *scale_ = nullptr, *bias_ = nullptr;
  const Expr begin_;  // of the factors, in the workspace
  size_t terms_input_ = 0;
  std::optional<Operand> terms_;
};

}  // namespace lathe::cuda::gemm
