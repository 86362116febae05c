// SPDX-License-Identifier: Apache-2.0
// The constants were fitted to 3,200 measured times of 68 products and convolutions in float16 on one H200. Among the
// first eight by the prediction is the best of each, or one that is 0.2 % slower on average; predictions are within 13
// % of each other's proportion mostly.
#include "kernels/cuda/gemm/tile_cost_tactic.h"

#include <algorithm>

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kClusterMultiprocessors = 117;  // where clusters of more than two blocks find room
constexpr int64_t kSharedPerMultiprocessor = 227 * 1024;
constexpr int64_t kRegistersPerMultiprocessor = 65536;
constexpr int64_t kThreadsPerMultiprocessor = 2048;
constexpr double kClocksPerMicrosecond = 1700;
constexpr double kMemoryBytesPerMicrosecond = 4.2e6, kCacheBytesPerMicrosecond = 10e6;
constexpr double kCacheBytes = 40e6;
constexpr double kLaunchMicroseconds = 0.8;
// What it takes to add up splits: in a launch of their own, in a cluster.
constexpr double kSplitMicroseconds = 0.7, kSplitBytesPerMicrosecond = 2.4e6;
constexpr double kClusterMicroseconds = 0.9, kClusterBytesPerMicrosecond = 2.7e6;
// Clocks: of a block until its first panel is there; of its end, by itself and for each of its sums; of each sum of a
// thread, and of each element that it reads for it; of an access.
constexpr double kStartClocks = 1330, kEndClocks = 440, kEndSumClocks = 0.25, kSumClocks = 35, kOperandClocks = 72;
constexpr double kAccessClocks = 690, kWarpgroupAccessClocks = 310;

// Multiplications and additions per clock of a multiprocessor, and of a warp alone.
struct Rate {
  double all, warp;
};
Rate rate(const Tile& tile, DType dtype) {
  if (tile.unit == Tile::scalar) return dtype == DType::f64 ? Rate{50, 12} : Rate{110, 28};
  if (tile.unit == Tile::warpgroup) return {3100, 582};
  return dtype == DType::i8 ? Rate{2280, 544} : dtype == DType::f32 ? Rate{570, 136} : Rate{1140, 272};
}

// Rows of both panels that all warps together read from shared memory.
double rows_read(const Tile& tile) {
  const auto m = static_cast<double>(tile.warp_m), n = static_cast<double>(tile.warp_n);
  const int64_t of_slice = threads(tile) / tile.slices;  // threads that read all of K
  const double warps = static_cast<double>(of_slice) / 32;
  // Scalar code reads 16 bytes for each row and column of a thread; half of the accesses are broadcasts.
  if (tile.unit == Tile::scalar) return warps * (2 * m + n) * 3;
  return tile.unit == Tile::warpgroup ? warps / 4 * (4 * m + n) : warps * (m + n);
}

// Clocks that a panel keeps a multiprocessor busy: the slowest of multiplying, of shared memory and of filling it.
double panel_clocks(const Tile& tile, const Extent& e) {
  constexpr double kSharedBytesPerClock = 116, kFilledBytesPerClock = 41;
  constexpr double kGatherClocks = 12.0 / 128;  // of each element that is gathered
  const Rate speed = rate(tile, e.dtype);
  const auto k_bytes = static_cast<double>(tile.k * static_cast<int64_t>(size_of(e.dtype)));
  const double multiply = static_cast<double>(tile.m * tile.n * tile.k) / speed.all;
  const int64_t warp_k = tile.k / tile.slices;
  const double of_warp = static_cast<double>(tile.warp_m * tile.warp_n * warp_k) / speed.warp;
  const double filled = static_cast<double>(tile.m + tile.n) * k_bytes;
  const double shared = (rows_read(tile) * k_bytes + filled) / kSharedBytesPerClock;
  const double gather = e.gathered ? static_cast<double>(tile.m * tile.k) * kGatherClocks : 0;
  return std::max({multiply, of_warp, shared, filled / kFilledBytesPerClock, gather});
}

// Of a block that waits for memory between panels, and at both ends, with no other beside it.
double clocks_alone(const Tile& tile, const Extent& e, double panels, double panel) {
  const double ahead = static_cast<double>(tile.stages - 1);
  const double wait = tile.unit == Tile::warpgroup ? kWarpgroupAccessClocks / (ahead - 1) : kAccessClocks / ahead;
  const double sums = static_cast<double>(tile.m * tile.n) / static_cast<double>(threads(tile));
  return kStartClocks + panels * std::max(0.8 * panel, wait) +
         sums * (kSumClocks + kOperandClocks * static_cast<double>(e.operands));
}

double clocks(const Tile& tile, const Extent& e) {
  const auto panels = static_cast<double>(ceil_div(ceil_div(e.k, tile.k), tile.splits));
  const bool scattered = tile.cluster && tile.splits > 2;
  const int64_t each = ceil_div(blocks(tile, e), scattered ? kClusterMultiprocessors : kMultiprocessors);
  const int64_t resident = std::min({kSharedPerMultiprocessor / shared_bytes(tile, e.dtype),
                                     kRegistersPerMultiprocessor / (registers(tile, e.dtype) * threads(tile)),
                                     kThreadsPerMultiprocessor / threads(tile)});
  const double panel = panel_clocks(tile, e);
  const double busy = panel * panels + kEndClocks + kEndSumClocks * static_cast<double>(tile.m * tile.n);
  return std::max(
      static_cast<double>(each) * busy,
      static_cast<double>(ceil_div(each, std::max<int64_t>(resident, 1))) * clocks_alone(tile, e, panels, panel));
}

}  // namespace

double predict(const Tile& tile, const Extent& e) {
  const auto outputs = static_cast<double>(e.m * e.n * e.batch);
  const int64_t rows = e.m / e.taps + e.n;  // that are read
  const double bytes = static_cast<double>(rows * e.k * e.batch) * static_cast<double>(size_of(e.dtype)) +
                       outputs * static_cast<double>(size_of(e.output));
  const double memory = bytes / (bytes > kCacheBytes ? kMemoryBytesPerMicrosecond : kCacheBytesPerMicrosecond);
  const double time = std::max(clocks(tile, e) / kClocksPerMicrosecond, memory) + kLaunchMicroseconds;
  if (tile.splits == 1) return time;
  const double moved = outputs * static_cast<double>(accumulator_size(e.dtype));
  const auto splits = static_cast<double>(tile.splits);
  return tile.cluster ? time + kClusterMicroseconds + moved * (splits - 1) / kClusterBytesPerMicrosecond
                      : time + kSplitMicroseconds + moved * (splits + 1) / kSplitBytesPerMicrosecond;
}

int64_t registers(const Tile& tile, DType dtype) {
  if (tile.unit == Tile::warpgroup) return tile.warp_m * tile.warp_n / 32 + 64;  // operands stay in shared memory
  const auto words = static_cast<int64_t>(std::max<size_t>(accumulator_size(dtype), 4) / 4);
  const int64_t fragments =
      tile.unit == Tile::scalar ? (tile.warp_m / 4 + tile.warp_n / 8) * 4 : 2 * (tile.warp_m + tile.warp_n) / 4;
  return tile.warp_m * tile.warp_n / 32 * words + fragments + (words == 2 ? 72 : 48);
}

int64_t blocks(const Tile& tile, const Extent& e) {
  return ceil_div(e.m, tile.m) * ceil_div(e.n, tile.n) * tile.splits * e.batch;
}

bool fits_registers(const Tile& tile, DType dtype) {
  const int64_t count = registers(tile, dtype);
  return count <= 255 && count * threads(tile) <= kRegistersPerMultiprocessor;
}

}  // namespace lathe::cuda::gemm
