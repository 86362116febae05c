// SPDX-License-Identifier: Apache-2.0
#include "tuning/needs.h"

#include <algorithm>
#include <cstdlib>

#include "device/taken_constants.h"

namespace lathe {
namespace {

Result<TensorArg> arg_of(DType dtype, const Shape& dims, const Shape& strides, std::span<const int64_t> symbols) {
  TensorArg arg;
  arg.dtype = dtype;
  arg.rank = static_cast<int>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<int64_t> dim = dims[d].evaluate(symbols), stride = strides[d].evaluate(symbols);
    if (!dim || !stride) return fail(ErrorCode::shape_unknown, "dimension {} is not known", d);
    arg.dims[d] = *dim;
    arg.strides[d] = *stride;
  }
  return arg;
}

Result<TensorArg> arg_of(const Problem& problem, const Emission& emission, const StepInput& input,
                         std::span<const int64_t> symbols) {
  if (input.kind == StepInput::packed) {
    const Packed& packed = emission.packed[input.index];
    const Shape dims = to_shape(packed.dims());
    return arg_of(packed.dtype(), dims, dense_strides(dims, Layout::linear), symbols);
  }
  const Operand& operand = operand_of(problem, input);
  if (operand.omitted) return TensorArg();
  LATHE_ASSIGN(const TensorArg arg, arg_of(operand.dtype, operand.dims, operand.strides, symbols));
  return as_read(input, arg);
}

// What a kernel of the library says when it sees the operands.
Result<MemoryNeeds> needs_on_host(const Problem& problem, const Emission& emission, std::span<const int64_t> symbols,
                                  Device& device) {
  LATHE_ASSIGN(const std::unique_ptr<Kernel> kernel,
               device.make_kernel(
                   {emission.kernel, emission.params, program_of(problem, emission), {}, &emission.workspace, {}}));
  std::vector<TensorArg> inputs, outputs;
  for (const StepInput& input : emission.inputs) {
    LATHE_ASSIGN(const TensorArg arg, arg_of(problem, emission, input, symbols));
    inputs.push_back(arg);
  }
  for (const Operand& output : problem.outputs) {
    LATHE_ASSIGN(const TensorArg arg, arg_of(output.dtype, output.dims, output.strides, symbols));
    outputs.push_back(arg);
  }
  MemoryNeeds needs;
  LATHE_ASSIGN(needs.workspace, kernel->prepare({inputs, outputs, symbols}, device.threads()));
  if (const auto* taker = dynamic_cast<const TakesConstants*>(kernel.get())) needs.taken = taker->taken_bytes();
  return needs;
}

}  // namespace

Result<MemoryNeeds> needs_of(const Problem& problem, const Emission& emission, std::span<const int64_t> symbols,
                             Device* device) {
  if (emission.launches.empty() && device) return needs_on_host(problem, emission, symbols, *device);
  MemoryNeeds needs;
  for (const SourceLaunch& launch : emission.launches)
    needs.shared = std::max<size_t>(needs.shared, launch.launch.shared_bytes);
  needs.workspace = static_cast<size_t>(std::max<int64_t>(0, emission.workspace.evaluate(symbols).value_or(0)));
  return needs;
}

TensorArg as_read(const StepInput& input, TensorArg arg) {
  if (!input.transposed) return arg;
  std::swap(arg.dims[arg.rank - 1], arg.dims[arg.rank - 2]);
  std::swap(arg.strides[arg.rank - 1], arg.strides[arg.rank - 2]);
  return arg;
}

size_t operand_bytes(const Problem& problem) {
  size_t bytes = 0;
  for (const Operand* operand : tensors_of(problem)) {
    if (operand->omitted) continue;
    int64_t elements = 1;
    for (size_t d = 0; d < operand->opt_dims.size(); ++d)
      elements += std::max<int64_t>(operand->opt_dims[d] - 1, 0) * std::abs(operand->opt_strides[d]);
    bytes += static_cast<size_t>(bytes_of(operand->dtype, elements).value_or(0));
  }
  return bytes;
}

Result<size_t> trial_bytes(const Problem& problem, const Emission& emission, Device* device) {
  LATHE_ASSIGN(const MemoryNeeds needs, needs_of(problem, emission, problem.symbols, device));
  size_t bytes = needs.workspace + needs.taken;
  for (const Packed& packed : emission.packed) bytes += packed.bytes();
  return bytes;
}

}  // namespace lathe
