// SPDX-License-Identifier: Apache-2.0
// The tensors of a plan in the making: where values lie, windows into that memory, constants.
#pragma once

#include <deque>

#include "lowering/build.h"
#include "lowering/placement.h"
#include "lowering/weights_digests.h"

namespace lathe {

class PlanTensors {
 public:
  // All references must outlive it.
  // `outer`: those of the graph that a body is in, which shares its constants; null for the network's.
  PlanTensors(const ir::Graph& graph, const Placement& placement, BuiltPlan& out, int threads,
              PlanTensors* outer = nullptr);

  // Gives the graph's inputs their bindings, and its outputs theirs where producers can write them. Called first.
  void bind();
  // The same of a body, whose inputs are these tensors; kNoTensor = nothing reads it.
  void bind_body(const std::vector<plan::TensorId>& inputs);
  // The tensor of output binding `i`, if what produces the value writes it there.
  bool is_written_in_place(size_t output) const { return outputs_written_[output]; }

  plan::TensorId tensor_of(const ir::Value* value);  // as placed, or constant
  plan::TensorId tensor_at(const ir::Value* value, Shape dims, Shape strides, const Location& location);
  // Weights are exchanged by name: that of the value in the network, or what the step that packs them gives. It gets a
  // number where several would have it.
  plan::TensorId constant_of(const Known& known, const std::string& name);
  plan::TensorId packed_of(const Packed& packed, const std::string& name);
  // Of constants, and of the weights that were packed; called when all are there.
  void find_digests();
  plan::TensorId temporary(std::string name, DType dtype, const Shape& dims);
  plan::TensorId add(plan::TensorDesc tensor);
  // The same memory with the last two dimensions swapped.
  plan::TensorId transposed(plan::TensorId id);
  // The same memory as elements of another type of as many bits.
  plan::TensorId as_type(plan::TensorId id, DType dtype);
  // The placed tensor with the dims, strides and offset of the operand.
  plan::TensorId along(const ir::Value* value, const Operand& operand);

  const plan::TensorDesc& operator[](plan::TensorId id) const { return plan_.tensors[id]; }

 private:
  struct Storage {
    plan::StorageKind kind;
    uint32_t index;
  };
  Storage new_storage(DType dtype, const Shape& dims, const Shape& room);
  Storage storage_of(const ir::Value* root);
  std::string unique_name(const std::string& name);
  uint32_t add_constant(const Known& known, const std::string& name);
  plan::TensorId derived_of(const Known& known, const std::string& name);

  const ir::Graph& graph_;
  const Placement& placement_;
  BuiltPlan& out_;
  plan::Plan& plan_;
  PlanTensors* outer_;
  std::deque<Digest> constant_digests_;  // where they stay until they are found
  WeightsDigests digests_;
  std::unordered_map<const ir::Value*, Storage> storages_;          // of roots
  std::unordered_map<const ir::Value*, uint32_t> output_bindings_;  // roots that a graph output's binding holds
  std::unordered_map<const ir::Value*, plan::TensorId> tensors_;
  std::unordered_map<uint64_t, std::vector<plan::TensorId>> constants_;  // by content hash
  std::unordered_map<const Derivation*, std::vector<plan::TensorId>> derived_;
  std::unordered_map<std::string, int> constant_names_;  // how often each was asked for
  std::vector<bool> outputs_written_;
};

// Row-major where it notes none.
Shape strides_of(const plan::TensorDesc& tensor);

}  // namespace lathe
