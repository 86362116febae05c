// SPDX-License-Identifier: Apache-2.0
// The loops around the tiles: rows x panels x k blocks, for one thread's share of a launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm/pair_blocks.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/gemm/tile.h"

namespace lathe::cpu::gemm {

// A block of the rows of one tile, whatever the ISA level's tiles are.
inline constexpr int64_t kTileByTile = 1;
// Whether so many weights of 4 bytes are read from the second cache for each tile.
constexpr bool stays_near(int64_t weights) { return weights <= 64 << 10; }

// How a problem is cut. The same record serves GEMM and convolution.
struct Blocking {
  int width = 64;                 // of a panel: 16, 32, 48 or 64; fixed when weights are packed
  int64_t row_block = 0;          // rows for which all panels are done before the next rows; 0 = all; whole units
  int64_t k_block = 0;            // k steps after which partial sums go to memory; 0 = all
  bool split_columns = false;     // threads share the columns, not the rows
  int rows = kMaxVectorTileRows;  // what all plans say; tiles have as many as the CPU's table has
  static constexpr auto members() {
    return std::tuple(&Blocking::width, &Blocking::rows, &Blocking::row_block, &Blocking::k_block,
                      &Blocking::split_columns);
  }
  bool operator==(const Blocking&) const = default;
};
bool valid(const Blocking& blocking);

// A tile's inputs, as a RowSource writes them.
struct TileScratch {
  const float** a_rows = nullptr;  // room for lists x kMaxTileRows
  Tap* taps = nullptr;             // room for every tap
  float* edge = nullptr;           // room for copies of input at the edge of an image
  TileRows where;
};
struct TileTaps {
  const float* const* a_rows;
  const Tap* taps;
};

// Says where the rows of the problem lie. Thread-safe: all state is in the scratch.
class RowSource {
 public:
  // For rows [first, first + count), count <= kMaxTileRows: the A rows and taps (same number of taps for every tile),
  // and scratch.where.
  virtual TileTaps fill(int64_t first, int count, TileScratch& scratch) const = 0;

 protected:
  ~RowSource() = default;
};

// Room that a source wants in each thread's scratch.
struct Needs {
  int64_t lists = 1;
  int64_t taps = 1;
  int64_t edge_floats = 0;
  // Products of integers or of bf16, whose rows of A are copied for matrix registers to be full, unless A is in blocks.
  bool is_narrow = false;
  bool is_even = false;  // rows of A are in equal distances
  // Floats that may be split (gemm/split_floats.h) where that pays.
  bool may_split = false;
};

struct GemmProblem {
  int64_t rows = 0;
  int64_t row_unit = 0;           // tiles do not cross multiples of it; 0 = they may
  int64_t groups = 1;             // blocks of columns with weights and input columns of their own
  int64_t group_input = 0;        // A's offset from one group to the next
  Panels panels;                  // of one group
  const float* packed = nullptr;  // all groups, one after the other, from the panel `first_packed` on
  int64_t first_packed = 0;
  const Tap* taps = nullptr;  // nominal: k and depths, for the k blocks
  Needs needs;
  Blocking blocking;
  const BoundEpilogue* epilogue = nullptr;
  const IntegerEpilogue* integers = nullptr;  // products of 8-bit integers, four of which lie in each float of A and B
  bool pairs = false;                         // products of bf16, two of which lie in each float of A and B
  const RowSource* source = nullptr;
  // Of pairs, A in blocks: tiles of matrix registers read it there, and `source` says where results go. Null = it is
  // where `source` says.
  const PairBlocks* blocks = nullptr;
  const float* a_blocks = nullptr;
};

// Bytes of scratch that one thread needs: a multiple of 64.
size_t scratch_bytes(const Blocking& blocking, int64_t rows, int64_t k, const Needs& needs);

// Runs the whole problem on the pool; `scratch` is pool.size() x scratch_bytes().
void run_problem(const GemmProblem& problem, std::byte* scratch, ThreadPool& pool);
// The same on the calling thread alone, for callers that split the work themselves; scratch is one thread's.
void run_problem_alone(const GemmProblem& problem, std::byte* scratch);
// ... and panels [first, last) of a problem of one group.
void run_panels_alone(const GemmProblem& problem, int64_t first, int64_t last, std::byte* scratch);
// How the calling thread's matrix registers are set up while it runs tiles of a table; it gives them back behind that.
class MatrixSetup {
 public:
  // `leave`: see TileTable.
  explicit MatrixSetup(void (*leave)()) : leave_(leave) {}
  MatrixSetup(const MatrixSetup&) = delete;
  MatrixSetup& operator=(const MatrixSetup&) = delete;
  ~MatrixSetup() {
    if (code_ > 0) leave_();
  }
  int* code() { return &code_; }  // see Tile::configured

 private:
  void (*const leave_)();
  int code_ = 0;
};
// Whether so many fours of 8-bit integers along K fill a row of a matrix register. Vectors multiply fewer in less time,
// for they do not store sums.
constexpr bool fills_matrix_registers(int64_t fours) { return fours >= kMatrixRegisterRows; }
// Whether products of them are taken there, unless A's rows have factors (row_factor).
bool has_matrix_tiles(int64_t fours);
// Tiles of products of bf16 on this machine.
const TileTable& pair_tiles();
// Columns of the widest tile, at least a panel's.
int tile_columns();

// Below this much work a launch is not split over threads (about 5 us).
inline constexpr double kMinParallelFlops = 1e6;

}  // namespace lathe::cpu::gemm
