// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/match.h"

namespace lathe::cuda {

bool is_short_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

bool is_matrix_half(const Target& target, DType dtype) {
  return dtype == DType::f16 || (dtype == DType::bf16 && target.limits.bfloat16);
}

void add_operand_inputs(const Problem& problem, Emission& emission) {
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
}

void add_prologue_inputs(const Problem& problem, size_t input, Emission& emission, size_t first) {
  for (size_t k = first; k < problem.inputs[input].operands.size(); ++k)
    emission.inputs.push_back({.kind = StepInput::input_operand, .index = input, .of_program = k});
}

Operand packed_operand(const Packed& packed) {
  Operand operand;
  operand.dtype = packed.dtype();
  operand.dims = to_shape(packed.dims());
  operand.strides = dense_strides(operand.dims, Layout::linear);
  return operand;
}

Emission with_weights(Packed packed) {
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
  emission.packed.push_back(std::move(packed));
  return emission;
}

}  // namespace lathe::cuda
