// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_storage.h"

#include <algorithm>

#include "plan/windows.h"

namespace lathe {

std::byte* TensorStorage::base(const plan::TensorDesc& tensor) const {
  switch (tensor.storage) {
    case plan::StorageKind::arena:
      return memory_.buffer(tensor.index);
    case plan::StorageKind::constant:
      return const_cast<std::byte*>(weights_ ? weights_->address(tensor.index) : engine_.constant(tensor.index));
    case plan::StorageKind::binding:
      return staging_.data(tensor.index);
    case plan::StorageKind::dynamic:
      return memory_.slot(tensor.index).data();
  }
  return nullptr;
}

const std::byte* TensorStorage::host_address(const plan::TensorDesc& tensor) const {
  if (tensor.storage == plan::StorageKind::constant) {
    const std::byte* const start = engine_.host_constant(tensor.index);
    return start ? at_offset(start, tensor) : nullptr;
  }
  if (tensor.storage == plan::StorageKind::binding && plan_.bindings[tensor.index].is_shape_tensor)
    return at_offset(static_cast<const std::byte*>(staging_.address(tensor.index)), tensor);
  return engine_.device().is_host() ? address(tensor) : nullptr;
}

std::byte* TensorStorage::address(const plan::TensorDesc& tensor) const {
  std::byte* const start = base(tensor);
  return start ? const_cast<std::byte*>(at_offset(start, tensor)) : nullptr;
}

const std::byte* TensorStorage::at_offset(const std::byte* start, const plan::TensorDesc& tensor) const {
  // The offset is known: plan::check_windows(), check_window(). It is 0 where a byte holds several elements.
  const int64_t offset = tensor.offset.evaluate(shapes_.symbols()).value_or(0);
  return start + offset * static_cast<int64_t>(size_of(tensor.dtype));
}

Result<TensorArg> TensorStorage::find(plan::TensorId id) const {
  LATHE_ASSIGN(TensorArg arg, shapes_.resolve(id));
  LATHE_TRY(check_window(id));
  arg.data = address(plan_.tensors[id]);
  return arg;
}

Result<> TensorStorage::provide(plan::TensorId id) {
  if (!engine_.is_data_dependent(id)) return {};
  const plan::TensorDesc& tensor = plan_.tensors[id];
  if (tensor.storage == plan::StorageKind::dynamic) return memory_.provide_slot(tensor.index, shapes_);
  if (tensor.storage == plan::StorageKind::binding) return staging_.provide_output(tensor.index, shapes_);
  return {};
}

// In this run.
Result<size_t> TensorStorage::bytes_of_storage(const plan::TensorDesc& tensor) const {
  switch (tensor.storage) {
    case plan::StorageKind::arena:
      return static_cast<size_t>(
          std::max<int64_t>(plan_.buffers[tensor.index].bytes.evaluate(shapes_.symbols()).value_or(0), 0));
    case plan::StorageKind::constant:
      return plan_.constants[tensor.index].bytes;
    case plan::StorageKind::dynamic:
      return memory_.slot(tensor.index).size();
    case plan::StorageKind::binding:
      break;
  }
  const plan::TensorDesc& whole = plan_.tensors[plan_.bindings[tensor.index].tensor];
  LATHE_ASSIGN(const std::optional<int64_t> end, plan::window_end(plan_, whole, shapes_.symbols()));
  return end ? static_cast<size_t>(bytes_of(whole.dtype, *end).value_or(0)) : 0;
}

Result<> TensorStorage::check_window(plan::TensorId id) const {
  if (!engine_.is_data_dependent(id)) return {};
  const plan::TensorDesc& tensor = plan_.tensors[id];
  if (!tensor.offset.evaluate(shapes_.symbols()))
    return fail(ErrorCode::plan_malformed, "tensor '{}' starts at a place that no step has computed", tensor.name);
  LATHE_ASSIGN(const std::optional<int64_t> end, plan::window_end(plan_, tensor, shapes_.symbols()));
  const size_t bytes = end ? static_cast<size_t>(bytes_of(tensor.dtype, *end).value_or(0)) : 0;
  LATHE_ASSIGN(const size_t storage, bytes_of_storage(tensor));
  if (bytes <= storage) return {};
  return fail(ErrorCode::plan_malformed, "tensor '{}' needs {} bytes of a storage of {}", tensor.name, bytes, storage);
}

}  // namespace lathe
