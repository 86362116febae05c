// SPDX-License-Identifier: Apache-2.0
// The constants are shares of what the target says of a device, so that they carry over to others; that some are above
// 1 is because they make up for what the model leaves out. They were fitted to 3,200 measured times of 68 products and
// convolutions in float16 on one H200. Among the first eight by the prediction is the best of each, or one that is 0.2
// % slower on average; predictions are within 13 % of each other's proportion mostly.
#include "kernels/cuda/gemm/tile_cost_tactic.h"

#include <algorithm>

#include "base/divide.h"

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kRegistersPerMultiprocessor = 65536;  // of every architecture
constexpr double kMemoryShare = 0.875, kCacheShare = 0.696;
// Of that, what tiles get that few rows do not fill, beside the streams of gemv/stream.cuh: measured, one row by 117
// and 235 MB of weights, 3.3 and 3.9 TB/s where streams have 4.3 and 4.4.
constexpr double kFewRowsShare = 0.85;
constexpr int64_t kFewRows = 16;
constexpr double kCached = 0.8;       // of the cache, that stays there
constexpr double kLaunchShare = 0.4;  // of a launch, which overlaps with the step before
// What it takes to add up splits: in a launch of their own, in a cluster.
constexpr double kSplitMicroseconds = 0.7, kSplitShare = 0.5;
constexpr double kClusterMicroseconds = 0.9, kClusterShare = 0.5625;
// Of a launch that reads results to normalise them, by 512 rows of 768.
constexpr double kNormalizedMicroseconds = 2.8;
// Clocks: of a block until its first panel is there; of its end, by itself and for each of its sums; of each sum of a
// thread, and of each element that it reads for it; of an access.
constexpr double kStartClocks = 1330, kEndClocks = 440, kEndSumClocks = 0.25, kSumClocks = 35, kOperandClocks = 72;
// Of each function of a sum, by GELUs of 16 bits behind products of 12,288, 6304 and 4096 rows.
constexpr double kEndFunctionClocks = 0.13, kFunctionClocks = 53;
constexpr double kAccessClocks = 690, kWarpgroupAccessClocks = 310;

// Multiplications and additions per clock of a multiprocessor, and of a warp alone.
struct Rate {
  double all, warp;
};
// As warps alone, types of fewer bits have more.
double warpgroup_products(DType dtype, const Target& target) {
  return target.products.warpgroup_matrix * target.matrix_products(dtype) / target.products.matrix;
}
Rate rate(const TileShape& tile, DType dtype, const Target& target) {
  const auto share = [](double products, double all, double warp) { return Rate{products * all, products * warp}; };
  if (tile.unit == TileShape::warpgroup) return share(warpgroup_products(dtype, target), 1.514, 0.2842);
  if (tile.unit == TileShape::tensor_core) return share(target.matrix_products(dtype), 1.113, 0.2656);
  if (tile.unit == TileShape::sparse) return share(2 * target.matrix_products(dtype), 1.113, 0.2656);
  return dtype == DType::f64 ? share(target.products.f64, 0.78, 0.1875) : share(target.products.f32, 0.86, 0.21875);
}

// Clusters of more than two blocks find no room where a group of multiprocessors is not complete.
int64_t multiprocessors_for(const TileShape& tile, const Target& target) {
  return tile.cluster && tile.splits > 2 ? target.cores * 8 / 9 : target.cores;
}

// Of the elements of B, as bytes: what is stored of them.
double stored_share(const TileShape& tile, DType dtype) {
  return static_cast<double>(b_bytes(tile, dtype)) /
         static_cast<double>(tile.n * tile.k * static_cast<int64_t>(size_of(dtype)));
}

// Rows of both panels that all warps together read from shared memory.
double rows_read(const TileShape& tile, DType dtype) {
  const auto m = static_cast<double>(tile.warp_m), n = static_cast<double>(tile.warp_n) * stored_share(tile, dtype);
  const int64_t of_slice = threads(tile) / tile.slices;  // threads that read all of K
  const double warps = static_cast<double>(of_slice) / 32;
  // Scalar code reads 16 bytes for each row and column of a thread; half of the accesses are broadcasts.
  if (tile.unit == TileShape::scalar) return warps * (2 * m + n) * 3;
  return tile.unit == TileShape::warpgroup ? warps / 4 * (4 * m + n) : warps * (m + n);
}

// Clocks that a panel keeps a multiprocessor busy: the slowest of multiplying, of shared memory and of filling it.
double panel_clocks(const TileShape& tile, const Extent& e) {
  constexpr double kSharedShare = 0.906, kFilledShare = 0.64;  // of what a multiprocessor reads in a clock
  constexpr double kGatherClocks = 12.0 / 128;                 // of each element that is gathered
  const Rate speed = rate(tile, e.dtype, e.target);
  const auto k_bytes = static_cast<double>(tile.k * static_cast<int64_t>(size_of(e.dtype)));
  const double multiply = static_cast<double>(tile.m * tile.n * tile.k) / speed.all;
  const int64_t warp_k = tile.k / tile.slices;
  const double of_warp = static_cast<double>(tile.warp_m * tile.warp_n * warp_k) / speed.warp;
  const auto filled = static_cast<double>(a_bytes(tile, e.dtype) + b_bytes(tile, e.dtype));
  const double shared = (rows_read(tile, e.dtype) * k_bytes + filled) / (kSharedShare * e.target.shared_clock_bytes);
  const double gather = e.gathered ? static_cast<double>(tile.m * tile.k) * kGatherClocks : 0;
  return std::max({multiply, of_warp, shared, filled / (kFilledShare * e.target.cache_clock_bytes), gather});
}

// Of a block that waits for memory between panels, and at both ends, with no other beside it.
double clocks_alone(const TileShape& tile, const Extent& e, double panels, double panel) {
  const double ahead = static_cast<double>(tile.stages - 1);
  const double wait = tile.unit == TileShape::warpgroup ? kWarpgroupAccessClocks / (ahead - 1) : kAccessClocks / ahead;
  const double sums = static_cast<double>(tile.m * tile.n) / static_cast<double>(threads(tile));
  return kStartClocks + panels * std::max(0.8 * panel, wait) +
         sums * (kSumClocks + kOperandClocks * static_cast<double>(e.operands) +
                 kFunctionClocks * static_cast<double>(e.functions));
}

double clocks(const TileShape& tile, const Extent& e) {
  const auto panels = static_cast<double>(ceil_div(ceil_div(e.k, tile.k), tile.splits));
  const int64_t each = ceil_div(blocks(tile, e), std::max<int64_t>(multiprocessors_for(tile, e.target), 1));
  const int64_t resident = std::min({e.target.limits.core_shared_bytes / shared_bytes(tile, e.dtype),
                                     kRegistersPerMultiprocessor / (registers(tile, e) * threads(tile)),
                                     e.target.limits.core_threads / threads(tile)});
  const double panel = panel_clocks(tile, e);
  const double end = kEndSumClocks + kEndFunctionClocks * static_cast<double>(e.functions);
  const double busy = panel * panels + kEndClocks + end * static_cast<double>(tile.m * tile.n);
  return std::max(
      static_cast<double>(each) * busy,
      static_cast<double>(ceil_div(each, std::max<int64_t>(resident, 1))) * clocks_alone(tile, e, panels, panel));
}

// Of a launch whose blocks stay, one on each multiprocessor: those of a cluster take tiles in turn. Fitted on a H100;
// what is of panels that are summed up apart, on a H200.
double pipeline_clocks(const TileShape& tile, const Extent& e) {
  constexpr double kApartShare = 0.72, kBehindShare = 0.5;  // of products, of a tile's end behind the next one's begin
  constexpr double kSumClocks = 25, kOperandClocks = 30, kClusterClocks = 1500;
  // Fitted on a H200 (tests/kernels/cuda/tile_cost_test.cpp). Groups that take turns finish while the other multiplies.
  constexpr double kProductShare = 0.88, kFilledShare = 0.76, kSharedShare = 0.94, kNeighbourFunctionClocks = 25;
  constexpr double kTurnSumClocks = 45, kTurnFunctionClocks = 35;
  const auto k_bytes = static_cast<double>(tile.k * static_cast<int64_t>(size_of(e.dtype)));
  const double products =
      warpgroup_products(e.dtype, e.target) * (is_factor_float8(e.dtype) ? kApartShare : kProductShare);
  const double row = k_bytes / (kFilledShare * e.target.cache_clock_bytes);  // of an operand, to bring it
  const double rows_a = static_cast<double>(tile.m) * row,
               rows_b = static_cast<double>(tile.n) / static_cast<double>(tile.peers) * row;
  const double product = static_cast<double>(tile.m * tile.n * tile.k) / products;
  // Each group of four warps reads its 64 rows and all columns, which have been written before.
  const int64_t rows_read = tile.m / 64 * (64 + tile.n), rows_written = tile.m + tile.n;
  const double shared =
      static_cast<double>(rows_read + rows_written) * k_bytes / (kSharedShare * e.target.shared_clock_bytes);
  const double busy = std::max(product, shared), panel = std::max(busy, rows_a + rows_b);
  const auto panels = static_cast<double>(ceil_div(ceil_div(e.k, tile.k), tile.splits));
  // As many of a block's first panels of weights as the ring holds are there when the launch before has ended.
  const double ahead = e.weights_first ? std::min(panels, static_cast<double>(tile.stages)) : 0;
  const double saved = panels * panel - std::max(panels * busy, panels * panel - ahead * rows_b);
  const double sums = static_cast<double>(tile.warp_m * tile.warp_n) / 32;
  const double function = tile.neighbours == 0 ? kFunctionClocks
                          : tile.turns         ? kTurnFunctionClocks
                                               : kNeighbourFunctionClocks;
  const double finish =
      sums * ((tile.turns ? kTurnSumClocks : kSumClocks) + kOperandClocks * static_cast<double>(e.operands) +
              function * static_cast<double>(e.functions));
  const auto clusters = static_cast<int64_t>(e.target.cores) / tile.peers;
  const int64_t works = ceil_div(gemm::works(tile, e), std::max<int64_t>(clusters, 1));
  const auto each = static_cast<double>(works);
  const double start = kStartClocks + (tile.peers > 1 ? kClusterClocks : 0) - saved, multiply = panels * panel;
  if (runs_ahead(tile, e)) return start + each * multiply + (1 + (each - 1) * kBehindShare) * finish;
  if (!tile.turns) return start + each * (multiply + finish);
  // The second group begins when the first has multiplied a tile; the slower of the matrix units and of a group counts.
  const double group = (works % 2 == 0 ? multiply : 0) + static_cast<double>(ceil_div(works, 2)) * (multiply + finish);
  return start + std::max(each * multiply + finish, group);
}

}  // namespace

double memory_us(double bytes, const Target& target) {
  const bool is_cached = bytes <= kCached * target.cache_bytes;
  return bytes / (is_cached ? kCacheShare * target.cache_rate() : kMemoryShare * target.memory_rate);
}

double predict(const TileShape& tile, const Extent& extent) {
  Extent e = extent;
  const auto splits = static_cast<double>(tile.splits), kept = tile.cluster ? 1 : splits;
  const bool keeps_sums = e.kept || kept > 1;
  if (e.normalized && keeps_sums) e.operands = e.functions = 0;  // of the other launch
  const auto outputs = static_cast<double>(e.m * e.n * e.batch);
  const double rows =  // that are read
      static_cast<double>(e.m) / static_cast<double>(e.taps) + static_cast<double>(e.n) * stored_share(tile, e.dtype);
  const double bytes = rows * static_cast<double>(e.k * e.batch) * static_cast<double>(size_of(e.dtype)) +
                       outputs * static_cast<double>(size_of(e.output));
  const Target& target = e.target;
  const double spent = tile.unit == TileShape::pipeline ? pipeline_clocks(tile, e) : clocks(tile, e);
  const double share = e.m <= kFewRows && e.batch == 1 ? kFewRowsShare : 1;
  double time = std::max(spent / target.clock_mhz, memory_us(bytes, target) / share) + kLaunchShare * target.launch_us;
  const double moved = outputs * static_cast<double>(accumulator_size(e.dtype));
  if (tile.cluster) time += kClusterMicroseconds + moved * (splits - 1) / (kClusterShare * target.memory_rate);
  if (keeps_sums) time += kSplitMicroseconds + moved * (kept + 1) / (kSplitShare * target.memory_rate);
  if (e.normalized && !keeps_sums) {
    const double read = outputs * static_cast<double>(size_of(e.output));
    time += kNormalizedMicroseconds + 2 * read / (kSplitShare * target.memory_rate);
  }
  return time;
}

int64_t registers(const TileShape& tile, const Extent& e) {
  const DType dtype = e.dtype;
  if (tile.unit == TileShape::warpgroup) {  // operands stay in shared memory
    const int64_t sums = tile.warp_m * tile.warp_n / 32;
    return (is_factor_float8(dtype) ? 2 * sums : sums) + 64;  // those of a panel are apart (gemm/promotion.cuh)
  }
  if (tile.unit == TileShape::sparse) {  // fragments of two steps, or of one (SparseTile::kAhead)
    const int64_t fragments = tile.warp_m / 2 + tile.warp_n / 16 * 5, sums = tile.warp_m * tile.warp_n / 32;
    return sums + fragments * (sums <= 64 ? 2 : 1) + 48;
  }
  const auto words = static_cast<int64_t>(std::max<size_t>(accumulator_size(dtype), 4) / 4);
  // Of 8-bit floats a Hopper's mma takes as many as if all fragments of a panel were halves: more spills (NVRTC 13.0).
  const bool as_halves = tile.unit == TileShape::tensor_core && is_factor_float8(dtype) && e.target.limits.warpgroups;
  const int64_t fragments = as_halves                        ? (tile.warp_m + tile.warp_n) * (tile.k / tile.slices) / 64
                            : tile.unit == TileShape::scalar ? (tile.warp_m / 4 + tile.warp_n / 8) * 4
                                                             : 2 * (tile.warp_m + tile.warp_n) / 4;
  const int64_t scales = e.scaled_block == 0 ? 0 : tile.warp_m / 8 + (e.scaled_columns ? tile.warp_n / 4 : 2);
  return tile.warp_m * tile.warp_n / 32 * words + fragments + scales + (words == 2 ? 72 : 48);
}

int64_t blocks(const TileShape& tile, const Extent& e) {
  return ceil_div(e.m, tile.m) * ceil_div(e.n, tile.n) * tile.splits * e.batch;
}

bool fits_registers(const TileShape& tile, const Extent& e) {
  const int64_t count = registers(tile, e);
  return count <= 255 && count * threads(tile) <= kRegistersPerMultiprocessor;
}

}  // namespace lathe::cuda::gemm
