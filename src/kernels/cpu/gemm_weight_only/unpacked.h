// SPDX-License-Identifier: Apache-2.0
// Products of many rows by narrow weights: a panel's become floats once, in memory of the thread, and are multiplied by
// the tiles of products of floats.
#pragma once

#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm_weight_only/gemm_weight_only.h"

namespace lathe::cpu::gemm {

// Whether that is faster than unpacking codes in registers for a few rows each.
bool are_unpacked(int64_t rows);

class UnpackedProduct {
 public:
  UnpackedProduct(const PackedPanels& panels, int64_t rows) : panels_(panels), rows_(rows) {}

  size_t workspace_bytes(int threads) const { return tap_bytes() + thread_bytes() * static_cast<size_t>(threads); }
  // What the source is to give for its rows; they lie in the workspace.
  const Tap* write_taps(std::byte* workspace) const;
  void run(const std::byte* packed, const BoundEpilogue& epilogue, const RowSource& source, std::byte* workspace,
           ThreadPool& pool) const;

  // For callers that share out panels themselves: one of them, in a thread's memory, with the taps that were written.
  size_t tap_bytes() const;
  size_t thread_bytes() const;
  void multiply(int64_t panel, const std::byte* codes, const BoundEpilogue& epilogue, const RowSource& source,
                const Tap* taps, std::byte* own) const;

 private:
  int64_t tap_count() const;
  size_t panel_bytes() const;
  const PackedPanels& panels_;
  const int64_t rows_;
};

}  // namespace lathe::cpu::gemm
