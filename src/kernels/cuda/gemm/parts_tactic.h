// SPDX-License-Identifier: Apache-2.0
// Operands whose dimensions have parts (Operand::reassociation), as the product reads them.
#pragma once

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"

namespace lathe::cuda::gemm {

// What lies at one stride.
struct PartedDim {
  std::vector<Part> parts;  // outermost first; parts that continue each other are one

  void put_before(const Part& part);
};

// The operand with the op's own dimensions; their strides are those of the last parts.
struct PartedOperand {
  Operand whole;
  std::vector<PartedDim> dims;

  explicit PartedOperand(const Operand& operand);
  bool has_parts() const;  // some dimension lies at several strides
};

// Describes a matrix of which `rows` or `columns` (K) have parts. A reason when loaders cannot read it.
std::optional<std::string> describe_parts(const Operand& operand, PartedDim rows, PartedDim columns,
                                          const Shape& batch_strides, Matrix& out);

// The text that declares the loader of such a left operand, which is input 0 of the emission, and starts it.
std::string parts_loader(Source& source, const Operand& operand, const Matrix& matrix, std::string_view offset);

}  // namespace lathe::cuda::gemm
