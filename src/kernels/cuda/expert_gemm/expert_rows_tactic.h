// SPDX-License-Identifier: Apache-2.0
// The rows of products by matrices of experts, however those are read: which ones a block has (expert_gemm.cuh).
#pragma once

#include <optional>
#include <string>

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {

// How parts of `tile` rows are found: by a launch of their own that sorts all rows, or each block looks for its own
// among few.
struct RowParts {
  int64_t tile = 0;
  bool sorts = false;
};

struct RoutedRows {
  Expr rows;
  int64_t experts = 0, opt_rows = 0;
  Operand x, ids;  // of the rows' dimensions
  bool is_strict = false;

  // Of experts that have rows, as many as there are on average.
  int64_t used() const;
  int64_t rows_of_each() const;
  static constexpr int64_t kFewRows = 64;
  bool may_be_few(int64_t tile) const;  // for parts of such tiles

  Expr parts(const RowParts& by) const;  // as many as there can be
  // The expression that finds the part `number`; `shared`: where its own memory begins, `shared_bytes(by)`. `ids` is
  // their place among the emission's inputs, here and below.
  std::string find(Source& source, const RowParts& by, size_t ids, int64_t shared) const;
  int64_t shared_bytes(const RowParts& by) const;
  // Adds the launch that sorts, if there is one, in a grid that is multiplied by `is_wanted`, and its workspace.
  void add_sorting(const RowParts& by, size_t ids, const Expr& is_wanted, Emission& emission) const;
  gemm::Ending ending(const Problem& problem, size_t ids, const Expr& columns) const;
};

// A reason in words when kernels on GPUs cannot take them.
std::optional<std::string> describe(const Problem& problem, RoutedRows& rows);

}  // namespace lathe::cuda
