// SPDX-License-Identifier: Apache-2.0
// Tiles that pass through shared memory (lib/tiles.cuh): for tensors that are contiguous along another dimension than
// the output.
#pragma once

#include <optional>
#include <span>

#include "tuning/problem.h"

namespace lathe::cuda {

struct Tiles {
  static constexpr uint32_t kThreads = 256;  // kTileThreads of the header
  int fast = 0;                              // the dimension along which the others are contiguous
  int64_t size = 32;                         // elements of a side
  Expr blocks;

  int64_t pitch(DType dtype) const;
  uint32_t bytes(DType dtype) const;  // of a tile in shared memory
};

// Whether the tensor, in the output's dims, is contiguous along another dimension than the output's last.
bool crosses(const Operand& tensor, const Operand& output);
// For the tensors that cross the output (collapse.h) along the dimension that the first does; nullopt where runs on
// either side are too short to gain from them.
std::optional<Tiles> tiles_for(const Operand& output, std::span<const Operand> crossing);

}  // namespace lathe::cuda
