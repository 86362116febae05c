// SPDX-License-Identifier: Apache-2.0
// How long the tiles of products and convolutions take, as far as that can be told without measuring.
#pragma once

#include "device/target.h"
#include "kernels/cpu/gemm/driver.h"

namespace lathe::cpu::gemm {

// A product as run_problem() cuts it up.
struct TiledProduct {
  int64_t rows = 1;
  int64_t row_unit = 0;  // as in GemmProblem
  int64_t groups = 1;
  Panels panels;             // of a group
  int64_t taps = 1;          // of K: parts that have rows of A of their own
  double inside = 1;         // the share of K that tiles do not skip
  double input_bytes = 0;    // of A, each once
  int64_t element_size = 4;  // of the weights
  bool is_narrow = false;    // of 8-bit integers or bf16, which matrix units multiply where a CPU has some
  bool may_split = false;    // as in Needs
  Blocking blocking;
};
double predicted_us(const Target& target, const TiledProduct& product);

// Whether blocks of the rows and panels are whole tiles of matrix registers, which have two by two, where there are
// some.
inline bool has_whole_tiles(const Target& target, const Blocking& blocking) {
  return target.products.matrix == 0 || (blocking.width != 48 && blocking.row_block != 48);
}

// The pieces of such a prediction, for kernels that call tiles in loops of their own.
class TileCost {
 public:
  explicit TileCost(const Target& target, bool is_narrow = false);

  bool has_matrix_registers() const { return target_.products.matrix > 0; }
  int lanes() const { return lanes_; }
  int columns() const { return vectors_ * lanes_; }  // of the widest tile
  int most_rows(int vectors) const { return rows_[vectors - 1]; }
  // Cores that share so many multiplications.
  int cores(double products) const { return products < kMinParallelFlops ? 1 : target_.cores; }
  // Clocks of a core for one K of a tile; of so many bytes from memory, when all cores read it.
  double step(int vectors, double rows) const;
  double memory(double bytes) const;
  bool stays_in_cache(double bytes) const;
  // Microseconds of a launch: what a core computes, and what it reads while it does.
  double launch_us(double clocks, double weights, double input) const;

 private:
  const Target& target_;
  int lanes_, vectors_;
  bool in_matrix_registers_;
  const int* rows_;
};

// Clocks: of a tile, on top of its steps; of each of its vectors at the end, and when partial sums go to memory.
inline constexpr double kTileClocks = 45, kEndClocks = 15, kPartialClocks = 2.3;

}  // namespace lathe::cpu::gemm
