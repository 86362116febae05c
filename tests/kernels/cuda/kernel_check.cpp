// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernel_check.h"

#include <cmath>
#include <cstring>
#include <random>

#include "fixtures/ask_tactic.h"
#include "fixtures/graph.h"
#include "fixtures/test_tensor.h"
#include "kernels/cuda/compiled_ahead.h"
#include "kernels/cuda/emulated_device.h"
#include "ops/rules.h"
#include "tuning/paged_content.h"

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

Result<Tensor> as_f32(const Tensor& tensor) {
  if (tensor.dtype() != DType::f16 && tensor.dtype() != DType::bf16) return tensor;
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, tensor.dims()));
  for (int64_t i = 0; i < tensor.volume(); ++i) result.mutable_as<float>()[i] = static_cast<float>(tensor.at_double(i));
  return result;
}

// Element `index` (flat, of the output's dims) of an operand that is broadcast to them, or padded.
float operand_at(const Operand& operand, const Tensor& tensor, const Dims& dims, int64_t index) {
  int64_t offset = 0, stride = 1;
  const size_t lead = dims.size() - tensor.dims().size();
  for (size_t d = dims.size(); d-- > 0; index /= std::max<int64_t>(dims[d], 1)) {
    if (d < lead) continue;
    const int64_t extent = tensor.dims()[d - lead];
    int64_t at = extent == 1 ? 0 : index % dims[d];
    if (operand.padding && operand.opt_strides[d] != 0) {
      at = index % dims[d] - *operand.padding->begin[d].as_constant();
      if (at < 0 || at >= extent) return operand.padding->value;
    }
    offset += at * stride;
    stride *= extent;
  }
  return static_cast<float>(tensor.at_double(offset));
}

// What the program makes of the root's result (if there is one) and its operands: f32, one tensor per output.
Result<std::vector<Tensor>> apply_program(const Problem& problem, const Tensor* root,
                                          const std::vector<Tensor>& operands) {
  const Dims& dims = problem.outputs[0].opt_dims;
  std::vector<Tensor> results;
  for (size_t k = 0; k < problem.program.outputs.size(); ++k) {
    LATHE_ASSIGN(results.emplace_back(), Tensor::allocate(DType::f32, dims));
  }
  std::vector<float> in(problem.program.num_inputs), out(problem.program.outputs.size());
  for (int64_t i = 0; i < results[0].volume(); ++i) {
    size_t k = 0;
    if (root) in[k++] = static_cast<float>(root->at_double(i));
    for (size_t j = 0; j < operands.size(); ++j) in[k++] = operand_at(problem.operands[j], operands[j], dims, i);
    evaluate(problem.program, in, out);
    for (size_t o = 0; o < results.size(); ++o) results[o].mutable_as<float>()[i] = out[o];
  }
  return results;
}

Result<std::vector<Tensor>> expected_outputs(const Problem& problem, const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& operands, bool as_typed) {
  if (!problem.attributes) return apply_program(problem, nullptr, operands);
  std::vector<Tensor> converted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LATHE_ASSIGN(converted.emplace_back(), as_typed ? Result<Tensor>(inputs[i]) : as_f32(inputs[i]));
    if (!problem.inputs[i].reassociation.empty())
      converted[i] = converted[i].reshaped(opt_whole_dims(problem.inputs[i]));
  }
  LATHE_ASSIGN(std::vector<Tensor> roots, run_op(*problem.attributes, converted, problem.outputs.size()));
  if (problem.program.is_identity() || problem.program.outputs.empty()) return roots;
  return apply_program(problem, &roots[0], operands);
}

// The nearest value of the output's type, for floats.
double rounded(double value, DType dtype) {
  if (dtype == DType::f16) return static_cast<float>(Half(static_cast<float>(value)));
  if (dtype == DType::bf16) return static_cast<float>(BFloat16(static_cast<float>(value)));
  return value;
}

Result<> compare(const Tensor& got, const Tensor& want, double tolerance, size_t output) {
  const Tolerance allowed = tolerance < 0 ? tolerance_of(got.dtype()) : Tolerance{tolerance, tolerance};
  // An op's own dimensions may be several of the kernel's.
  const std::string differ =
      differences(got.volume() == want.volume() ? got.reshaped(want.dims()) : got, want, allowed);
  if (differ.empty()) return {};
  return fail(ErrorCode::execution_failed, "output {}: {}", output, differ);
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
    step.launches.push_back(source.launch);
    if (!source.launch.library.empty()) continue;
    LATHE_ASSIGN(step.objects.emplace_back(), backend.compiler.compile(source.source));
    step.launches.back().code = static_cast<uint32_t>(step.objects.size() - 1);
  }
  for (const auto& object : step.objects) step.code.emplace_back(object);
  step.record.kernel = emission.kernel;
  step.record.params = emission.params;
  step.record.program = emission.with_program ? &problem.program : nullptr;
  step.record.launches = step.launches;
  step.record.workspace = &emission.workspace;
  step.record.code = step.code;
  return {};
}

// Operands of programs before inputs are numbered through all of them.
size_t prologue_operand_of(const Problem& problem, const StepInput& input) {
  size_t first = 0;
  for (size_t i = 0; i < input.index; ++i) first += problem.inputs[i].operands.size();
  return first + input.of_program;
}

Result<Placed> place_input(const Backend& backend, const Problem& problem, const Emission& emission,
                           const StepInput& input, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& operands, const std::vector<Tensor>& prologue_operands,
                           Queue& queue) {
  if (input.kind == StepInput::packed) {
    const Tensor& packed = emission.packed[input.index].content();
    return place(backend, cuda::operand(packed.dtype(), packed.dims()), &packed, queue);
  }
  Operand operand = operand_of(problem, input);
  if (operand.pages) operand = pool_of(operand);
  const Tensor& content = input.kind == StepInput::input     ? inputs[input.index]
                          : input.kind == StepInput::operand ? operands[input.index]
                                                             : prologue_operands[prologue_operand_of(problem, input)];
  operand.opt_dims = content.dims();  // of an operand that is broadcast: its own
  if (operand.opt_strides.size() != operand.opt_dims.size()) operand = cuda::operand(operand.dtype, content.dims());
  LATHE_ASSIGN(Placed placed, place(backend, operand, &content, queue));
  if (input.transposed) {
    std::swap(placed.arg.dims[placed.arg.rank - 1], placed.arg.dims[placed.arg.rank - 2]);
    std::swap(placed.arg.strides[placed.arg.rank - 1], placed.arg.strides[placed.arg.rank - 2]);
  }
  return placed;
}

// Contents of operands: given, constant, or random.
Result<std::vector<Tensor>> contents_of(const std::vector<Operand>& operands, const std::vector<Tensor>& given,
                                        std::mt19937& generator) {
  std::vector<Tensor> contents;
  for (size_t i = 0; i < operands.size(); ++i) {
    Operand operand = operands[i];
    contents.push_back(i < given.size() ? given[i] : Tensor());
    if (operand.constant) contents[i] = *operand.constant;
    if (contents[i].defined()) continue;
    for (size_t d = 0; d < operand.opt_dims.size(); ++d)
      if (operand.opt_strides[d] == 0) operand.opt_dims[d] = std::min<int64_t>(operand.opt_dims[d], 1);
    contents[i] = random_tensor(operand.dtype, operand.opt_dims, generator);
  }
  return contents;
}

// What the root reads instead of x, in f32.
Result<Tensor> apply_prologue(const Operand& input, const Tensor& x, std::span<const Tensor> operands, bool round) {
  if (input.pages) {
    LATHE_ASSIGN(const Tensor keys, in_order(x, operands[0], input.opt_dims));
    Operand dense = input;
    dense.pages.reset();
    return input.is_computed() ? apply_prologue(dense, keys, operands.subspan(1), round) : keys;
  }
  if (input.normalization) {  // rounded to its type
    std::vector<Tensor> read(operands.begin(), operands.end());
    read.insert(read.begin(), x);
    LATHE_ASSIGN(const std::vector<Tensor> rows, run_op(*input.normalization, read, 1));
    return rows[0];
  }
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, x.dims()));
  const Operand plain;  // none of them is padded
  std::vector<float> in(input.program.num_inputs);
  for (int64_t i = 0; i < x.volume(); ++i) {
    in[0] = static_cast<float>(x.at_double(i));
    for (size_t k = 0; k < operands.size(); ++k) in[k + 1] = operand_at(plain, operands[k], x.dims(), i);
    float& element = result.mutable_as<float>()[i];
    evaluate(input.program, in, {&element, 1});
    if (round) element = static_cast<float>(rounded(element, x.dtype()));
  }
  return result;
}

}  // namespace

Operand strided_operand(DType dtype, Dims dims, Dims strides) {
  Operand operand;
  operand.dtype = dtype;
  operand.dims = to_shape(dims);
  operand.strides = to_shape(strides);
  operand.opt_dims = std::move(dims);
  operand.opt_strides = std::move(strides);
  return operand;
}

Operand operand(DType dtype, Dims dims, Layout layout) {
  Dims strides = dense_strides(dims, layout);
  return strided_operand(dtype, std::move(dims), std::move(strides));
}

Operand padded_operand(Operand operand, const Dims& begin, float value) {
  operand.padding = {to_shape(begin), value};
  return operand;
}

Operand symbolic_operand(DType dtype, Shape dims, std::span<const int64_t> symbols, Layout layout) {
  Operand operand;
  operand.dtype = dtype;
  operand.strides = dense_strides(dims, layout);
  operand.opt_dims = evaluate_dims(dims, symbols);
  operand.opt_strides = evaluate_dims(operand.strides, symbols);
  operand.dims = std::move(dims);
  return operand;
}

Problem pointwise_problem(std::string_view program, std::vector<Operand> operands, std::vector<Operand> outputs) {
  Problem problem;
  problem.operands = std::move(operands);
  problem.outputs = std::move(outputs);
  problem.target = test_target();
  if (Result<Program> parsed = parse_program(program)) problem.program = *std::move(parsed);
  return problem;
}

Problem op_problem(const Attributes& attributes, std::vector<Operand> inputs, std::vector<Operand> outputs,
                   std::string_view program, std::vector<Operand> operands) {
  Problem problem =
      pointwise_problem(program.empty() ? "in=1; out r0" : program, std::move(operands), std::move(outputs));
  problem.attributes = &attributes;
  problem.inputs = std::move(inputs);
  return problem;
}

void put_before(Problem& problem, size_t input, std::string_view program, std::vector<Operand> operands) {
  problem.inputs[input].program = *parse_program(program);
  problem.inputs[input].operands = std::move(operands);
}

Result<std::vector<Tensor>> run_kernel(const Backend& backend, const Tactic& tactic, const Problem& problem,
                                       const Config& config, const std::vector<Tensor>& inputs,
                                       const std::vector<Tensor>& operands, const std::vector<int64_t>& symbols,
                                       const std::vector<Tensor>& prologue_operands) {
  LATHE_ASSIGN(const Emission emission, emit(tactic, problem, config));
  Step step;
  LATHE_TRY(compile(backend, problem, emission, step));
  if (only_notes_kernels()) return fail(ErrorCode::invalid_state, "{}", kOnlyNoted);
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
  const Operands args{input_args, output_args, symbols};
  LATHE_ASSIGN(const size_t workspace_bytes, kernel->prepare(args, 1));
  LATHE_ASSIGN(DeviceMemory workspace, backend.device.allocate(workspace_bytes));
  LATHE_TRY(kernel->enqueue(args, workspace.data(), *queue));
  LATHE_TRY(backend.device.wait(*queue));
  std::vector<Tensor> results;
  for (size_t i = 0; i < placed_outputs.size(); ++i) {
    LATHE_ASSIGN(results.emplace_back(), fetch(backend, placed_outputs[i], i, *queue));
  }
  return results;
}

Result<> check_kernel(const Backend& backend, const Tactic& tactic, const Problem& problem, const Config& config,
                      const CheckOptions& options) {
  if (only_notes_kernels()) {
    LATHE_ASSIGN(const Emission emission, emit(tactic, problem, config));
    Step step;
    return compile(backend, problem, emission, step);
  }
  std::mt19937 generator(options.seed);
  std::vector<Tensor> inputs, operands;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const Operand& input = problem.inputs[i];
    inputs.emplace_back();
    if (i < options.inputs.size() && options.inputs[i].defined())
      inputs[i] = options.inputs[i];
    else if (input.constant)
      inputs[i] = *input.constant;
    else if (!input.omitted)
      inputs[i] = random_tensor(input.dtype, (input.pages ? pool_of(input) : input).opt_dims, generator);
  }
  LATHE_ASSIGN(operands, contents_of(problem.operands, options.operands, generator));
  std::vector<Operand> prologue_operands;
  for (const Operand& input : problem.inputs)
    prologue_operands.insert(prologue_operands.end(), input.operands.begin(), input.operands.end());
  LATHE_ASSIGN(const std::vector<Tensor> before, contents_of(prologue_operands, options.prologue_operands, generator));
  LATHE_ASSIGN(const std::vector<Tensor> got,
               run_kernel(backend, tactic, problem, config, inputs, operands, options.symbols, before));
  for (size_t i = 0, first = 0; i < problem.inputs.size(); first += problem.inputs[i++].operands.size()) {
    const Operand& input = problem.inputs[i];
    if (!input.is_computed() && !input.normalization && !input.pages) continue;
    const auto own = std::span(before).subspan(first, input.operands.size());
    LATHE_ASSIGN(inputs[i], apply_prologue(input, inputs[i], own, options.round_prologues));
  }
  LATHE_ASSIGN(const std::vector<Tensor> want, expected_outputs(problem, inputs, operands, options.evaluate_as_typed));
  for (size_t i = 0; i < got.size(); ++i) LATHE_TRY(compare(got[i], want[i], options.tolerance, i));
  return {};
}

}  // namespace lathe::cuda
