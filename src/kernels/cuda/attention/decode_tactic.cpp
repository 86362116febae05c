// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/decode_tactic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/divide.h"
#include "kernels/cuda/attention/logits.h"
#include "kernels/match_tactic.h"

namespace lathe::cuda::decode {
namespace {

constexpr int64_t kKeys = 16;   // that a warp takes at a time
constexpr double kLow = -1e30;  // numbers of masks up to this hide a key: no product of f16 comes near it

// As decode.cuh pads the sizes of keys and values.
int64_t element_bytes(const Problem& problem) { return static_cast<int64_t>(size_of(problem.inputs[0].dtype)); }
int64_t key_size(const Problem& problem) {
  return round_up(*problem.inputs[0].dims[3].as_constant(), 64 / element_bytes(problem));
}
int64_t value_size(const Problem& problem) {
  return round_up(*problem.inputs[2].dims[3].as_constant(), 128 / element_bytes(problem));
}

int64_t shared_bytes(const Problem& problem, const Blocks& blocks) {
  return (blocks.warps + blocks.splits) * 8 * blocks.row_tiles * (value_size(problem) + 2) * 4 +
         8;  // exchange.cuh's barrier
}

int64_t widest_bytes(const Problem& problem) {
  return std::max(key_size(problem), value_size(problem)) * element_bytes(problem);
}
constexpr int64_t kMostBytes = 512;  // of a row, times the tiles of rows, that registers hold

int64_t rows_of(const Problem& problem) {
  const Dims &q = problem.inputs[0].opt_dims, &k = problem.inputs[1].opt_dims;
  return std::max<int64_t>(q[2] * (q[1] / k[1]), 1);
}

// The fewest that hold the rows, as far as registers reach.
int64_t row_tiles_of(const Problem& problem, int64_t rows) {
  int64_t tiles = 1;
  while (tiles < 4 && 8 * tiles < rows && 2 * tiles * widest_bytes(problem) <= kMostBytes) tiles *= 2;
  return tiles;
}

// By all queries together, in whole steps.
int64_t seen_keys(const Problem& problem) {
  const int64_t queries = std::max<int64_t>(problem.inputs[0].opt_dims[2], 1);
  return std::llround(kKeys * seen_tiles(problem, queries, kKeys).most);
}

double predicted_us(const Problem& problem, const Blocks& blocks, int64_t rows) {
  constexpr double kStartClocks = 1200, kStepClocks = 1100, kMergeClocks = 400, kClusterClocks = 1500;
  constexpr double kMemoryShare = 0.85, kBytesInFlight = 32 * 1024;  // that keep memory busy, of each multiprocessor
  const Target& target = problem.target;
  const Dims& k = problem.inputs[1].opt_dims;
  const auto tiles = static_cast<double>(k[0] * k[1] * ceil_div(rows, 8 * blocks.row_tiles));
  const auto keys = static_cast<double>(seen_keys(problem)), warps = static_cast<double>(blocks.warps);
  const auto splits = static_cast<double>(blocks.splits);
  const auto bytes_of = [&](size_t input) { return static_cast<int64_t>(size_of(problem.inputs[input].dtype)); };
  const auto key_bytes = static_cast<double>(bytes_of(1) * key_size(problem) + bytes_of(2) * value_size(problem));
  const double resident = std::max(1.0, std::floor(16 / warps)), each = tiles * splits / target.cores;
  const double steps = std::ceil(keys / (kKeys * warps * splits)) * std::max(1.0, std::ceil(each / resident));
  const double clocks = kStartClocks + steps * kStepClocks + (blocks.splits > 1 ? kClusterClocks : kMergeClocks);
  const double flight = std::min(each, resident) * warps * kKeys * key_bytes;
  const double memory =
      tiles * keys * key_bytes / (kMemoryShare * target.memory_rate * std::min(1.0, flight / kBytesInFlight));
  return target.launch_us + std::max(clocks / target.clock_mhz, memory);
}

std::string literal(double value) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  return fmt::format("{:a}f", static_cast<float>(std::max(value, kLowest)));
}

// What a mask hides a key by, and from where on that may have weight: decode.cuh's kRechecks and Skipping.
struct Hiding {
  bool rechecks = false;
  std::string text = "{-infinity(), -infinity()}";
};
Hiding hiding_of(const Problem& problem) {
  constexpr double kVanishes = 256;  // 2 ** -256 is nothing in f32
  const auto& attrs = problem.attrs<AttentionAttrs>();
  if (!problem.has_input(attention_input::kMask)) return {};
  if (problem.inputs[attention_input::kMask].dtype == DType::boolean) {
    if (std::isinf(attrs.hidden)) return {};
    return {true, fmt::format("{{-infinity(), {}}}", literal(attrs.hidden * std::numbers::log2e + kVanishes))};
  }
  const bool is_bounded = problem.inputs[0].dtype == DType::f16 && std::abs(attrs.scale) < 1e6;
  if (!is_bounded) return {};
  return {true, fmt::format("{{{}, {}}}", literal(kLow), literal(kLow / 10))};
}

}  // namespace

bool takes(const Problem& problem) {
  constexpr int64_t kMostTiles = 2;  // of rows: for each, keys and values are read anew
  if (problem.inputs[1].opt_dims[1] == 0 || widest_bytes(problem) > kMostBytes) return false;
  const int64_t rows = rows_of(problem);
  return ceil_div(rows, 8 * row_tiles_of(problem, rows)) <= kMostTiles;
}

void add_configs(const Problem& problem, std::vector<Config>& configs) {
  if (!takes(problem)) return;
  const Dims& k = problem.inputs[1].opt_dims;
  const int64_t rows = rows_of(problem), row_tiles = row_tiles_of(problem, rows);
  const int64_t tiles = ceil_div(rows, 8 * row_tiles), keys = seen_keys(problem);
  for (const int64_t warps : {4, 8, 16})
    for (const int64_t splits : {1, 2, 4, 8}) {
      const Blocks blocks{warps, row_tiles, splits};
      const bool is_worth_splitting =
          k[0] * k[1] * tiles * splits <= 4 * problem.target.cores && 2 * keys > splits * warps * kKeys;
      if (splits > 1 && (splits > problem.target.limits.cluster || !is_worth_splitting)) continue;
      if (warps > 4 && keys <= warps * kKeys / 2) continue;
      if (warps > 8 && (row_tiles * value_size(problem) + key_size(problem)) * element_bytes(problem) > 256)
        continue;  // registers
      if (shared_bytes(problem, blocks) > problem.target.limits.shared_bytes) continue;
      configs.push_back({.text = fmt::format("{} rows x keys, {} warps{}", 8 * row_tiles, warps,
                                             splits > 1 ? fmt::format(" cluster={}", splits) : ""),
                         .predicted_us = predicted_us(problem, blocks, rows),
                         .choice = blocks});
    }
}

SourceLaunch launch(Source& source, const Problem& problem, const Blocks& blocks, const std::string& operands,
                    const std::string& objects) {
  const lathe::Shape &q = problem.inputs[0].dims, &k = problem.inputs[1].dims;
  const Hiding hiding = hiding_of(problem);
  const std::string call = fmt::format("{}decode::attend<{}, {}, {}, {}, {}, {}>({}, fusion_, decode::Skipping{});",
                                       objects, key_size(problem), value_size(problem), blocks.warps, blocks.row_tiles,
                                       blocks.splits, hiding.rechecks, operands, hiding.text);
  const Expr rows = q[2] * floordiv(q[1], k[1]);
  SourceLaunch launch =
      source.finish(call, {k[0] * k[1] * ceildiv(rows, 8 * blocks.row_tiles) * blocks.splits, 1, 1},
                    static_cast<uint32_t>(blocks.warps * 32), static_cast<uint32_t>(shared_bytes(problem, blocks)));
  if (blocks.splits > 1) launch.launch.cluster = static_cast<uint32_t>(blocks.splits);
  return launch;
}

}  // namespace lathe::cuda::decode
