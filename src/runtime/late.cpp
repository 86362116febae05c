// SPDX-License-Identifier: Apache-2.0
// Sizes that only running tells, and the memory of such tensors.
#include <algorithm>

#include "ops/result_types.h"
#include "plan/windows.h"
#include "runtime/context.h"

namespace lathe {
// Reads the sizes that the step is the first to need. The only place where the host waits for sizes of the device's.
Result<> Context::read_counts(const plan::Step& step, Queue& queue) {
  for (const plan::StepCount& count : step.counts) {
    const plan::Tensor& tensor = plan_.tensors[step.inputs[count.input]];
    TensorArg list;
    LATHE_TRY(resolve(step.inputs[count.input], list));
    LATHE_TRY(check_late_window(step.inputs[count.input]));
    const std::optional<int64_t> element = count.element.evaluate(symbols_);
    if (!element || *element < 0 || *element >= list.dims[0])
      return fail(ErrorCode::execution_failed, "step '{}' reads its size from element {} of {}", step.name,
                  element.value_or(-1), list.dims[0]);
    int64_t value = 0;
    LATHE_TRY(engine_->device().download(&value, address_of(tensor) + static_cast<size_t>(*element) * sizeof(value),
                                         sizeof(value), queue));
    if (value < 0 || value > list.dims[0])
      return fail(ErrorCode::execution_failed, "step '{}': the values select what does not exist", step.name);
    symbols_[count.symbol] = value;
  }
  return check_due_constraints();
}

// Sizes of the step's results that its op's shape rule makes of the contents of small inputs: a shape, pads, scales.
Result<> Context::find_sizes(size_t i, Queue& queue) {
  constexpr int64_t kMostRead = 64;
  const plan::Step& step = plan_.steps[i];
  std::vector<ValueType> types(step.inputs.size());
  std::vector<const ValueType*> given(step.inputs.size());
  std::vector<Tensor> contents(step.inputs.size());
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (step.inputs[k] == plan::kNoTensor) continue;
    TensorArg arg;
    LATHE_TRY(resolve(step.inputs[k], arg));
    LATHE_TRY(check_late_window(step.inputs[k]));
    types[k] = {arg.dtype, to_shape(Dims(arg.dims, arg.dims + arg.rank))};
    given[k] = &types[k];
    arg.data = address_of(plan_.tensors[step.inputs[k]]);
    if (plan_.tensors[step.inputs[k]].strides.empty() && arg.volume() <= kMostRead) {
      LATHE_ASSIGN(contents[k], host_copy(arg, queue));
    }
  }
  const auto found = result_types(*engine_->code()[i].eval, given, contents, step.outputs.size());
  if (!found) return fail(with_context(found.error(), fmt::format("{} '{}'", step.op, step.name)));
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (step.outputs[k] == plan::kNoTensor) continue;
    const std::optional<Dims> dims = as_constant((*found)[k].shape);
    if (!dims || std::any_of(dims->begin(), dims->end(), [](int64_t dim) { return dim < 0; }))
      return fail(ErrorCode::execution_failed, "{} '{}': its inputs give no size of its result: {}", step.op, step.name,
                  to_string((*found)[k].shape));
    LATHE_TRY(bind_computed(plan_.tensors[step.outputs[k]], (*found)[k].dtype, *dims));
  }
  return {};
}

// What could not be prepared before the steps ahead had run: sizes, workspace, the outputs' memory.
Result<> Context::run_late_step(size_t i, std::byte** workspace, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  LATHE_TRY(read_counts(step, queue));
  if (engine_->code()[i].eval) LATHE_TRY(find_sizes(i, queue));
  const size_t planned = workspace_bytes_;
  workspace_bytes_ = 0;
  LATHE_TRY(prepare_step(i));
  const size_t needed = std::exchange(workspace_bytes_, planned);
  if (needed > planned) {
    LATHE_ASSIGN(*workspace, provide_workspace(needed));
  }
  for (const plan::TensorId id : step.outputs) LATHE_TRY(provide_late(id));
  for (const auto* ids : {&step.inputs, &step.outputs})
    for (const plan::TensorId id : *ids) LATHE_TRY(check_late_window(id));
  return {};
}

// The memory of an output whose size only this run could tell. Others have theirs already.
Result<> Context::provide_late(plan::TensorId id) {
  if (!engine_->is_late(id)) return {};
  const plan::Tensor& tensor = plan_.tensors[id];
  if (tensor.storage == plan::StorageKind::dynamic) return provide_slot(tensor.index);
  if (tensor.storage == plan::StorageKind::binding) return provide_binding(tensor.index);
  return {};
}

// As large as the largest of its windows whose size is known by now: steps may write a tensor part by part, and the
// slot must hold the whole when the first part is written, as growing loses what it held.
Result<> Context::provide_slot(uint32_t slot) {
  size_t bytes = 64;
  for (const plan::TensorId id : slot_windows_[slot]) {
    const plan::Tensor& window = plan_.tensors[id];
    LATHE_ASSIGN(const std::optional<int64_t> end, plan::window_end(plan_, window, symbols_));
    if (end) bytes = std::max(bytes, static_cast<size_t>(*end) * size_of(window.dtype));
  }
  return dynamic_[slot].size() >= bytes ? Result<>() : replace(dynamic_[slot], bytes);
}

// Asked for once in a run, for the whole output, whichever part of it is written first.
Result<> Context::provide_binding(uint32_t binding) {
  if (!allocators_[binding] || provided_[binding]) return {};
  TensorArg whole;
  LATHE_TRY(resolve(plan_.bindings[binding].tensor, whole));
  const Dims dims(whole.dims, whole.dims + whole.rank);
  const std::optional<int64_t> count = checked_volume(dims);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<int64_t>(size_of(whole.dtype)), &bytes))
    return fail(ErrorCode::shape_mismatch, "output '{}' of dims {} has no valid size", plan_.bindings[binding].name,
                to_string(to_shape(dims)));
  addresses_[binding] = allocators_[binding](static_cast<size_t>(bytes), dims);
  if (!addresses_[binding])
    return fail(ErrorCode::out_of_memory, "the output allocator gave no memory for '{}'", plan_.bindings[binding].name);
  provided_[binding] = true;
  return stage(binding, static_cast<size_t>(bytes));
}

// The bytes that a tensor's storage has in this run.
Result<size_t> Context::storage_bytes(const plan::Tensor& tensor) const {
  switch (tensor.storage) {
    case plan::StorageKind::arena:
      return static_cast<size_t>(plan_.buffers[tensor.index].bytes.evaluate(symbols_).value_or(0));
    case plan::StorageKind::constant:
      return plan_.constants[tensor.index].bytes;
    case plan::StorageKind::dynamic:
      return dynamic_[tensor.index].size();
    case plan::StorageKind::binding:
      break;
  }
  const plan::Tensor& whole = plan_.tensors[plan_.bindings[tensor.index].tensor];
  LATHE_ASSIGN(const std::optional<int64_t> end, plan::window_end(plan_, whole, symbols_));
  return end ? static_cast<size_t>(*end) * size_of(whole.dtype) : 0;
}

// A late tensor lies in its storage, and where it starts is known: neither could be judged when shapes were set.
Result<> Context::check_late_window(plan::TensorId id) const {
  if (!engine_->is_late(id)) return {};
  const plan::Tensor& tensor = plan_.tensors[id];
  if (!tensor.offset.evaluate(symbols_))
    return fail(ErrorCode::plan_malformed, "tensor '{}' starts at a place that no step has computed", tensor.name);
  LATHE_ASSIGN(const std::optional<int64_t> end, plan::window_end(plan_, tensor, symbols_));
  const size_t bytes = end ? static_cast<size_t>(*end) * size_of(tensor.dtype) : 0;
  LATHE_ASSIGN(const size_t storage, storage_bytes(tensor));
  if (bytes <= storage) return {};
  return fail(ErrorCode::plan_malformed, "tensor '{}' needs {} bytes of a storage of {}", tensor.name, bytes, storage);
}

// Takes the sizes that an evaluation has found. What it made must be what the plan says of the tensor, for its memory
// is sized by that.
Result<> Context::bind_computed(const plan::Tensor& tensor, DType dtype, const Dims& dims) {
  if (dtype != tensor.dtype || dims.size() != tensor.dims.size())
    return fail(ErrorCode::plan_malformed, "tensor '{}' came out as {} of rank {}, its plan expects {} of rank {}",
                tensor.name, name_of(dtype), dims.size(), name_of(tensor.dtype), tensor.dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<SymbolId> symbol = tensor.dims[d].as_symbol();
    if (symbol && symbols_[*symbol] == Expr::kUnbound && plan_.symbols[*symbol].source == SymbolSource::computed)
      symbols_[*symbol] = dims[d];
    if (tensor.dims[d].evaluate(symbols_) != dims[d])
      return fail(ErrorCode::execution_failed, "tensor '{}' came out with dims {}, its plan expects {}", tensor.name,
                  to_string(to_shape(dims)), to_string(tensor.dims));
  }
  return check_due_constraints();
}

}  // namespace lathe
