// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_evaluation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "ops/copy_box.h"
#include "ops/result_types.h"
#include "runtime/tensor_copy.h"

namespace lathe {
namespace {

Dims dims_of(const TensorArg& arg) { return Dims(arg.dims, arg.dims + arg.rank); }

// Of content in host memory: itself where it is row-major, as packed types always are, else a copy.
Result<Tensor> row_major(const TensorArg& arg) {
  const Dims dims = dims_of(arg), strides = row_major_strides(dims);
  if (is_packed(arg.dtype) || std::equal(strides.begin(), strides.end(), arg.strides))
    return Tensor::view(arg.dtype, dims, arg.data, nullptr);
  LATHE_ASSIGN(Tensor copy, Tensor::allocate(arg.dtype, dims));
  copy_box(static_cast<size_t>(size_of(arg.dtype)), dims, arg.data, {arg.strides, dims.size()}, copy.mutable_data(),
           strides);
  return copy;
}

// Whether it runs nothing for these sizes: another step does its work.
bool is_idle(const plan::Step& step, std::span<const int64_t> symbols) {
  const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
  const auto has_no_blocks = [&](const Launch& launch) {
    return launch.library.empty() && launch.grid[0].evaluate(symbols) == 0;
  };
  return device && std::ranges::all_of(device->launches, has_no_blocks);
}

}  // namespace

// Of a tensor that may depend on data.
Result<TensorArg> HostEvaluation::resolve_checked(plan::TensorId id) const {
  LATHE_ASSIGN(const TensorArg arg, shapes_.resolve(id));
  LATHE_TRY(storage_.check_window(id));
  return arg;
}

// A dense operand on the host: itself, or a copy of what lies in the device's memory.
Result<Tensor> HostEvaluation::host_copy(const TensorArg& arg, Queue& queue) const {
  if (engine_.device().is_host()) return Tensor::view(arg.dtype, dims_of(arg), arg.data, nullptr);
  LATHE_ASSIGN(Tensor copy, Tensor::allocate(arg.dtype, dims_of(arg)));
  LATHE_TRY(engine_.device().download(copy.mutable_data(), arg.data, copy.bytes(), queue));
  return copy;
}

Result<> HostEvaluation::run(size_t step, StepOperands& operands, Queue& queue) {
  return plan_.steps[step].is<plan::Copy>() ? copy(step, operands, queue) : evaluate(step, operands, queue);
}

Result<> HostEvaluation::copy(size_t i, StepOperands& operands, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  TensorArg &from = operands.inputs[0], &to = operands.outputs[0];
  if (engine_.is_data_dependent_step(i)) {
    LATHE_TRY(storage_.provide(step.outputs[0]));
    LATHE_ASSIGN(from, resolve_checked(step.inputs[0]));
    LATHE_ASSIGN(to, resolve_checked(step.outputs[0]));
  }
  if (from.rank != to.rank || from.dtype != to.dtype || !std::equal(from.dims, from.dims + from.rank, to.dims))
    return fail(ErrorCode::plan_malformed, "step '{}' copies a tensor to one of another type or size", step.name);
  from.data = storage_.address(plan_.tensors[step.inputs[0]]);
  to.data = storage_.address(plan_.tensors[step.outputs[0]]);
  return copy_tensor(from, to, engine_.device(), queue);
}

Result<> HostEvaluation::evaluate(size_t i, StepOperands& operands, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  const bool on_host = engine_.device().is_host();
  std::vector<Tensor> inputs(step.inputs.size());
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (step.inputs[k] == plan::kNoTensor) continue;
    TensorArg& input = operands.inputs[k];
    if (engine_.is_data_dependent_step(i)) {
      LATHE_ASSIGN(input, resolve_checked(step.inputs[k]));
    }
    input.data = storage_.address(plan_.tensors[step.inputs[k]]);
    LATHE_ASSIGN(inputs[k], host_copy(input, queue));
  }
  // Gives the output's place in device memory; null for one of size zero.
  const auto address = [&](size_t k, DType dtype, const Dims& dims) -> Result<std::byte*> {
    const plan::TensorDesc& tensor = plan_.tensors[step.outputs[k]];
    LATHE_TRY(shapes_.bind_computed(tensor, dtype, dims));
    LATHE_TRY(storage_.provide(step.outputs[k]));
    LATHE_TRY(storage_.check_window(step.outputs[k]));
    return storage_.address(tensor);
  };
  std::vector<bool> placed(step.outputs.size());
  const auto place = [&](size_t k, DType dtype, const Dims& dims) -> Result<Tensor> {
    if (step.outputs[k] == plan::kNoTensor || !on_host) return Tensor();
    LATHE_ASSIGN(std::byte * at, address(k, dtype, dims));
    if (!at) return Tensor();
    placed[k] = true;
    return Tensor::view(dtype, dims, at, nullptr);
  };
  Result<std::vector<Tensor>> outputs = run_op(*engine_.code()[i].eval, inputs, step.outputs.size(), place);
  if (!outputs) return fail(with_context(std::move(outputs).error(), fmt::format("{} '{}'", step.op, step.name)));
  // Outputs that the evaluation made elsewhere move to their place.
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (placed[k] || step.outputs[k] == plan::kNoTensor) continue;
    const Tensor& output = (*outputs)[k];
    LATHE_ASSIGN(std::byte * at, address(k, output.dtype(), output.dims()));
    if (at) LATHE_TRY(engine_.device().upload(at, output.data(), output.bytes(), queue));
  }
  return {};
}

// The only place where the host waits for sizes of the device's.
Result<> HostEvaluation::read_counts(const plan::Step& step, Queue& queue) {
  for (const plan::StepCount& count : step.counts) {
    const plan::TensorDesc& tensor = plan_.tensors[step.inputs[count.input]];
    LATHE_ASSIGN(const TensorArg list, resolve_checked(step.inputs[count.input]));
    const std::optional<int64_t> element = count.element.evaluate(shapes_.symbols());
    if (!element || *element < 0 || *element >= list.dims[0])
      return fail(ErrorCode::execution_failed, "step '{}' reads its size from element {} of {}", step.name,
                  element.value_or(-1), list.dims[0]);
    int64_t value = 0;
    LATHE_TRY(engine_.device().download(
        &value, storage_.address(tensor) + static_cast<size_t>(*element) * sizeof(value), sizeof(value), queue));
    if (value < 0 || value > list.dims[0])
      return fail(ErrorCode::execution_failed, "step '{}': the values select what does not exist", step.name);
    shapes_.bind_count(count.symbol, value);
  }
  return shapes_.check_due_constraints();
}

Result<> HostEvaluation::read_written_sizes(const plan::Step& step, Queue& queue) {
  for (const plan::StepCount& count : step.counts) {
    const plan::TensorId id = step.outputs[count.input];
    int64_t value = 0;
    if (plan_.tensors[id].dtype == DType::i32) {
      LATHE_ASSIGN(value, read_scalar<int32_t>(id, queue));
    } else {
      LATHE_ASSIGN(value, read_scalar<int64_t>(id, queue));
    }
    const std::optional<int64_t> most = count.element.evaluate(shapes_.symbols());
    if (!most || value < 0 || value > *most)
      return fail(ErrorCode::execution_failed,
                  "step '{}': the plugin gives the size tensor, output {}, the value {}; it has declared 0 to {}",
                  step.name, count.input, value, most.value_or(-1));
    shapes_.bind_count(count.symbol, value);
  }
  return step.counts.empty() ? Result<>() : shapes_.check_due_constraints();
}

template <class T>
Result<T> HostEvaluation::read_scalar(plan::TensorId id, Queue& queue) const {
  const plan::TensorDesc& tensor = plan_.tensors[id];
  LATHE_TRY(storage_.check_window(id));
  std::array<std::byte, sizeof(T)> bytes;
  if (const std::byte* known = storage_.host_address(tensor)) {
    std::copy_n(known, sizeof(T), bytes.data());
  } else {
    LATHE_TRY(engine_.device().download(bytes.data(), storage_.address(tensor), sizeof(T), queue));
  }
  if constexpr (std::is_same_v<T, bool>)
    return bytes[0] != std::byte{0};
  else
    return std::bit_cast<T>(bytes);
}

Result<int64_t> HostEvaluation::read_number(plan::TensorId id, Queue& queue) const {
  return read_scalar<int64_t>(id, queue);
}

Result<bool> HostEvaluation::read_truth(plan::TensorId id, Queue& queue) const { return read_scalar<bool>(id, queue); }

Result<> HostEvaluation::find_sizes(size_t i, Queue& queue) {
  constexpr int64_t kMostRead = 64;
  const plan::Step& step = plan_.steps[i];
  std::vector<ValueType> types(step.inputs.size());
  std::vector<const ValueType*> given(step.inputs.size());
  std::vector<Tensor> contents(step.inputs.size());
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (step.inputs[k] == plan::kNoTensor) continue;
    LATHE_ASSIGN(TensorArg arg, resolve_checked(step.inputs[k]));
    types[k] = {arg.dtype, to_shape(dims_of(arg))};
    given[k] = &types[k];
    arg.data = storage_.address(plan_.tensors[step.inputs[k]]);
    if (plan_.tensors[step.inputs[k]].strides.empty() && arg.volume() <= kMostRead) {
      LATHE_ASSIGN(contents[k], host_copy(arg, queue));
    }
  }
  const auto found = result_types(*engine_.code()[i].eval, given, contents, step.outputs.size());
  if (!found) return fail(with_context(found.error(), fmt::format("{} '{}'", step.op, step.name)));
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (step.outputs[k] == plan::kNoTensor) continue;
    const std::optional<Dims> dims = as_constant((*found)[k].shape);
    if (!dims || std::any_of(dims->begin(), dims->end(), [](int64_t dim) { return dim < 0; }))
      return fail(ErrorCode::execution_failed, "{} '{}': its inputs give no size of its result: {}", step.op, step.name,
                  to_string((*found)[k].shape));
    LATHE_TRY(shapes_.bind_computed(plan_.tensors[step.outputs[k]], (*found)[k].dtype, *dims));
  }
  return {};
}

Result<> HostEvaluation::show_results(const plan::Step& step, const Observer& observer, Queue& queue) {
  const bool has_written = !is_idle(step, shapes_.symbols());
  for (const plan::TensorId id : step.outputs) {
    if (id == plan::kNoTensor) continue;
    const plan::TensorDesc& tensor = plan_.tensors[id];
    LATHE_ASSIGN(TensorArg content, shapes_.resolve(id));
    if (!has_written && content.volume() != 0) continue;
    content.data = storage_.address(tensor);
    std::vector<std::byte> copy;
    if (!engine_.device().is_host()) {
      const Line line = line_of(content);
      const size_t size = size_of(content.dtype);
      copy.resize(static_cast<size_t>(bytes_of(content.dtype, line.elements.dims[0]).value_or(0)));
      LATHE_TRY(engine_.device().download(copy.data(), line.elements.data, copy.size(), queue));
      content.data = copy.data() + static_cast<size_t>(line.first) * size;
    }
    LATHE_ASSIGN(const Tensor dense, row_major(content));
    LATHE_TRY(observer(tensor, dense));
  }
  return {};
}

}  // namespace lathe
