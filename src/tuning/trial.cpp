// SPDX-License-Identifier: Apache-2.0
#include "tuning/trial.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "ops/rules.h"

namespace lathe {
namespace {

int64_t extent_of(const Dims& dims, const Dims& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * strides[d];
  }
  return last + 1;
}

void set_dims(Operand& operand, Dims dims) {
  const bool channels_last = operand.rank() >= 3 && operand.opt_strides[1] == 1 && operand.opt_dims[1] > 1;
  const int64_t pitch = channels_last ? operand.opt_strides[static_cast<size_t>(operand.rank()) - 1] : 0;
  operand.opt_dims = std::move(dims);
  operand.opt_strides = dense_strides(operand.opt_dims, channels_last ? Layout::channels_last : Layout::linear);
  if (channels_last)
    for (size_t d = 0; d < operand.opt_strides.size(); ++d)
      if (d != 1)
        operand.opt_strides[d] = operand.opt_strides[d] / operand.opt_dims[1] * std::max(pitch, operand.opt_dims[1]);
}

// Broadcast operands keep their zero strides.
void set_operand_dims(Operand& operand, const Operand& output) {
  const Dims old = operand.opt_strides;
  operand.opt_dims = output.opt_dims;
  operand.opt_strides = output.opt_strides;
  int64_t volume = 1;
  for (size_t d = old.size(); d-- > 0;) {
    if (old[d] == 0) operand.opt_strides[d] = 0;
  }
  // A dense walk over what is left keeps the memory small.
  const bool channels_last = old.size() >= 3 && old[1] == 1;
  std::vector<size_t> order;
  for (size_t d = 0; d < old.size(); ++d)
    if (!channels_last || d != 1) order.push_back(d);
  if (channels_last) order.push_back(1);
  for (size_t i = order.size(); i-- > 0;) {
    if (old[order[i]] == 0) continue;
    operand.opt_strides[order[i]] = volume;
    volume *= operand.opt_dims[order[i]];
  }
}

constexpr int64_t kSmallExtent = 14;  // covers Winograd tiles, tails and every padding of common windows

bool has_image(const Problem& problem) {
  return problem.is(OpKind::convolution) || problem.is(OpKind::deconvolution) || problem.is(OpKind::pooling);
}

// Runs the root's shape rule on the cut-down input and carries its result dims to outputs and operands.
Result<> shrink(Problem& problem) {
  Operand& x = problem.inputs[0];
  Dims dims = x.opt_dims;
  dims[0] = std::min<int64_t>(dims[0], 2);
  for (size_t d = 2; d < dims.size(); ++d) {
    int64_t window = 1;
    if (problem.inputs.size() > 1 && problem.inputs[1].rank() == x.rank()) window = problem.inputs[1].opt_dims[d];
    dims[d] = std::min(dims[d], std::max(kSmallExtent, 2 * window));
  }
  set_dims(x, dims);
  std::vector<ValueType> types;
  std::vector<InferContext::Input> inputs;
  for (const Operand& input : problem.inputs) types.push_back({input.dtype, to_shape(input.opt_dims)});
  for (size_t i = 0; i < types.size(); ++i) inputs.push_back({&types[i], problem.inputs[i].constant, nullptr});
  InferContext infer(*problem.attributes, inputs, 1, [](std::string_view) { return Expr::invalid(); });
  LATHE_TRY(op_info(problem.attributes->kind()).infer(infer));
  const std::optional<Dims> result = as_constant(infer.outputs()[0].type.shape);
  LATHE_CHECK(result.has_value());
  set_dims(problem.outputs[0], *result);
  for (Operand& operand : problem.operands) set_operand_dims(operand, problem.outputs[0]);
  return {};
}

void copy_strided(const TensorArg& arg, Tensor& dense, bool to_memory) {
  Walk walk(dense.dims(), {Dims(arg.strides, arg.strides + arg.rank)});
  auto* memory = static_cast<float*>(arg.data);
  float* values = dense.mutable_as<float>();
  for (int64_t i = 0, n = dense.volume(); i < n; ++i, walk.next()) {
    if (to_memory)
      memory[walk.offset(0)] = values[i];
    else
      values[i] = memory[walk.offset(0)];
  }
}

}  // namespace

Result<TrialData::Slot> TrialData::make_slot(const Operand& operand, uint32_t seed, bool random) const {
  Slot slot;
  if (operand.omitted) return slot;
  slot.arg.dtype = operand.dtype;
  slot.arg.rank = operand.rank();
  std::copy(operand.opt_dims.begin(), operand.opt_dims.end(), slot.arg.dims);
  std::copy(operand.opt_strides.begin(), operand.opt_strides.end(), slot.arg.strides);
  if (operand.constant && operand.constant->dims() == operand.opt_dims) {
    slot.dense = slot.memory = *operand.constant;
    slot.arg.data = slot.memory.mutable_data();
    return slot;
  }
  if (operand.dtype != DType::f32)
    return fail(ErrorCode::dtype_unsupported, "trials are made for f32 operands and constants only");
  LATHE_ASSIGN(slot.memory, Tensor::allocate(DType::f32, {extent_of(operand.opt_dims, operand.opt_strides)}));
  std::memset(slot.memory.mutable_data(), 0, slot.memory.bytes());
  slot.arg.data = slot.memory.mutable_data();
  if (!random) return slot;
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  float* memory = slot.memory.mutable_as<float>();
  // Repeating a short random sequence is as good as a long one for kernels without data-dependent speed, and much
  // faster.
  std::vector<float> noise(4099);
  std::generate(noise.begin(), noise.end(), [&] { return normal(generator); });
  for (int64_t i = 0; i < slot.memory.volume(); ++i) memory[i] = noise[static_cast<size_t>(i) % noise.size()];
  return slot;
}

Result<std::unique_ptr<TrialData>> TrialData::make(const Problem& problem, bool small) {
  auto data = std::make_unique<TrialData>();
  data->problem_ = problem;
  if (small && has_image(problem)) LATHE_TRY(shrink(data->problem_));
  uint32_t seed = 1;
  for (const Operand& operand : data->problem_.inputs) {
    LATHE_ASSIGN(Slot slot, data->make_slot(operand, seed++, true));
    data->inputs_.push_back(std::move(slot));
  }
  for (const Operand& operand : data->problem_.operands) {
    LATHE_ASSIGN(Slot slot, data->make_slot(operand, seed++, true));
    data->operands_.push_back(std::move(slot));
  }
  LATHE_ASSIGN(data->output_, data->make_slot(data->problem_.outputs[0], 0, false));
  return data;
}

Result<Tensor> TrialData::expected() const {
  const auto gather = [](const Slot& slot) -> Result<Tensor> {
    if (slot.dense.defined()) return slot.dense;
    LATHE_ASSIGN(Tensor dense, Tensor::allocate(DType::f32, Dims(slot.arg.dims, slot.arg.dims + slot.arg.rank)));
    copy_strided(slot.arg, dense, false);
    return dense;
  };
  Tensor result;
  std::vector<Tensor> registers;
  if (problem_.attributes) {
    std::vector<Tensor> inputs;
    for (const Slot& slot : inputs_) {
      if (!slot.arg.data) {
        inputs.emplace_back();
        continue;
      }
      LATHE_ASSIGN(Tensor dense, gather(slot));
      inputs.push_back(std::move(dense));
    }
    LATHE_ASSIGN(std::vector<Tensor> outputs, run_op(*problem_.attributes, inputs, 1));
    registers.push_back(outputs[0]);
  }
  for (const Slot& slot : operands_) {
    LATHE_ASSIGN(Tensor dense, Tensor::allocate(DType::f32, Dims(slot.arg.dims, slot.arg.dims + slot.arg.rank)));
    copy_strided(slot.arg, dense, false);
    registers.push_back(std::move(dense));
  }
  LATHE_ASSIGN(result, Tensor::allocate(DType::f32, problem_.outputs[0].opt_dims));
  std::vector<float> in(registers.size());
  for (int64_t i = 0, n = result.volume(); i < n; ++i) {
    for (size_t k = 0; k < registers.size(); ++k) in[k] = registers[k].as<float>()[i];
    evaluate(problem_.program, in, {result.mutable_as<float>() + i, 1});
  }
  return result;
}

TensorArg TrialData::arg(const StepInput& input) const {
  TensorArg arg = input.kind == StepInput::operand ? operands_[input.index].arg : inputs_[input.index].arg;
  if (input.transposed) {
    std::swap(arg.dims[arg.rank - 1], arg.dims[arg.rank - 2]);
    std::swap(arg.strides[arg.rank - 1], arg.strides[arg.rank - 2]);
  }
  return arg;
}

TensorArg TrialData::output() const { return output_.arg; }

Tensor TrialData::gather_output() const {
  Result<Tensor> dense = Tensor::allocate(DType::f32, problem_.outputs[0].opt_dims);
  if (!dense) return {};
  copy_strided(output_.arg, *dense, false);
  return *std::move(dense);
}

Result<std::unique_ptr<Trial>> Trial::make(const TunerOptions& options, const Tactic& tactic, const Config& config,
                                           const TrialData& data) {
  auto trial = std::make_unique<Trial>();
  LATHE_ASSIGN(trial->emission_, tactic.emit(data.problem(), config));
  trial->program_ = data.problem().program;
  const bool with_program =
      trial->emission_.with_program && !(data.problem().attributes && trial->program_.is_identity());
  LATHE_ASSIGN(trial->kernel_,
               options.find_kernel(trial->emission_.kernel,
                                   {trial->emission_.params, with_program ? &trial->program_ : nullptr}));
  for (const StepInput& input : trial->emission_.inputs) {
    if (input.kind != StepInput::packed) {
      trial->inputs_.push_back(data.arg(input));
      continue;
    }
    const Tensor& packed = trial->emission_.packed[input.index];
    TensorArg arg;
    arg.data = const_cast<void*>(packed.data());
    arg.dtype = packed.dtype();
    arg.rank = packed.rank();
    std::copy(packed.dims().begin(), packed.dims().end(), arg.dims);
    const Dims strides = row_major_strides(packed.dims());
    std::copy(strides.begin(), strides.end(), arg.strides);
    trial->inputs_.push_back(arg);
  }
  trial->outputs_.push_back(data.output());
  LATHE_TRY(trial->kernel_->check(trial->inputs_, trial->outputs_));
  const size_t bytes = trial->kernel_->workspace_bytes(trial->inputs_, trial->outputs_, options.threads);
  LATHE_ASSIGN(trial->workspace_, Tensor::allocate(DType::u8, {static_cast<int64_t>(bytes)}));
  return trial;
}

void Trial::run(cpu::ThreadPool& pool) const {
  auto* workspace = static_cast<std::byte*>(const_cast<void*>(workspace_.data()));
  kernel_->run({inputs_, outputs_, workspace, pool});
}

}  // namespace lathe
