// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_tactic.h"

#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/integer_panels.h"

namespace lathe::cpu {

std::optional<std::string> refuse_integers(const Problem& problem, size_t column_dim) {
  const Operand& x = problem.inputs[0];
  const Operand& w = problem.inputs[1];
  if ((x.dtype != DType::u8 && x.dtype != DType::i8) || w.dtype != DType::i8) return "not 8-bit integers";
  if (!w.constant) return "the weights are not constant";
  std::vector<int64_t> types;
  add_types(problem, types);
  const Result<gemm::IntegerProgram> program = gemm::compile_integer_epilogue(&problem.program, types);
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

void add_types(const Problem& problem, std::vector<int64_t>& params) {
  params.push_back(static_cast<int64_t>(problem.outputs[0].dtype));
  for (const Operand& operand : problem.operands) params.push_back(static_cast<int64_t>(operand.dtype));
}

Result<Emission> emit_integers(const Problem& problem, const Config& config, std::string_view kernel,
                               const gemm::Panels& fours, int64_t groups, const int8_t* columns) {
  Emission emission;
  emission.kernel = kernel;
  emission.params = config.values;
  emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  const int64_t count = gemm::packed_integers(fours, groups);
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::i32, {count}));
  gemm::pack_integers(fours, groups, columns, {packed.mutable_as<int32_t>(), static_cast<size_t>(count)});
  emission.packed.push_back(std::move(packed));
  return emission;
}

}  // namespace lathe::cpu
