// SPDX-License-Identifier: Apache-2.0
// Running a prepared context, step by step.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/context.h"

namespace lathe {
namespace {

Tensor dense_view(const TensorArg& arg) {
  return Tensor::view(arg.dtype, Dims(arg.dims, arg.dims + arg.rank), arg.data, nullptr);
}

}  // namespace

// Where a tensor's storage starts; null when the application has not given (or the run not yet made) the memory.
std::byte* Context::storage_base(const plan::Tensor& tensor) const {
  switch (tensor.storage) {
    case plan::StorageKind::arena:
      return memory_ ? memory_ + offsets_[tensor.index] : nullptr;
    case plan::StorageKind::constant:
      return const_cast<std::byte*>(plan_.weights.data() + plan_.constants[tensor.index].offset);
    case plan::StorageKind::binding:
      return static_cast<std::byte*>(addresses_[tensor.index]);
    case plan::StorageKind::dynamic:
      return dynamic_[tensor.index].data();
  }
  return nullptr;
}

// Where a tensor starts within its storage; null while the storage is.
std::byte* Context::address_of(const plan::Tensor& tensor) const {
  std::byte* base = storage_base(tensor);
  if (!base) return nullptr;
  const int64_t offset = tensor.offset.evaluate(symbols_).value_or(0);  // check_windows() proved it
  return base + offset * static_cast<int64_t>(size_of(tensor.dtype));
}

Result<> Context::run() {
  LATHE_TRY(prepare());
  LATHE_TRY(check_addresses());
  LATHE_TRY(provide_memory());
  for (SymbolId id = 0; id < plan_.symbols.size(); ++id)
    if (plan_.symbols[id].source == SymbolSource::computed) symbols_[id] = Expr::kUnbound;
  for (size_t i = 0; i < plan_.bindings.size(); ++i)
    if (allocators_[i] && !is_late(plan_.bindings[i].tensor)) {
      addresses_[i] = allocators_[i](bytes(i), dims(i));
      if (!addresses_[i])
        return fail(ErrorCode::out_of_memory, "the output allocator gave no memory for '{}'", plan_.bindings[i].name);
    }
  Workers::Lease lease = engine_->workers().lease();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto start = profiler ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    LATHE_TRY(run_step(i, lease.pool()));
    if (profiler)
      profiler(plan_.steps[i],
               std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (observer) LATHE_TRY(show_results(plan_.steps[i]));
  }
  return {};
}

Result<> Context::show_results(const plan::Step& step) {
  for (const plan::TensorId id : step.outputs) {
    if (id == plan::kNoTensor) continue;
    const plan::Tensor& tensor = plan_.tensors[id];
    TensorArg content;
    LATHE_TRY(resolve(id, content));
    content.data = address_of(tensor);
    observer(tensor, content);
  }
  return {};
}

Result<> Context::check_addresses() const {
  for (size_t i = 0; i < plan_.bindings.size(); ++i)
    if (!addresses_[i] && !allocators_[i] && bytes(i) != 0)
      return fail(ErrorCode::binding_missing, "{} '{}' has no address: set it before running",
                  plan_.bindings[i].is_input ? "input" : "output", plan_.bindings[i].name);
  return {};
}

Result<> Context::provide_memory() {
  LATHE_ASSIGN(size_t needed, memory_bytes());
  if (needed <= memory_size_) return {};
  if (user_memory_)
    return fail(ErrorCode::memory_too_small, "these shapes need {} bytes of context memory, {} were supplied", needed,
                memory_size_);
  own_memory_ = MemoryBlock();  // the old content is not needed: free it first
  LATHE_ASSIGN(own_memory_, MemoryBlock::allocate(needed));
  memory_ = own_memory_.data();
  memory_size_ = own_memory_.size();
  return {};
}

Result<> Context::run_step(size_t i, cpu::ThreadPool& pool) {
  const plan::Step& step = plan_.steps[i];
  StepState& state = steps_[i];
  const cpu::Kernel* kernel = engine_->code()[i].kernel.get();
  if (!kernel) return run_eval(i);
  std::byte* workspace = memory_ + arena_bytes_;
  if (state.late) {
    const size_t planned = workspace_bytes_;
    workspace_bytes_ = 0;
    LATHE_TRY(prepare_step(i));
    const size_t needed = std::exchange(workspace_bytes_, planned);
    if (needed > planned && needed > late_workspace_.size()) {
      LATHE_ASSIGN(late_workspace_, MemoryBlock::allocate(needed));
    }
    if (needed > planned) workspace = late_workspace_.data();
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      const Dims dims(state.outputs[k].dims, state.outputs[k].dims + state.outputs[k].rank);
      LATHE_TRY(provide_late(step.outputs[k], dims));
    }
  }
  const auto address = [&](plan::TensorId id, TensorArg& arg) {
    if (id == plan::kNoTensor) return;
    const plan::Tensor& tensor = plan_.tensors[id];
    arg.data = address_of(tensor);
  };
  for (size_t k = 0; k < step.inputs.size(); ++k) address(step.inputs[k], state.inputs[k]);
  for (size_t k = 0; k < step.outputs.size(); ++k) address(step.outputs[k], state.outputs[k]);
  kernel->run({state.inputs, state.outputs, workspace, pool});
  return {};
}

// The memory of an output whose size only this run could tell. Others have theirs already.
Result<> Context::provide_late(plan::TensorId id, const Dims& dims) {
  const plan::Tensor& tensor = plan_.tensors[id];
  if (!is_late(id)) return {};
  const std::optional<int64_t> count = checked_volume(dims);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<int64_t>(size_of(tensor.dtype)), &bytes))
    return fail(ErrorCode::shape_mismatch, "tensor '{}' of dims {} has no valid size", tensor.name,
                to_string(to_shape(dims)));
  if (tensor.storage == plan::StorageKind::dynamic) {
    MemoryBlock& block = dynamic_[tensor.index];
    if (block.size() >= static_cast<size_t>(bytes) && block.data()) return {};
    block = MemoryBlock();
    LATHE_ASSIGN(block, MemoryBlock::allocate(std::max<size_t>(static_cast<size_t>(bytes), 64)));
  } else if (tensor.storage == plan::StorageKind::binding && allocators_[tensor.index]) {
    addresses_[tensor.index] = allocators_[tensor.index](static_cast<size_t>(bytes), dims);
    if (!addresses_[tensor.index])
      return fail(ErrorCode::out_of_memory, "the output allocator gave no memory for '{}'",
                  plan_.bindings[tensor.index].name);
  }
  return {};
}

Result<> Context::bind_computed(const plan::Tensor& tensor, const Dims& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<SymbolId> symbol = tensor.dims[d].as_symbol();
    if (symbol && symbols_[*symbol] == Expr::kUnbound && plan_.symbols[*symbol].source == SymbolSource::computed)
      symbols_[*symbol] = dims[d];
    if (tensor.dims[d].evaluate(symbols_) != dims[d])
      return fail(ErrorCode::execution_failed, "tensor '{}' came out with dims {}, its plan expects {}", tensor.name,
                  to_string(to_shape(dims)), to_string(tensor.dims));
  }
  return {};
}

// The plain evaluation of one op on dense operands.
Result<> Context::run_eval(size_t i) {
  const plan::Step& step = plan_.steps[i];
  StepState& state = steps_[i];
  std::vector<Tensor> inputs(step.inputs.size());
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (step.inputs[k] == plan::kNoTensor) continue;
    const plan::Tensor& tensor = plan_.tensors[step.inputs[k]];
    if (state.late) LATHE_TRY(resolve(step.inputs[k], state.inputs[k]));
    state.inputs[k].data = address_of(tensor);
    inputs[k] = dense_view(state.inputs[k]);
  }
  std::vector<Tensor> placed(step.outputs.size());
  const auto place = [&](size_t k, DType, const Dims& dims) -> Result<Tensor> {
    if (step.outputs[k] == plan::kNoTensor) return Tensor();
    const plan::Tensor& tensor = plan_.tensors[step.outputs[k]];
    LATHE_TRY(bind_computed(tensor, dims));
    LATHE_TRY(provide_late(step.outputs[k], dims));
    std::byte* address = address_of(tensor);
    if (!address) return Tensor();  // a zero-size output needs no address
    return placed[k] = Tensor::view(tensor.dtype, dims, address, nullptr);
  };
  Result<std::vector<Tensor>> outputs = run_op(*engine_->code()[i].eval, inputs, step.outputs.size(), place);
  if (!outputs) return fail(with_context(std::move(outputs).error(), fmt::format("{} '{}'", step.op, step.name)));
  // Outputs that the evaluation sized by itself move to their place.
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (placed[k].defined()) continue;
    const Tensor& output = (*outputs)[k];
    LATHE_ASSIGN(Tensor target, place(k, output.dtype(), output.dims()));
    if (target.defined()) std::memcpy(target.mutable_data(), output.data(), output.bytes());
  }
  return {};
}

}  // namespace lathe
