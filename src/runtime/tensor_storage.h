// SPDX-License-Identifier: Apache-2.0
// Where each tensor of a plan lies in a run of a context.
#pragma once

#include "runtime/context_memory.h"
#include "runtime/staging.h"
#include "runtime/weight_stream.h"

namespace lathe {

// A tensor is a window of its storage: a buffer of the arena, a constant, a binding, a slot whose size only a run can
// tell. Storage and offset of most tensors are known when shapes are bound; those that depend on data
// (Engine::is_data_dependent) get theirs when the step that makes them has its turn. One thread at a time; all that it
// is made of outlives it.
class TensorStorage {
 public:
  // `weights`: null = the engine's constants stay where they are.
  TensorStorage(const Engine& engine, const ShapeBinding& shapes, ContextMemory& memory, Staging& staging,
                const WeightStream* weights)
      : engine_(engine), plan_(engine.plan()), shapes_(shapes), memory_(memory), staging_(staging), weights_(weights) {}

  // Where a tensor's storage starts; null when the application has not given (or the run not yet made) the memory.
  std::byte* base(const plan::TensorDesc& tensor) const;
  // Where the tensor starts within it; null while the storage is.
  std::byte* address(const plan::TensorDesc& tensor) const;
  // The tensor as it is now; fails where its sizes or place are not known, or it leaves its storage.
  Result<TensorArg> find(plan::TensorId id) const;
  // Where the host reads the tensor without asking the device: a constant, a shape input, all of a CPU; null = nowhere.
  const std::byte* host_address(const plan::TensorDesc& tensor) const;
  // The memory of a result whose size depends on data and is known by now. Others have theirs already.
  Result<> provide(plan::TensorId id);
  // That such a tensor lies in its storage and where it starts is known: neither could be judged when shapes were set.
  Result<> check_window(plan::TensorId id) const;

 private:
  const std::byte* at_offset(const std::byte* start, const plan::TensorDesc& tensor) const;
  Result<size_t> bytes_of_storage(const plan::TensorDesc& tensor) const;

  const Engine& engine_;
  const plan::Plan& plan_;
  const ShapeBinding& shapes_;
  ContextMemory& memory_;
  Staging& staging_;
  const WeightStream* weights_;
};

}  // namespace lathe
