// SPDX-License-Identifier: Apache-2.0
#include "lowering/plan_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "base/hash.h"
#include "plan/content_sums.h"
#include "plan/windows.h"

namespace lathe {

using ir::Value;
using plan::StorageKind;
using plan::TensorId;

PlanTensors::PlanTensors(const ir::Graph& graph, const Placement& placement, BuiltPlan& out, int threads,
                         PlanTensors* outer)
    : graph_(graph), placement_(placement), out_(out), plan_(out.plan), outer_(outer), digests_(threads) {}

void PlanTensors::bind_body(const std::vector<TensorId>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == plan::kNoTensor) continue;
    const Value* input = graph_.inputs()[i];
    const plan::TensorDesc& tensor = plan_.tensors[inputs[i]];
    storages_[input] = {tensor.storage, tensor.index};
    tensors_[input] = inputs[i];
  }
}

// A graph output's memory is written directly by its producer when the value, or the tensor whose elements it all views
// in row-major order, has a storage of its own. Other outputs are copied at the end.
void PlanTensors::bind() {
  const auto inputs = static_cast<uint32_t>(graph_.inputs().size());
  for (uint32_t i = 0; i < inputs; ++i) {
    const Value* input = graph_.inputs()[i];
    storages_[input] = {StorageKind::binding, i};
    plan::Binding binding{.name = input->name(), .is_input = true, .tensor = tensor_of(input), .dim_names = {}};
    for (const Expr& dim : input->shape()) {
      const std::optional<SymbolId> symbol = dim.as_symbol();
      binding.dim_names.push_back(symbol ? plan_.symbols[*symbol].name : "");
    }
    plan_.bindings.push_back(std::move(binding));
  }
  outputs_written_.resize(graph_.outputs().size());
  for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
    const auto& [name, value] = graph_.outputs()[i];
    const Location location = placement_.location(value);
    const bool own = location.root->producer() && !location.root->content() &&
                     !output_bindings_.contains(location.root) && placement_.is_dense_linear(value) &&
                     volume(value->shape()) == volume(placement_.room(location.root));
    if (own) {
      output_bindings_[location.root] = inputs + i;
      outputs_written_[i] = true;
    }
  }
}

// For a tensor of these dims, which has room for some more.
PlanTensors::Storage PlanTensors::new_storage(DType dtype, const Shape& dims, const Shape& room) {
  if (depends_on_data(dims, plan_.symbols)) return {StorageKind::dynamic, plan_.dynamic_slots++};
  plan_.buffers.push_back({plan::bytes_of(dtype, volume(room)), 0, 0});
  return {StorageKind::arena, static_cast<uint32_t>(plan_.buffers.size() - 1)};
}

PlanTensors::Storage PlanTensors::storage_of(const Value* root) {
  const auto it = storages_.find(root);
  if (it != storages_.end()) return it->second;
  const auto output = output_bindings_.find(root);
  return storages_[root] = output != output_bindings_.end()
                               ? Storage{StorageKind::binding, output->second}
                               : new_storage(root->dtype(), root->shape(), placement_.room(root));
}

Shape strides_of(const plan::TensorDesc& tensor) {
  return tensor.strides.empty() ? dense_strides(tensor.dims, Layout::linear) : tensor.strides;
}

TensorId PlanTensors::add(plan::TensorDesc tensor) {
  if (is_dense(tensor.dims, strides_of(tensor), Layout::linear)) tensor.strides.clear();
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(plan_.tensors.size() - 1);
}

TensorId PlanTensors::tensor_at(const Value* value, Shape dims, Shape strides, const Location& location) {
  const Storage storage = storage_of(location.root);
  return add({value->name(), value->dtype(), std::move(dims), std::move(strides), storage.kind, storage.index,
              location.offset});
}

TensorId PlanTensors::tensor_of(const Value* value) {
  if (value->content()) return constant_of(value->known(), value->name());
  const auto it = tensors_.find(value);
  if (it != tensors_.end()) return it->second;
  const Location location = placement_.location(value);
  return tensors_[value] = tensor_at(value, value->shape(), location.strides, location);
}

TensorId PlanTensors::transposed(TensorId id) {
  plan::TensorDesc tensor = plan_.tensors[id];
  tensor.strides = strides_of(tensor);
  const size_t last = tensor.dims.size() - 1;
  std::swap(tensor.dims[last], tensor.dims[last - 1]);
  std::swap(tensor.strides[last], tensor.strides[last - 1]);
  return add(std::move(tensor));
}

TensorId PlanTensors::as_type(TensorId id, DType dtype) {
  plan::TensorDesc tensor = plan_.tensors[id];
  tensor.dtype = dtype;
  return add(std::move(tensor));
}

TensorId PlanTensors::along(const Value* value, const Operand& operand) {
  plan::TensorDesc tensor = plan_.tensors[tensor_of(value)];
  tensor.dims = operand.dims;
  tensor.strides = operand.strides;
  tensor.offset = operand.offset;
  return add(std::move(tensor));
}

uint32_t PlanTensors::add_constant(const Known& known, const std::string& name) {
  const auto index = static_cast<uint32_t>(plan_.constants.size());
  const size_t offset = round_up(plan_.weights_bytes(), 64);
  plan_.constants.push_back({unique_name(name), offset, known.content.bytes(), {}});
  plan_.pieces.push_back({known.content.raw(), known.content.owner()});
  plan_.pieces_bytes = offset + known.content.bytes();
  digests_.add(known.content.raw(), nullptr, constant_digests_.emplace_back());  // a piece of the plan
  if (known.derivation) {
    out_.derivations.resize(plan_.constants.size());
    out_.derivations.back() = known.derivation;
  }
  return index;
}

// What follows from weights that can be replaced is shared where it follows in one way.
TensorId PlanTensors::derived_of(const Known& known, const std::string& name) {
  std::vector<TensorId>& same = derived_[known.derivation.get()];
  const Dims& dims = known.content.dims();
  for (const TensorId id : same)
    if (as_constant(plan_.tensors[id].dims) == dims) return id;
  const uint32_t index = same.empty() ? add_constant(known, name) : plan_.tensors[same[0]].index;
  same.push_back(add({"constant", known.content.dtype(), to_shape(dims), {}, StorageKind::constant, index, 0}));
  return same.back();
}

TensorId PlanTensors::constant_of(const Known& known, const std::string& name) {
  if (outer_) return outer_->constant_of(known, name);
  if (known.derivation) return derived_of(known, name);
  const Tensor& content = known.content;
  using plan::ContentCheck;
  const uint64_t key = plan::sums_of(content.raw(), true, ContentCheck::checksum, digests_.most_threads()).checksum;
  std::vector<TensorId>& same = constants_[key];
  const auto at = [&](const plan::TensorDesc& tensor) { return plan_.constants[tensor.index]; };
  std::optional<uint32_t> twin;
  for (TensorId id : same) {
    const plan::TensorDesc& tensor = plan_.tensors[id];
    if (at(tensor).bytes != content.bytes()) continue;
    if (content.bytes() != 0 &&
        std::memcmp(plan_.pieces[tensor.index].bytes.data(), content.data(), content.bytes()) != 0)
      continue;
    if (tensor.dtype == content.dtype() && as_constant(tensor.dims) == content.dims()) return id;
    twin = tensor.index;
  }
  const uint32_t index = twin ? *twin : add_constant(known, name);
  same.push_back(add({"constant", content.dtype(), to_shape(content.dims()), {}, StorageKind::constant, index, 0}));
  return same.back();
}

TensorId PlanTensors::packed_of(const Packed& packed, const std::string& name) {
  if (outer_) return outer_->packed_of(packed, name);
  const TensorId id = constant_of(known_of(packed), name);
  if (packed.order) {
    const uint32_t constant = plan_.tensors[id].index;
    if (const auto [order, is_new] = out_.orders.try_emplace(constant); is_new) {
      order->second = {constant, {}, packed.order->packing};
      const Tensor& weights = packed.order->weights.content;
      digests_.add(weights.raw(), weights.owner(), order->second.weights);
    }
  }
  return id;
}

void PlanTensors::find_digests() {
  digests_.find();
  for (size_t i = 0; i < constant_digests_.size(); ++i) plan_.constants[i].digest = constant_digests_[i];
}

std::string PlanTensors::unique_name(const std::string& name) {
  for (;;) {
    const int uses = ++constant_names_[name];
    if (uses == 1 && !name.empty()) return name;
    std::string numbered = fmt::format("{} #{}", name.empty() ? "constant" : name, uses);
    if (constant_names_[numbered]++ == 0) return numbered;
  }
}

TensorId PlanTensors::temporary(std::string name, DType dtype, const Shape& dims) {
  const Storage storage = new_storage(dtype, dims, dims);
  return add({std::move(name), dtype, dims, {}, storage.kind, storage.index, 0});
}

}  // namespace lathe
