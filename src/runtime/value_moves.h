// SPDX-License-Identifier: Apache-2.0
// Values that enter and leave the bodies of blocks.
#pragma once

#include "runtime/tensor_storage.h"

namespace lathe {

// The part of a tensor at one index of an axis, which it has no more.
TensorArg slice_of(const TensorArg& whole, uint32_t axis, int64_t index);

// A tensor of that type and those dims, row-major and without gaps.
TensorArg dense_at(void* data, TensorArg shape);

// Moves some values to other tensors as if all were read before any is written. Used by one block; one thread at a
// time, as the context that owns it; all that it is made of outlives it.
class ValueMoves {
 public:
  ValueMoves(const Engine& engine, const plan::Step& block, ShapeBinding& shapes, ContextMemory& memory,
             TensorStorage& storage);

  // Begins a set of moves.
  void clear();
  // Notes where `from` is and how large, now. Nothing happens where `to` is no tensor.
  Result<> add(plan::TensorId from, plan::TensorId to);
  // The destination takes the sizes only: how the value gets there is the caller's.
  Result<> add_sizes(plan::TensorId from, plan::TensorId to);
  Result<> add_slice(plan::TensorId from, const plan::Slice& slice, int64_t round, plan::TensorId to);
  // The destinations take the sizes of what they get, `renewed` being those that are found anew, and then the values.
  Result<> run(std::span<const SymbolId> renewed, Queue& queue);

 private:
  struct Move {
    plan::TensorId from = 0, to = 0;
    TensorArg source;
    bool sizes_only = false;
    bool overwritten = false;  // an earlier move writes to where it lies
  };
  void note(Move move);
  Result<> check_sizes(const Move& move) const;
  Result<> save(size_t move, Queue& queue);
  Result<> finish(const Move& move, Queue& queue);
  size_t storage_number(plan::TensorId id) const;

  const Engine& engine_;
  const plan::Plan& plan_;
  const plan::Step& block_;
  ShapeBinding& shapes_;
  ContextMemory& memory_;
  TensorStorage& storage_;
  std::vector<Move> moves_;
  std::vector<DeviceMemory> saved_;  // by move: what is overwritten before its turn comes
  std::vector<uint64_t> written_;    // by storage: the last set of moves that writes to it
  uint64_t set_ = 0;
};

}  // namespace lathe
