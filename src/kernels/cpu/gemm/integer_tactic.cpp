// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_tactic.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/integer_panels.h"

namespace lathe::cpu {

std::optional<std::string> refuse_integers(const Problem& problem, size_t column_dim, size_t first_shared) {
  const Operand& x = problem.inputs[0];
  const Operand& w = problem.inputs[1];
  if (!is_byte_integer(x.dtype) || !is_byte_integer(w.dtype)) return "not 8-bit integers";
  const Result<gemm::IntegerProgram> program = gemm::compile_integer_epilogue(&problem.program, types_of(problem));
  if (!program) return program.error().message;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const auto &dims = problem.operands[i].dims, &strides = problem.operands[i].strides;
    const bool is_in_rows =
        dims[column_dim] == Expr(1) || strides[column_dim] == Expr(0) || strides[column_dim] == Expr(1);
    if (static_cast<int>(i) == program->term_operand && !is_in_rows)
      return "what is taken off sums does not lie along their columns";
    if (!program->is_along_columns(static_cast<int>(i))) continue;
    for (size_t d = first_shared; d < dims.size(); ++d)
      if (d != column_dim && dims[d] != Expr(1) && strides[d] != Expr(0)) return "sums are not scaled by columns";
  }
  return std::nullopt;
}

gemm::IntegerTypes types_of(const Problem& problem) {
  gemm::IntegerTypes types{problem.outputs[0].dtype, {}};
  for (const Operand& operand : problem.operands) types.operands.push_back(operand.dtype);
  return types;
}

Result<Emission> emit_integers(const Problem& problem, std::vector<int64_t> params, const gemm::Panels& fours,
                               int64_t groups, const int8_t* columns) {
  const int64_t count = gemm::packed_integers(fours, groups);
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::i32, {count}));
  gemm::pack_integers(fours, groups, columns, {packed.mutable_as<int32_t>(), static_cast<size_t>(count)});
  return emission_with_weights(problem, std::move(params), std::move(packed));
}

}  // namespace lathe::cpu
