// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_tactic.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/integer_panels.h"

namespace lathe::cpu {

std::optional<std::string> refuse_integers(const Problem& problem, size_t column_dim) {
  const Operand& x = problem.inputs[0];
  const Operand& w = problem.inputs[1];
  if (!is_byte_integer(x.dtype) || !is_byte_integer(w.dtype)) return "not 8-bit integers";
  const Result<gemm::IntegerProgram> program = gemm::compile_integer_epilogue(&problem.program, types_of(problem));
  if (!program) return program.error().message;
  for (int operand : {program->zero_operand, program->scale_operand}) {
    if (operand < 0) continue;
    const Shape& dims = problem.operands[static_cast<size_t>(operand)].dims;
    const Shape& strides = problem.operands[static_cast<size_t>(operand)].strides;
    for (size_t d = 0; d < dims.size(); ++d)
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
