// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/tile_cost_tactic.h"

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "kernels/cpu/gemm/split_floats.h"
#include "kernels/cpu/target.h"

namespace lathe::cpu::gemm {
namespace {

constexpr double kLoads = 2;           // vectors that a core loads in a clock
constexpr double kLeastStep = 6.8;     // clocks: a tile of few sums waits for the last multiplication
constexpr double kTapClocks = 32;      // of a tile, for each tap
constexpr double kMemoryShare = 0.89;  // of the memory's rate, that is reached
constexpr double kCacheShare = 0.58;   // of the second cache, that weights stay in
// Of what is read from memory, what is not fetched while the core multiplies.
constexpr double kWeightsWait = 0.73, kInputWait = 0.19;
// Cores mostly find in their own caches the rows that they wrote in the step before; columns need those of others, too.
constexpr double kOthersWait = 0.6;
constexpr double kBlockedWeights = 1.5;  // weights are fetched ahead less well when K is cut

const Processor& processor_of(const Target& target) {
  const Processor* known = find_processor(target.name);
  return known ? *known : own_processor();
}

// One thread's rows of a launch, as they are cut into blocks for which all panels are done: blocks of equal size, and
// the rest.
struct RowBlocks {
  int64_t count, rows, rest;
};
RowBlocks blocks_of(int64_t rows, int64_t block) {
  if (block == 0 || block == kTileByTile || block >= rows) return {1, rows, 0};
  return {rows / block, block, rows % block};
}

class ProductCost {
 public:
  ProductCost(const Target& target, const TiledProduct& product)
      : p_(product),
        core_(target, product.is_narrow),
        split_(product.rows, product.panels, product.blocking.split_columns, target.cores) {
    const int64_t k = p_.panels.k, panels = p_.groups * p_.panels.count();
    cores_ = core_.cores(static_cast<double>(p_.rows * k) * static_cast<double>(p_.panels.n * p_.groups));
    if (p_.blocking.split_columns) {
      panels_ = ceil_div<int64_t>(panels, cores_);
      rows_ = p_.rows;
    } else {
      const int64_t unit = std::max<int64_t>(p_.row_unit, 1);
      panels_ = panels;
      rows_ = std::min(ceil_div<int64_t>(ceil_div(p_.rows, unit), cores_) * unit, p_.rows);
    }
    k_blocks_ = p_.blocking.k_block > 0 ? ceil_div(k, p_.blocking.k_block) : 1;
  }

  double us() const {
    // Panels of a group are as wide as the first, but for the last.
    const int64_t of_group = p_.panels.count();
    const int64_t last = of_group > 1 ? panels_ / of_group : 0, first = panels_ - last;
    const RowBlocks blocks = blocks_of(rows_, p_.blocking.row_block);
    double clocks = 0, weights = 0;
    for (const auto& [count, panel] : {std::pair{first, int64_t{0}}, std::pair{last, of_group - 1}}) {
      const auto times = static_cast<double>(count);
      clocks += times * (static_cast<double>(blocks.count) * panel_clocks(blocks.rows, panel) +
                         panel_clocks(blocks.rest, panel));
      weights += times * static_cast<double>(p_.panels.k * p_.panels.stride(panel) * p_.element_size);
    }
    // Each block of rows reads weights anew that the cache does not hold.
    if (!core_.stays_in_cache(weights)) weights *= static_cast<double>(blocks.count + (blocks.rest > 0 ? 1 : 0));
    if (k_blocks_ > 1) weights *= kBlockedWeights;
    if (is_split()) clocks = split_clocks(split_.rows, split_.columns, p_.panels.k);
    const double input =
        p_.input_bytes * static_cast<double>(rows_) / static_cast<double>(std::max<int64_t>(p_.rows, 1));
    const double of_others = p_.blocking.split_columns ? input * (1 - 1.0 / cores_) : 0;
    return core_.launch_us(clocks + kOthersWait * core_.memory(of_others), weights, input);
  }

 private:
  double panel_clocks(int64_t rows, int64_t panel) const {
    double clocks = 0;
    const int columns = p_.panels.columns(panel);
    for (int c = 0; rows > 0 && c < columns; c += core_.columns())
      clocks += tiles_clocks(rows, ceil_div(std::min(core_.columns(), columns - c), core_.lanes()));
    return clocks;
  }

  // Of the tiles of some rows, that are so many vectors wide.
  double tiles_clocks(int64_t rows, int vectors) const {
    const int64_t unit = p_.row_unit > 0 ? std::min(p_.row_unit, rows) : rows;
    const int64_t of_unit = ceil_div<int64_t>(unit, core_.most_rows(vectors));
    const auto tiles = static_cast<double>(of_unit * ceil_div(rows, unit)), k_blocks = static_cast<double>(k_blocks_);
    const double depth = static_cast<double>(p_.panels.k) * p_.inside;
    const double taps = p_.taps > 1 ? kTapClocks * static_cast<double>(p_.taps) : 0;
    const double step = core_.step(vectors, static_cast<double>(unit) / static_cast<double>(of_unit));
    return tiles * (depth * step + k_blocks * (kTileClocks + taps)) +
           static_cast<double>(rows * vectors) * (kEndClocks + (k_blocks - 1) * kPartialClocks);
  }

  bool is_split() const {
    return p_.may_split && core_.has_matrix_registers() && p_.groups == 1 && split_.pays(p_.panels.k);
  }

  const TiledProduct& p_;
  const TileCost core_;
  const SplitShare split_;
  int cores_ = 1;
  int64_t rows_ = 0, panels_ = 0;  // of the busiest core
  int64_t k_blocks_ = 1;
};

}  // namespace

TileCost::TileCost(const Target& target, bool is_narrow)
    : target_(target), in_matrix_registers_(is_narrow && target.products.matrix > 0) {
  const Processor& processor = processor_of(target);
  const bool many_registers = processor.level == IsaLevel::avx512 || processor.target.starts_with("cpu-arm64");
  lanes_ = static_cast<int>(processor.lanes);
  vectors_ = many_registers && !in_matrix_registers_ ? kMaxTileVectors : 2;
  rows_ = in_matrix_registers_ ? kMatrixTileRows : kTileRows[many_registers ? 1 : 0];
}

double TileCost::step(int vectors, double rows) const {
  if (in_matrix_registers_) {  // of 16 rows and columns, whole ones; one is loaded in half the time of a product
    const double registers = std::ceil(rows / kMatrixRegisterRows);
    return std::max(registers * vectors, (registers + vectors) / 2) * kMatrixRegisterRows * kMatrixRegisterRows /
           (target_.products.matrix / 2);
  }
  const double in_a_clock = target_.products.f32 / lanes_;
  const auto clocks = [&](double r) {
    return std::max({r * vectors / in_a_clock, (r + vectors) / kLoads, kLeastStep});
  };
  const double whole = std::floor(rows);  // some tiles have one more
  return clocks(whole) + (rows - whole) * (clocks(whole + 1) - clocks(whole));
}

double TileCost::memory(double bytes) const {
  return bytes * target_.cores * target_.clock_mhz / (kMemoryShare * target_.memory_rate);
}

bool TileCost::stays_in_cache(double bytes) const { return bytes <= kCacheShare * target_.cache_bytes; }

double TileCost::launch_us(double clocks, double weights, double input) const {
  const double fetched = memory(weights);
  const double busy = std::max(clocks + kWeightsWait * fetched + kInputWait * memory(input), fetched);
  return target_.launch_us + busy / target_.clock_mhz;
}

double predicted_us(const Target& target, const TiledProduct& product) { return ProductCost(target, product).us(); }

}  // namespace lathe::cpu::gemm
