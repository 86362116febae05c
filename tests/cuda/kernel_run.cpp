// SPDX-License-Identifier: Apache-2.0
// run_kernel(): one step on a device, as the runtime runs it.
#include <cstring>

#include "cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr unsigned char kUntouched = 0xff;  // floats of it are NaN

int64_t extent_of(const Dims& dims, const Dims& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * strides[d];
  }
  return last + 1;
}

// A tensor of the problem in device memory.
struct Placed {
  Tensor memory;  // a copy of it: bytes, gaps included
  DeviceMemory device;
  TensorArg arg;
};

// Moves elements between dense row-major order and the places that strides give.
void copy_elements(const TensorArg& arg, std::byte* memory, std::byte* dense, bool to_memory) {
  const size_t size = size_of(arg.dtype);
  Walk walk(Dims(arg.dims, arg.dims + arg.rank), {Dims(arg.strides, arg.strides + arg.rank)});
  for (int64_t i = 0, n = arg.volume(); i < n; ++i, walk.next()) {
    std::byte* strided = memory + static_cast<size_t>(walk.offset(0)) * size;
    std::memcpy(to_memory ? strided : dense, to_memory ? dense : strided, size);
    dense += size;
  }
}

Result<Placed> place(const Backend& backend, const Operand& operand, const Tensor* content, Queue& queue) {
  Placed placed;
  placed.arg.dtype = operand.dtype;
  placed.arg.rank = operand.rank();
  std::copy(operand.opt_dims.begin(), operand.opt_dims.end(), placed.arg.dims);
  std::copy(operand.opt_strides.begin(), operand.opt_strides.end(), placed.arg.strides);
  const auto bytes = extent_of(operand.opt_dims, operand.opt_strides) * static_cast<int64_t>(size_of(operand.dtype));
  LATHE_ASSIGN(placed.memory, Tensor::allocate(DType::u8, {bytes}));
  std::memset(placed.memory.mutable_data(), kUntouched, placed.memory.bytes());
  auto* memory = static_cast<std::byte*>(placed.memory.mutable_data());
  if (content) copy_elements(placed.arg, memory, static_cast<std::byte*>(const_cast<void*>(content->data())), true);
  LATHE_ASSIGN(placed.device, backend.device.allocate(placed.memory.bytes()));
  placed.arg.data = placed.device.data();
  LATHE_TRY(backend.device.upload(placed.arg.data, memory, placed.memory.bytes(), queue));
  return placed;
}

Result<Placed> place_packed(const Backend& backend, const Tensor& packed, Queue& queue) {
  Operand operand = cuda::operand(packed.dtype(), packed.dims());
  return place(backend, operand, &packed, queue);
}

// The output dense; fails when bytes between its elements have changed.
Result<Tensor> fetch(const Backend& backend, Placed& placed, size_t index, Queue& queue) {
  LATHE_ASSIGN(Tensor dense,
               Tensor::allocate(placed.arg.dtype, Dims(placed.arg.dims, placed.arg.dims + placed.arg.rank)));
  auto* memory = static_cast<std::byte*>(placed.memory.mutable_data());
  auto* values = static_cast<std::byte*>(dense.mutable_data());
  LATHE_TRY(backend.device.download(memory, placed.arg.data, placed.memory.bytes(), queue));
  copy_elements(placed.arg, memory, values, false);
  LATHE_ASSIGN(Tensor blank, Tensor::allocate(DType::u8, {static_cast<int64_t>(dense.bytes())}));
  std::memset(blank.mutable_data(), kUntouched, blank.bytes());
  copy_elements(placed.arg, memory, static_cast<std::byte*>(blank.mutable_data()), true);
  for (size_t i = 0; i < placed.memory.bytes(); ++i)
    if (memory[i] != std::byte{kUntouched})
      return fail(ErrorCode::execution_failed, "output {}: byte {}, which no element holds, was written", index, i);
  return dense;
}

// Fills memory with NaN.
Result<> spoil(const Backend& backend, const DeviceMemory& memory, Queue& queue) {
  const std::vector<std::byte> nan(memory.size(), std::byte{0xff});
  return backend.device.upload(memory.data(), nan.data(), nan.size(), queue);
}

// What the tactic made, as the record of a step.
struct Step {
  std::vector<Launch> launches;
  std::vector<std::vector<std::byte>> objects;
  std::vector<std::span<const std::byte>> code;
  StepRecord record;
};

Result<> compile(const Backend& backend, const Problem& problem, const Emission& emission, Step& step) {
  for (const SourceLaunch& source : emission.launches) {
    if (!source.launch.library.empty()) {
      step.launches.push_back(source.launch);
      continue;
    }
    LATHE_ASSIGN(step.objects.emplace_back(), backend.compiler.compile(source.source));
    step.launches.push_back(source.launch);
    step.launches.back().code = static_cast<uint32_t>(step.objects.size() - 1);
  }
  for (const auto& object : step.objects) step.code.emplace_back(object);
  step.record.kernel = emission.kernel;
  step.record.params = emission.params;
  step.record.program = emission.with_program ? &problem.program : nullptr;
  step.record.launches = step.launches;
  step.record.workspace = &emission.workspace;
  step.record.code = step.code;
  step.record.counters = &emission.counters;
  return {};
}

Result<Placed> place_input(const Backend& backend, const Problem& problem, const Emission& emission,
                           const StepInput& input, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& operands, const std::vector<Tensor>& prologue_operands,
                           Queue& queue) {
  if (input.kind == StepInput::packed) return place_packed(backend, emission.packed[input.index], queue);
  const bool is_input = input.kind == StepInput::input, is_before = input.kind == StepInput::prologue;
  Operand operand = (is_input ? problem.inputs : is_before ? problem.prologue_operands : problem.operands)[input.index];
  const Tensor& content = (is_input ? inputs : is_before ? prologue_operands : operands)[input.index];
  operand.opt_dims = content.dims();  // of an operand that is broadcast: its own
  if (operand.opt_strides.size() != operand.opt_dims.size()) operand = cuda::operand(operand.dtype, content.dims());
  LATHE_ASSIGN(Placed placed, place(backend, operand, &content, queue));
  if (input.transposed) {
    std::swap(placed.arg.dims[placed.arg.rank - 1], placed.arg.dims[placed.arg.rank - 2]);
    std::swap(placed.arg.strides[placed.arg.rank - 1], placed.arg.strides[placed.arg.rank - 2]);
  }
  return placed;
}

// With memory that holds NaN, and outputs untouched before.
Result<std::vector<Tensor>> run_once(const Backend& backend, const Kernel& kernel, const Operands& args,
                                     const DeviceMemory& workspace, std::vector<Placed>& outputs, Queue& queue) {
  LATHE_TRY(spoil(backend, workspace, queue));
  for (Placed& placed : outputs) {
    std::memset(placed.memory.mutable_data(), kUntouched, placed.memory.bytes());
    LATHE_TRY(backend.device.upload(placed.arg.data, placed.memory.data(), placed.memory.bytes(), queue));
  }
  LATHE_TRY(kernel.enqueue(args, workspace.data(), queue));
  LATHE_TRY(backend.device.wait(queue));
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    LATHE_ASSIGN(results.emplace_back(), fetch(backend, outputs[i], i, queue));
  }
  return results;
}

}  // namespace

Result<std::vector<Tensor>> run_kernel(const Backend& backend, const Tactic& tactic, const Problem& problem,
                                       const Config& config, const std::vector<Tensor>& inputs,
                                       const std::vector<Tensor>& operands, const std::vector<int64_t>& symbols,
                                       const std::vector<Tensor>& prologue_operands) {
  LATHE_ASSIGN(const Emission emission, tactic.emit(problem, config));
  Step step;
  LATHE_TRY(compile(backend, problem, emission, step));
  LATHE_ASSIGN(const auto queue, backend.device.make_queue());
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
  std::vector<Placed> placed_inputs, placed_outputs;
  std::vector<TensorArg> input_args, output_args;
  for (const StepInput& input : emission.inputs) {
    LATHE_ASSIGN(Placed placed,
                 place_input(backend, problem, emission, input, inputs, operands, prologue_operands, *queue));
    input_args.push_back(placed.arg);
    placed_inputs.push_back(std::move(placed));
  }
  for (const Operand& output : problem.outputs) {
    LATHE_ASSIGN(Placed placed, place(backend, output, nullptr, *queue));
    output_args.push_back(placed.arg);
    placed_outputs.push_back(std::move(placed));
  }
  LATHE_ASSIGN(const auto kernel, backend.device.make_kernel(step.record));
  Operands args{input_args, output_args, symbols};
  LATHE_ASSIGN(const size_t workspace_bytes, kernel->prepare(args, 1));
  LATHE_ASSIGN(DeviceMemory workspace, backend.device.allocate(workspace_bytes));
  LATHE_ASSIGN(const size_t counter_bytes, kernel->counter_bytes(args));
  LATHE_ASSIGN(DeviceMemory counters, backend.device.allocate(counter_bytes));
  LATHE_TRY(backend.device.clear(counters.data(), counter_bytes));
  args.counters = counters.data();
  LATHE_ASSIGN(std::vector<Tensor> results, run_once(backend, *kernel, args, workspace, placed_outputs, *queue));
  if (counter_bytes == 0) return results;
  // Whichever block comes last, and with the counters as the first run left them.
  LATHE_ASSIGN(const std::vector<Tensor> again, run_once(backend, *kernel, args, workspace, placed_outputs, *queue));
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].bytes() > 0 && std::memcmp(results[i].data(), again[i].data(), results[i].bytes()) != 0)
      return fail(ErrorCode::execution_failed, "output {} has other bits in the second run", i);
  return results;
}

}  // namespace lathe::cuda
