// SPDX-License-Identifier: Apache-2.0
#include "tuning/trial.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/divide.h"
#include "device/taken_constants.h"
#include "ops/rules.h"
#include "tuning/device_content.h"
#include "tuning/needs.h"
#include "tuning/padded_content.h"
#include "tuning/paged_content.h"
#include "tuning/program_content.h"
#include "tuning/random_content.h"

namespace lathe {
namespace {

// The elements of memory that an operand lies in, and which of them its first element is: not memory's first where
// strides go backwards.
struct Span {
  int64_t count = 0, first = 0;
};
Span span_of(const Dims& dims, const Dims& strides) {
  Span span{1, 0};
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return {};
    const int64_t reach = (dims[d] - 1) * strides[d];
    span.count += std::abs(reach);
    span.first += std::max<int64_t>(-reach, 0);
  }
  return span;
}

size_t results_of_program(const Problem& problem) { return std::max<size_t>(problem.program.outputs.size(), 1); }

// Whether a result is the rows of another one.
bool normalizes_beside(const Problem& problem) { return problem.result_normalization() && problem.outputs.size() > 1; }

constexpr uint32_t kOutputSeed = 0;  // whose content does not matter

void set_arg_dims(TensorArg& arg, const Dims& dims, const Dims& strides) {
  arg.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), arg.dims);
  std::copy(strides.begin(), strides.end(), arg.strides);
}

bool is_small_integer(DType dtype) { return is_integer(dtype) && size_of(dtype) <= 2; }

Result<std::byte*> place(const Tensor& content, DeviceMemory& memory, Device& device, Queue& queue) {
  if (device.is_host()) return static_cast<std::byte*>(const_cast<void*>(content.data()));
  LATHE_ASSIGN(memory, device.allocate(content.bytes()));
  LATHE_TRY(device.upload(memory.data(), content.data(), content.bytes(), queue));
  return memory.data();
}

}  // namespace

// How many things there are that the operand's elements are numbers of.
std::optional<int64_t> TrialData::ids_of(const Operand& operand) const {
  if (problem_.is(OpKind::expert_matmul) && &operand == &problem_.inputs[2]) return problem_.inputs[1].opt_dims[0];
  for (const Operand& input : problem_.inputs)
    if (input.pages && &operand == &input.operands[0]) return input.pages->blocks.opt_extent;
  return std::nullopt;
}

Result<TrialData::Slot> TrialData::make_slot(const Operand& operand, uint32_t seed, Use use, Device& device,
                                             Queue& queue) const {
  const std::optional<int64_t> ids = ids_of(operand);
  Slot slot;
  if (operand.omitted) return slot;
  slot.arg.dtype = operand.dtype;
  const Operand whole = operand.pages ? pool_of(operand) : operand;
  set_arg_dims(slot.arg, whole.opt_dims, whole.opt_strides);
  const Span span = span_of(whole.opt_dims, whole.opt_strides);
  slot.first = span.first;
  const auto bytes = static_cast<size_t>(span.count) * size_of(operand.dtype);
  const bool is_known = operand.weights && span.count <= operand.weights->volume();
  if (is_known && !(use == Use::time && takes_any_floats(operand.dtype, bytes, device))) {
    slot.memory = *operand.weights;
  } else if (ids) {
    LATHE_ASSIGN(slot.memory, Tensor::allocate(operand.dtype, {span.count}));
    fill_with_ids(slot.memory, *ids, seed);
  } else if (!is_floating(operand.dtype) && !is_small_integer(operand.dtype) && !is_factor_float8(operand.dtype) &&
             seed != kOutputSeed) {
    // Larger integers are indices and sizes, which no random number can stand for.
    return fail(ErrorCode::dtype_unsupported, "trials are made for operands of floats and small integers only");
  } else if (use == Use::time && !device.is_host()) {
    LATHE_ASSIGN(slot.on_device, device.allocate(bytes));
    slot.arg.data = slot.on_device.data() + slot.bytes_before();
    LATHE_TRY(fill_device(slot.on_device, operand.dtype, seed, device, queue));
    return slot;
  } else {
    LATHE_ASSIGN(slot.memory, Tensor::allocate(operand.dtype, {span.count}));
    fill_randomly(slot.memory, seed, deviation_of(problem_, operand));
  }
  LATHE_ASSIGN(std::byte * data, place(slot.memory, slot.on_device, device, queue));
  slot.arg.data = data + slot.bytes_before();
  return slot;
}

Result<std::unique_ptr<TrialData>> TrialData::make(const Problem& problem, Use use, Device& device, Queue& queue,
                                                   double most_products) {
  auto data = std::make_unique<TrialData>();
  data->problem_ = problem;
  data->use_ = use;
  if (use == Use::check) data->columns_ = checked_columns(problem, most_products);
  if (problem.outputs.size() != results_of_program(problem) + (normalizes_beside(problem) ? 1 : 0))
    return fail(ErrorCode::dtype_unsupported, "trials are made for regions whose results are their program's");
  uint32_t seed = 1;
  for (const Operand* operand : tensors_of(data->problem_)) {
    const bool is_output =
        std::ranges::any_of(data->problem_.outputs, [&](const Operand& output) { return &output == operand; });
    LATHE_ASSIGN(data->slots_[operand],
                 data->make_slot(*operand, is_output ? kOutputSeed : seed++, use, device, queue));
  }
  return data;
}

namespace {

// What is left of registers are the program's; behind them are the vectors that normalise the rows of its result.
std::vector<Tensor> take_vectors(const Problem& problem, std::vector<Tensor>& registers) {
  if (!problem.result_normalization()) return {};
  const auto first = registers.begin() + problem.program.num_inputs;
  std::vector<Tensor> vectors(first, registers.end());
  registers.erase(first, registers.end());
  return vectors;
}

// What a program computes of input i. The first factor of a product by levels that lie in memory is levels, too, of the
// type of those: kernels that take a program there multiply integers of one type.
Result<Tensor> as_factor(const Tensor& computed, const Problem& problem, size_t i) {
  const bool has_levels = i == 0 && problem.inputs.size() > 1 && is_factor(op_info(problem.attributes->kind()), 1) &&
                          !problem.inputs[1].is_computed() && is_byte_integer(problem.inputs[1].dtype);
  if (!has_levels) return computed;
  CastAttrs cast;
  cast.to = problem.inputs[1].dtype;
  LATHE_ASSIGN(std::vector<Tensor> levels, run_op(cast, std::span(&computed, 1), 1));
  return std::move(levels[0]);
}

// Rows of a program's result as the problem's last one.
Result<Expected> normalized(const Problem& problem, const Tensor& rows, std::vector<Tensor> vectors) {
  vectors.insert(vectors.begin(), rows);
  LATHE_ASSIGN(std::vector<Tensor> results, run_op(*problem.result_normalization(), vectors, 1));
  return Expected{std::move(results[0]), {}, {}, {}};
}

}  // namespace

// The columns that are checked, of what has columns: the second factor, what is behind the product, and its results.
Taken TrialData::taken_of(const Operand& operand) const {
  if (columns_.empty()) return {};
  const auto is_among = [&](const std::vector<Operand>& list) {
    return std::ranges::any_of(list, [&](const Operand& each) { return &each == &operand; });
  };
  const Operand &b = problem_.inputs[1], &output = problem_.outputs[0];
  if (&operand == &b || is_among(b.operands)) {
    const size_t at = b.opt_dims.size() - (problem_.attrs<MatmulAttrs>().transpose_b ? 2 : 1);
    if (!problem_.pairs) return {at, at + 1, columns_};
    Taken taken{at, at + 1, {}};
    for (const int64_t column : columns_) taken.indices.insert(taken.indices.end(), {2 * column, 2 * column + 1});
    return taken;
  }
  if (!is_among(problem_.operands) && !is_among(problem_.outputs)) return {};
  const auto [begin, end] = parts_of(output, opt_whole_dims(output).size() - 1);
  return {begin, end, columns_};
}

// What the op or a program sees of an operand, dense: floats in f32, others as they are. Undefined where it is omitted.
Result<Tensor> TrialData::content_of(const Operand& operand) const {
  const Slot& slot = slot_of(operand);
  if (!slot.arg.data) return Tensor();
  const Taken taken = taken_of(operand);
  if (operand.is_scaled_by_blocks()) return dequantized(operand, taken);
  const DType dtype = is_floating(slot.arg.dtype) ? DType::f32 : slot.arg.dtype;
  LATHE_ASSIGN(Tensor dense, gather(slot.memory, slot.first, slot.arg, dtype, taken));
  if (!taken.indices.empty()) return dense;
  if (!operand.pages) return dense.reshaped(opt_whole_dims(operand));
  LATHE_ASSIGN(const Tensor table, content_of(operand.operands[0]));
  return in_order(dense, table, operand.opt_dims);
}

Result<> TrialData::append(std::span<const Operand> operands, std::vector<Tensor>& to) const {
  for (const Operand& operand : operands) {
    LATHE_ASSIGN(to.emplace_back(), content_of(operand));
  }
  return {};
}

Result<> TrialData::append_padded(std::span<const Operand> operands, const Dims& dims, std::vector<Tensor>& to) const {
  const size_t first = to.size();
  LATHE_TRY(append(operands, to));
  for (size_t i = 0; i < operands.size(); ++i)
    if (const auto& padding = operands[i].padding) {
      Dims begin;
      for (const Expr& each : padding->begin) begin.push_back(each.evaluate(problem_.symbols).value_or(0));
      LATHE_ASSIGN(to[first + i], padded(to[first + i], begin, padding->value, dims));
    }
  return {};
}

Result<std::vector<Expected>> TrialData::expected(double tolerance) const {
  std::vector<Tensor> registers;
  bool reads_rounded = false;
  float off_by_ties = 0;  // how far the root's result is off where elements it reads were rounded to the other side
  if (problem_.attributes) {
    std::vector<Tensor> inputs;
    LATHE_TRY(append(problem_.inputs, inputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (problem_.inputs[i].normalization) {
        std::vector<Tensor> before = {inputs[i]};
        LATHE_TRY(append(problem_.inputs[i].operands, before));
        LATHE_ASSIGN(const std::vector<Tensor> rows, run_op(*problem_.inputs[i].normalization, before, 1));
        inputs[i] = rows[0];
      }
      if (!problem_.inputs[i].is_computed() || problem_.inputs[i].is_scaled_by_blocks()) continue;
      const Program& program = problem_.inputs[i].program;
      Tensor& input = inputs[i];
      std::vector<Tensor> before = {input};
      LATHE_TRY(append_padded(problem_.inputs[i].program_operands(), problem_.inputs[i].opt_dims, before));
      LATHE_ASSIGN(const Tensor computed, result_of(program, before, input.dims()));
      LATHE_ASSIGN(input, as_factor(computed, problem_, i));
      if (!rounds(program)) continue;
      reads_rounded = true;
      // An element at a tie moves a result by a step times what it is multiplied by. Two such elements may go into one
      // result; more at once are too rare to allow for.
      float factor = inputs.size() == 1 ? 1 : 0;
      for (const Tensor& other : inputs)
        if (&other != &input && other.defined() && other.dtype() == input.dtype())
          factor = std::max(factor, largest_of(other));
      LATHE_ASSIGN(const float step, step_at_ties(program, before, computed));
      off_by_ties += 2 * step * factor;
    }
    LATHE_ASSIGN(std::vector<Tensor> results, run_op(*problem_.attributes, inputs, 1));
    if (problem_.pairs) {
      LATHE_ASSIGN(registers, pairs_of(results[0]));
    } else {
      registers.push_back(results[0]);
    }
  }
  const size_t first = registers.size();
  Dims dims = problem_.outputs[0].opt_dims;
  if (!columns_.empty()) {
    dims = opt_whole_dims(problem_.outputs[0]);
    dims.back() = static_cast<int64_t>(columns_.size());
  }
  LATHE_TRY(append_padded(problem_.operands, dims, registers));
  std::vector<Tensor> vectors = take_vectors(problem_, registers);
  std::vector<float> errors;
  if (reads_rounded || rounds(problem_.program))
    for (size_t k = 0; k < registers.size(); ++k)
      errors.push_back(k < first ? static_cast<float>(tolerance) * largest_of(registers[k]) + off_by_ties
                                 : kRounding * largest_of(registers[k]));
  std::vector<DType> types(registers.size(), DType::f32);
  // Sums of levels, which an input's program makes as it is read, are no floats that a kernel would round.
  for (size_t k = 0; k < first; ++k)
    if (is_floating(registers[k].dtype()) && !rounds(problem_.inputs[0].program)) types[k] = problem_.inputs[0].dtype;
  std::vector<Expected> all;
  for (size_t i = 0; i < results_of_program(problem_); ++i) {
    Program program = problem_.program;
    if (!program.outputs.empty()) program.outputs = {program.outputs[i]};
    LATHE_ASSIGN(Tensor values, result_of(program, registers, dims));
    if (reads_rounded || rounds(program))
      all.push_back({std::move(values), std::move(program), registers, errors, types});
    else
      all.push_back({std::move(values), {}, {}, {}});
  }
  if (problem_.result_normalization()) {
    LATHE_ASSIGN(Expected rows, normalized(problem_, all[0].values, std::move(vectors)));
    if (!normalizes_beside(problem_)) all.clear();
    all.push_back(std::move(rows));
  }
  return all;
}

TensorArg TrialData::arg(const StepInput& input) const {
  return as_read(input, slot_of(operand_of(problem_, input)).arg);
}

std::vector<TensorArg> TrialData::outputs() const {
  std::vector<TensorArg> args;
  for (const Operand& output : problem_.outputs) args.push_back(slot_of(output).arg);
  return args;
}

Result<Tensor> TrialData::gather_output(size_t i, Device& device, Queue& queue) const {
  const Slot& output = slot_of(problem_.outputs[i]);
  const Taken taken = taken_of(problem_.outputs[i]);
  if (device.is_host()) return gather(output.memory, output.first, output.arg, DType::f32, taken);
  LATHE_ASSIGN(Tensor memory, Tensor::allocate(output.memory.dtype(), output.memory.dims()));
  LATHE_TRY(device.download(memory.mutable_data(), output.start(), memory.bytes(), queue));
  return gather(memory, output.first, output.arg, DType::f32, taken);
}

Result<> TrialData::poison_outputs(Device& device, Queue& queue) const {
  for (const Operand& each : problem_.outputs) {
    const Slot& output = slot_of(each);
    LATHE_ASSIGN(Tensor poison, Tensor::allocate(output.memory.dtype(), output.memory.dims()));
    std::memset(poison.mutable_data(), 0xff, poison.bytes());  // NaN in every float type
    LATHE_TRY(device.upload(output.start(), poison.data(), poison.bytes(), queue));
  }
  return {};
}

namespace {

bool is_constant(const Problem& problem, const StepInput& input) {
  return input.kind == StepInput::packed || operand_of(problem, input).constant;
}

// How often packed weights are there. As many runs as are measured together read different ones.
size_t turns_of(const Emission& emission, size_t spread) {
  constexpr size_t kLeastBytes = 1 << 20, kMostTurns = 20;
  size_t bytes = 0;
  for (const auto& packed : emission.packed) bytes += packed.bytes();
  return bytes < kLeastBytes ? 1 : std::clamp<size_t>(ceil_div(spread, bytes), 1, kMostTurns);
}

// The packed weights where the device reads them.
Result<std::byte*> place(const Packed& packed, TrialData::Use use, DeviceMemory& memory, Device& device, Queue& queue) {
  constexpr uint32_t kSeed = 1;
  if (use == TrialData::Use::check || !packed.order || !takes_any_floats(packed.dtype(), packed.bytes(), device))
    return place(packed.content(), memory, device, queue);
  LATHE_ASSIGN(memory, device.allocate(packed.bytes()));
  LATHE_TRY(fill_device(memory, packed.dtype(), kSeed, device, queue));
  return memory.data();
}

// What the device has somewhere else.
Result<std::byte*> place_again(const void* placed, size_t bytes, DeviceMemory& memory, Device& device, Queue& queue) {
  LATHE_ASSIGN(memory, device.allocate(bytes));
  LATHE_TRY(device.copy({.to = memory.data(), .from = static_cast<const std::byte*>(placed), .width = bytes}, queue));
  return memory.data();
}

}  // namespace

Result<std::unique_ptr<Trial>> Trial::make(Device& device, Modules& modules, Emission emitted, const TrialData& data,
                                           Queue& queue, size_t spread) {
  auto trial = std::make_unique<Trial>();
  trial->emission_ = std::move(emitted);
  const Emission& emission = trial->emission_;
  trial->program_ = data.problem().program;
  const Program* program = program_of(data.problem(), emission) ? &trial->program_ : nullptr;
  LATHE_ASSIGN(trial->modules_, modules_of(emission, modules));
  const std::vector<std::span<const std::byte>> code = trial->modules_.code();
  LATHE_ASSIGN(trial->kernel_, device.make_kernel({emission.kernel, emission.params, program, trial->modules_.launches,
                                                   &emission.workspace, code}));
  trial->inputs_.resize(device.is_host() ? 1 : turns_of(emission, spread));
  for (std::vector<TensorArg>& inputs : trial->inputs_)
    for (const StepInput& input : emission.inputs) {
      if (input.kind != StepInput::packed) {
        inputs.push_back(data.arg(input));
        continue;
      }
      const Packed& packed = emission.packed[input.index];
      TensorArg& arg = inputs.emplace_back();
      arg.dtype = packed.dtype();
      set_arg_dims(arg, packed.dims(), row_major_strides(packed.dims()));
      DeviceMemory& memory = trial->packed_.emplace_back();
      if (&inputs == trial->inputs_.data()) {
        LATHE_ASSIGN(arg.data, place(packed, data.use(), memory, device, queue));
      } else {
        const void* const placed = trial->inputs_[0][inputs.size() - 1].data;
        LATHE_ASSIGN(arg.data, place_again(placed, packed.bytes(), memory, device, queue));
      }
    }
  const std::vector<TensorArg>& inputs = trial->inputs_[0];
  if (auto* taker = dynamic_cast<TakesConstants*>(trial->kernel_.get())) {
    std::vector<TensorArg> constants(inputs);
    for (size_t i = 0; i < constants.size(); ++i)
      if (!is_constant(data.problem(), emission.inputs[i])) constants[i] = TensorArg();
    LATHE_TRY(taker->take_constants(constants, device));
  }
  if (!device.is_host()) trial->emission_.packed.clear();  // of which it has a copy
  trial->outputs_ = data.outputs();
  trial->symbols_ = data.problem().symbols;
  const Operands operands{inputs, trial->outputs_, trial->symbols_};
  LATHE_ASSIGN(const size_t bytes, trial->kernel_->prepare(operands, device.threads()));
  LATHE_ASSIGN(trial->workspace_, device.allocate(bytes));
  return trial;
}

Result<> Trial::run(Queue& queue) {
  const std::vector<TensorArg>& inputs = inputs_[turn_];
  turn_ = (turn_ + 1) % inputs_.size();
  return kernel_->enqueue({inputs, outputs_, symbols_}, workspace_.data(), queue);
}

}  // namespace lathe
