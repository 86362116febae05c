// SPDX-License-Identifier: Apache-2.0
// An output of a loop of which each round writes a slice.
#pragma once

#include "runtime/tensor_storage.h"

namespace lathe {

// Slices are written where they belong as soon as the output's size is known, which its length and the first slice
// tell. Where only the end of the loop tells the length, they are collected in memory that grows. One thread at a time,
// as the context that owns it; all that it is made of outlives it.
class StackedValue {
 public:
  StackedValue(const Engine& engine, ShapeBinding& shapes, const ContextMemory& memory, TensorStorage& storage,
               plan::TensorId output, plan::Slice slice, plan::TensorId result);

  // Begins a loop of so many rounds; nullopt = the loop itself finds out.
  void begin(std::optional<int64_t> rounds);
  // What the round has left.
  Result<> take(int64_t round, Queue& queue);
  // The loop has ended: the output is whole.
  Result<> finish(int64_t rounds, Queue& queue);
  // Between runs: gives back the memory that is kept for the next one.
  void release() { collected_ = DeviceMemory(); }

 private:
  Result<> begin_output(const TensorArg& slice);
  Result<> check_slice(const TensorArg& slice) const;
  Result<> collect(const TensorArg& slice, int64_t round, Queue& queue);
  Result<> make_room(int64_t rounds, Queue& queue);
  Result<> place_output(TensorArg whole);
  Result<> copy_collected(int64_t rounds, Queue& queue);
  TensorArg whole_of(const TensorArg& slice, int64_t length) const;
  const plan::TensorDesc& output() const { return plan_.tensors[output_]; }

  const Engine& engine_;
  const plan::Plan& plan_;
  ShapeBinding& shapes_;
  const ContextMemory& memory_;
  TensorStorage& storage_;
  const plan::TensorId output_;
  const plan::Slice slice_;
  const plan::TensorId result_;

  std::optional<int64_t> length_;
  TensorArg first_;         // slice of this loop; of rank -1 before
  DeviceMemory collected_;  // slices side by side, row-major; those of reversed outputs fill it from its end
  int64_t room_ = 0;        // in slices of this loop
};

}  // namespace lathe
