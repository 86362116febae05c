// SPDX-License-Identifier: Apache-2.0
// Runs a tactic's kernel on a device and compares it with the op's plain evaluation and the program's. The same checks
// run on the emulator and on a GPU.
//
//   Problem problem = pointwise_problem("in=2; r2=add r0 r1; out r2", {operand(DType::f16, {8, 64}), ...}, {...});
//   const Result<> checked = check_kernel(backend, pointwise_tactic(), problem, config, {});
#pragma once

#include "device/device.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

struct Backend {
  Device& device;
  Compiler& compiler;
};

struct CheckOptions {
  // |got - want| <= tolerance * (1 + |want|); negative = some rounding errors of the output's type. Integers are equal.
  double tolerance = -1;
  uint32_t seed = 1;
  // Contents, by index; undefined ones are random: normal floats, integers from -8 to 8 (or 0 to 8).
  std::vector<Tensor> inputs, operands, prologue_operands;
  std::vector<int64_t> symbols;  // values of the problem's symbols: operands have these dims
  // Run the plain evaluation in the types given, so that its roundings are expected too. Otherwise 16-bit floats are
  // evaluated in f32.
  bool evaluate_as_typed = false;
  // What prologues compute is rounded to the input's type before the root reads it, as kernels of products do.
  bool round_prologues = false;
};

Operand operand(DType dtype, Dims dims, Layout layout = Layout::linear);
Operand strided_operand(DType dtype, Dims dims, Dims strides);
// An operand of a pointwise program that begins there in a result of as many dimensions.
Operand padded_operand(Operand operand, const Dims& begin, float value);
// Dims may hold symbols, whose values are `symbols`; dense.
Operand symbolic_operand(DType dtype, Shape dims, std::span<const int64_t> symbols, Layout layout = Layout::linear);
Problem pointwise_problem(std::string_view program, std::vector<Operand> operands, std::vector<Operand> outputs);
// `attributes` must outlive the problem; `program` "" = none.
Problem op_problem(const Attributes& attributes, std::vector<Operand> inputs, std::vector<Operand> outputs,
                   std::string_view program = "", std::vector<Operand> operands = {});
// The kernel computes an input by the program, of its elements and the operands, as it reads it.
void put_before(Problem& problem, size_t input, std::string_view program, std::vector<Operand> operands);

// Emits, compiles and runs. The tensors are the problem's outputs, dense. What lies between the elements of strided
// outputs must be left alone.
Result<std::vector<Tensor>> run_kernel(const Backend& backend, const Tactic& tactic, const Problem& problem,
                                       const Config& config, const std::vector<Tensor>& inputs,
                                       const std::vector<Tensor>& operands, const std::vector<int64_t>& symbols,
                                       const std::vector<Tensor>& prologue_operands = {});
Result<> check_kernel(const Backend& backend, const Tactic& tactic, const Problem& problem, const Config& config,
                      const CheckOptions& options);
// Only a real compiler counts registers that spill. The tuner passes over such kernels, and so do checks.
bool spills_registers(const Result<>& checked);
// The first configuration that spills no registers, or all such. None, or a tactic that refuses, is an error.
Result<> check_first(const Backend& backend, const Tactic& tactic, const Problem& problem,
                     const CheckOptions& options = {});
Result<> check_tactic(const Backend& backend, const Tactic& tactic, const Problem& problem,
                      const CheckOptions& options = {});

}  // namespace lathe::cuda
