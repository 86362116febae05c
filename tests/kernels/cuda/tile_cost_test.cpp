// SPDX-License-Identifier: Apache-2.0
// What the cost model expects of tiles of products beside what was measured on a H200: bench/results says where.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/cuda/architecture.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/match_tactic.h"

namespace lathe::cuda::gemm {
namespace {

// Of a pipeline without splits, in float16.
struct Measured {
  int64_t m, n, peers;
  bool turns;
  double us;
};
struct Measurements {
  std::string_view name;
  int64_t rows, columns, k, operands, functions;
  std::vector<Measured> tiles;  // the fastest first
};

// From 2026-11-30-power-cuda.md, 2026-11-30-deferred-norms-cuda.md, 2026-11-30-rows-cuda.md, 2026-11-27-cuda-2.md,
// 2026-11-30-networks-cuda.md.
const std::vector<Measurements> kMeasured = {
    {"BERT-base, out",
     4096,
     768,
     768,
     1,
     0,
     {{128, 192, 1, false, 9.5}, {128, 192, 2, false, 10.7}, {64, 192, 2, true, 11.3}}},
    {"BERT-base, down",
     4096,
     768,
     3072,
     1,
     0,
     {{128, 192, 1, false, 29.2}, {128, 192, 2, false, 30.1}, {64, 192, 2, true, 33.5}}},
    {"BERT-base, up",
     4096,
     3072,
     768,
     0,
     1,
     {{64, 256, 2, true, 36.4},
      {128, 128, 1, true, 36.5},
      {128, 192, 2, false, 36.8},
      {128, 256, 2, false, 37.3},
      {64, 192, 2, true, 38.1}}},
    {"BERT-base, queries, keys and values",
     4096,
     2304,
     768,
     0,
     0,
     {{128, 192, 1, false, 24.4}, {128, 192, 2, false, 25.1}, {128, 128, 2, true, 25.2}}},
    {"128 rows, queries, keys and values",
     128,
     2304,
     768,
     0,
     0,
     {{64, 64, 1, false, 3.8}, {128, 64, 1, false, 4.2}, {64, 128, 1, false, 4.2}}},
    {"128 rows, up",
     128,
     3072,
     768,
     0,
     1,
     {{64, 64, 1, false, 4.6}, {128, 64, 1, false, 5.0}, {64, 128, 1, false, 5.1}}},
    {"197 rows, queries, keys and values",
     197,
     2304,
     768,
     0,
     0,
     {{64, 128, 1, false, 4.6}, {128, 64, 1, false, 4.7}, {64, 64, 1, false, 5.9}}},
    {"197 rows, up",
     197,
     3072,
     768,
     0,
     1,
     {{128, 64, 1, false, 5.6}, {64, 128, 1, false, 5.7}, {64, 64, 1, false, 6.9}}},
    {"ViT-B, up", 6304, 3072, 768, 0, 1, {{64, 256, 2, true, 54}}},
    {"ViT-B, down", 6304, 768, 3072, 1, 0, {{128, 160, 2, true, 51}}},
    {"ViT-B, queries, keys and values", 6304, 2304, 768, 0, 0, {{64, 256, 2, true, 36}}},
    {"BERT-large, up with a bias", 12288, 4096, 1024, 0, 0, {{128, 160, 2, true, 149.5}}},
    {"BERT-large, down", 12288, 1024, 4096, 1, 0, {{128, 256, 2, false, 147}}},
};

std::vector<Config> configs_of(const Measurements& product) {
  Extent extent;
  extent.dtype = extent.output = DType::f16;
  extent.target = lathe::cuda::describe(**find_architecture(90));
  extent.copied = extent.weights_first = true, extent.neighbours = 8;
  extent.m = product.rows, extent.n = product.columns, extent.k = product.k;
  extent.operands = product.operands, extent.functions = product.functions;
  extent.instructions = product.operands + product.functions + 1;
  return best_first(every_config(extent), SIZE_MAX);
}

size_t rank_of(const std::vector<Config>& configs, const Measured& tile) {
  const auto found = std::ranges::find_if(configs, [&](const Config& config) {
    const auto& t = config.as<TileShape>();
    return t.unit == TileShape::pipeline && t.m == tile.m && t.n == tile.n && t.peers == tile.peers &&
           t.turns == tile.turns && t.splits == 1;
  });
  return static_cast<size_t>(found - configs.begin());
}

TEST(TileCost, ExpectsWhatWasMeasured) {
  for (const Measurements& product : kMeasured) {
    const std::vector<Config> configs = configs_of(product);
    for (const Measured& tile : product.tiles) {
      const size_t rank = rank_of(configs, tile);
      ASSERT_LT(rank, configs.size()) << product.name;
      const double expected = configs[rank].predicted_us;
      EXPECT_NEAR(expected / tile.us, 1, 0.3) << product.name << ", " << configs[rank].text << ": " << expected;
    }
  }
}

// A build without a device takes the first, one with a device measures the first few.
TEST(TileCost, TheFastestIsAmongTheFirst) {
  for (const Measurements& product : kMeasured) {
    const std::vector<Config> configs = configs_of(product);
    const size_t rank = rank_of(configs, product.tiles[0]);
    ASSERT_LT(rank, configs.size()) << product.name;
    EXPECT_LT(rank, 8u) << product.name;  // which are measured
    EXPECT_LT(configs[rank].predicted_us, 1.08 * configs[0].predicted_us) << product.name << ", " << configs[0].text;
  }
}

// Weights that are brought ahead of the wait are as much of them as the ring holds, and constant.
TEST(TileCost, ComputedFactorsComeWithTheWait) {
  Extent extent;
  extent.dtype = extent.output = DType::f16;
  extent.target = lathe::cuda::describe(**find_architecture(90));
  extent.copied = true;
  extent.m = 128, extent.n = 2304, extent.k = 768;
  const auto first_of = [&](bool weights_first) {
    extent.weights_first = weights_first;
    const std::vector<Config> configs = every_config(extent);
    const auto found = std::ranges::find_if(configs, [](const Config& config) {
      const auto& t = config.as<TileShape>();
      return t.unit == TileShape::pipeline && t.m == 64 && t.n == 64;
    });
    EXPECT_NE(found, configs.end());
    return found == configs.end() ? 0 : found->predicted_us;
  };
  const double computed = first_of(false), constant = first_of(true);
  EXPECT_LT(constant, computed);
  // Of twelve panels, all that K has, of 64 columns by 128 bytes, at half the speed of the last cache.
  const double ring_us = 12.0 * 64 * 128 / (0.5 * extent.target.cache_clock_bytes * extent.target.clock_mhz);
  EXPECT_GT(constant, computed - ring_us);
}

}  // namespace
}  // namespace lathe::cuda::gemm
