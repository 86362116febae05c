// SPDX-License-Identifier: Apache-2.0
// Operands whose dimensions are collapsed from several axes (Operand::reassociation), as the product reads them.
#pragma once

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"

namespace lathe::cuda::gemm {

// A dimension of the op, collapsed from axes.
struct CollapsedDim {
  std::vector<StridedAxis> axes;  // outermost first; axes that are contiguous with each other are merged

  void prepend(const StridedAxis& axis);
};

// The operand with the op's own dimensions; their strides are those of the innermost axes.
struct CollapsedOperand {
  Operand whole;
  std::vector<CollapsedDim> dims;

  explicit CollapsedOperand(const Operand& operand);
  bool has_several_strides() const;  // in some dimension
};

// Describes a matrix of which `rows` or `columns` (K) have several axes. A reason when loaders cannot read it.
std::optional<std::string> describe_collapsed(const Operand& operand, CollapsedDim rows, CollapsedDim columns,
                                              const Shape& batch_strides, Matrix& out);

// The text that declares the loader of such a left operand, which is input 0 of the emission, and starts it.
std::string collapsed_loader(Source& source, const Operand& operand, const Matrix& matrix, std::string_view offset);

}  // namespace lathe::cuda::gemm
