// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/tile_tactic.h"

#include <algorithm>
#include <array>

#include "base/divide.h"
#include "kernels/cuda/gemm/tile_cost_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::gemm {
namespace {

constexpr size_t kMaxConfigs = 10;
constexpr int64_t kSlotBarrierBytes = 16, kTurnBytes = 16;  // of a pipeline's memory (gemm/pipeline.cuh)

// K in bytes, so that one list serves all types. Stages at the most.
struct Shape {
  int64_t m, n, k_bytes, warp_m, warp_n, stages;
  int64_t slices = 1;
};

// clang-format off
constexpr auto kTensorCoreShapes = std::to_array<Shape>({
    {128, 256, 64, 64, 64, 4},
    {256, 128, 64, 64, 64, 4},
    {128, 128, 64, 64, 64, 4},
    {128, 128, 128, 64, 32, 3},
    {128, 64, 128, 64, 32, 4},
    {128, 64, 64, 32, 32, 4},
    {64, 128, 128, 32, 64, 4},
    {64, 128, 128, 32, 32, 4},
    {64, 128, 128, 64, 64, 4, 2},
    {64, 64, 128, 32, 32, 5},
    {64, 64, 128, 64, 32, 6, 2},
    {64, 64, 256, 32, 32, 3},
    {64, 64, 256, 64, 32, 3, 2},
    {64, 64, 256, 64, 32, 3, 4},
    {64, 64, 256, 64, 64, 3, 4},
    {128, 32, 128, 32, 32, 4},
    {128, 16, 128, 32, 16, 4},
    {32, 128, 128, 32, 32, 4},
    {32, 128, 128, 32, 64, 4, 2},
    {32, 64, 128, 16, 32, 6},
    {32, 64, 256, 16, 32, 4},
    {32, 64, 256, 32, 64, 4, 4},
    {64, 32, 128, 32, 16, 6},
    {64, 32, 256, 32, 16, 4},
    {64, 32, 256, 64, 32, 4, 4},
    {32, 32, 256, 32, 32, 6, 4},
    {16, 128, 128, 16, 32, 5},
    {16, 128, 128, 16, 64, 5, 2},
    {16, 64, 256, 16, 16, 4},
    {16, 64, 256, 16, 64, 4, 4},
    {16, 32, 256, 16, 32, 6, 4},
});
// clang-format on

// Four warps multiply 64 rows together, 16 of which are a warp's.
// clang-format off
constexpr auto kWarpgroupShapes = std::to_array<Shape>({
    {128, 256, 128, 16, 256, 4},
    {256, 128, 128, 16, 128, 4},
    {128, 128, 128, 16, 128, 3},
    {128, 128, 128, 16, 128, 6},
    {64, 256, 128, 16, 256, 4},
    {128, 64, 128, 16, 64, 4},
    {64, 128, 128, 16, 128, 4},
    {64, 64, 128, 16, 64, 6},
    {128, 32, 128, 16, 32, 5},
    {64, 32, 128, 16, 32, 8},
});
// clang-format on

// Of 64 bytes of K a warp's instruction multiplies 8 rows and 16 columns.
// clang-format off
constexpr auto kSparseShapes = std::to_array<Shape>({
    {256, 128, 128, 64, 64, 4},
    {128, 256, 128, 64, 64, 4},
    {128, 128, 128, 64, 64, 4},
    {128, 128, 128, 32, 64, 4},
    {128, 128, 128, 64, 32, 4},
    {128, 128, 256, 32, 64, 3},
    {128, 64, 128, 32, 32, 5},
    {64, 128, 128, 32, 32, 5},
    {64, 128, 256, 32, 64, 4, 2},
    {64, 64, 128, 32, 32, 6},
    {64, 64, 256, 32, 32, 4},
    {64, 64, 256, 32, 64, 4, 2},
    {128, 32, 128, 32, 32, 5},
    {32, 128, 128, 32, 32, 6},
    {32, 128, 256, 32, 64, 4, 2},
    {32, 64, 256, 16, 32, 5},
    {32, 64, 256, 32, 32, 5, 2},
    {64, 32, 256, 32, 16, 5},
    {32, 32, 256, 16, 16, 6},
    {16, 128, 256, 16, 32, 4},
    {16, 128, 256, 16, 64, 4, 2},
    {16, 64, 256, 16, 16, 5},
    {16, 64, 256, 16, 32, 5, 2},
    {16, 32, 256, 16, 16, 6, 2},
});
// clang-format on

// Groups of four warps multiply 64 rows each, or whole tiles in turns; the copy engine fills as many panels as fit.
struct PipelineShape {
  int64_t m, n, peers;
  bool turns = false;
};
// clang-format off
constexpr auto kPipelineShapes = std::to_array<PipelineShape>({
    {128, 256, 1},
    {128, 256, 2},
    {128, 192, 1},
    {128, 192, 2},
    {128, 128, 1},
    {128, 128, 2},
    {128, 64, 1},
    {256, 64, 1},
    {64, 256, 1},
    {64, 128, 1},
    {64, 64, 1},
    {128, 160, 2, true},
    {128, 128, 1, true},
    {128, 128, 2, true},
    {64, 256, 1, true},
    {64, 256, 2, true},
    {64, 192, 2, true},
    {64, 128, 1, true},
    {64, 128, 2, true},
});
// clang-format on

// A warp of 4 x 8 threads: warp_m / 4 x warp_n / 8 elements each.
constexpr auto kScalarShapes = std::to_array<Shape>({
    {128, 128, 64, 32, 64, 4},
    {64, 128, 64, 32, 64, 4},
    {128, 64, 64, 32, 32, 4},
    {64, 64, 64, 32, 32, 5},
    {32, 64, 64, 16, 32, 5},
    {64, 32, 64, 16, 32, 5},
    {16, 64, 128, 16, 32, 4},
});

// For operands that are read element by element: what a thread holds of a panel must fit its registers.
constexpr auto kGatheredShapes = std::to_array<Shape>({
    {128, 64, 64, 64, 32, 3},
    {128, 64, 64, 32, 32, 3},
    {128, 128, 64, 64, 32, 3},
    {128, 32, 64, 32, 32, 3},
    {64, 64, 64, 32, 32, 3},
});

bool fits(const TileShape& tile, const Extent& e) {
  if (shared_bytes(tile, e.dtype) > e.target.limits.shared_bytes) return false;
  if (tile.cluster && (tile.splits == 1 || tile.splits > e.target.limits.cluster)) return false;
  if (!fits_registers(tile, e)) return false;
  // 32-bit MN-major panels are permuted within 128 bytes.
  if (tile.unit == TileShape::tensor_core && size_of(e.dtype) == 4 &&
      ((e.major_a == Major::mn && tile.m < 32) || tile.n < 32))
    return false;
  // Elements on their way into panels need registers too.
  if (e.gathered && tile.unit == TileShape::scalar && tile.warp_m > 32) return false;
  if (e.gathered) {  // threads are spread over the rows, then over the chunks of 16 bytes
    const int64_t chunks = tile.k * static_cast<int64_t>(size_of(e.dtype)) / 16;
    return threads(tile) < tile.m || chunks % (threads(tile) / tile.m) == 0;
  }
  // Narrow copies are many: their places do not fit beside the largest tiles.
  if (e.copy_width * static_cast<int64_t>(size_of(e.dtype)) < 16 && e.copy_width > 0 &&
      tile.warp_m * tile.warp_n > 2048)
    return false;
  // A thread's column repeats in every row that it copies.
  return e.copy_width == 0 || threads(tile) % (tile.k / e.copy_width) == 0;
}

std::vector<int64_t> split_counts(const TileShape& tile, const Extent& e) {
  std::vector<int64_t> counts = {1};
  const int64_t tiles = ceil_div(e.m, tile.m) * ceil_div(e.n, tile.n) * e.batch, panels = ceil_div(e.k, tile.k);
  for (int64_t splits : {2, 3, 4, 6, 8, 12, 16})
    if (tiles * splits <= 2 * e.target.cores && panels >= (e.normalized ? 2 : 4) * splits)
      counts.push_back(ceil_div(panels, ceil_div(panels, splits)));  // none is without work
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// A short K does not fill a deep ring, whose memory keeps other blocks out.
std::vector<int64_t> stage_counts(const Shape& shape, const TileShape& tile, const Extent& e) {
  constexpr int64_t kShort = 8;
  const int64_t panels = ceil_div(ceil_div(e.k, tile.k), tile.splits);
  const int64_t room = e.target.limits.shared_bytes / (a_bytes(tile, e.dtype) + b_bytes(tile, e.dtype));
  const int64_t least = tile.unit == TileShape::warpgroup ? 3 : 2;
  const int64_t deep = std::min({shape.stages, std::max(panels + 1, least), room});
  if (deep < least) return {};
  if (deep > least && panels <= kShort) return {deep, least};
  return {deep};
}

std::string text_of(const TileShape& t) {
  if (t.unit == TileShape::pipeline)
    return fmt::format("tma {}x{}x{} stages={} peers={} splits={}{}", t.m, t.n, t.k, t.stages, t.peers, t.splits,
                       t.turns ? " turns" : "");
  constexpr std::array<std::string_view, 5> kUnits = {"mma", "fma", "wgmma", "tma", "mma.sp"};
  return fmt::format("{} {}x{}x{} warp={}x{}x{} stages={} {}={}", kUnits[t.unit], t.m, t.n, t.k, t.warp_m, t.warp_n,
                     t.k / t.slices, t.stages, t.cluster ? "cluster" : "splits", t.splits);
}

// The tiles of the shapes that fit, with every number of splits and stages.
void add_tiles(TileShape::Unit unit, std::span<const Shape> shapes, const Extent& e, std::vector<Config>& configs) {
  // Scalar code reads 8-bit elements four at a time, unrolled.
  const auto size = std::max<int64_t>(static_cast<int64_t>(size_of(e.dtype)), unit == TileShape::scalar ? 4 : 1);
  for (const Shape& s : shapes) {
    TileShape t{unit, s.m, s.n, s.k_bytes / size, s.warp_m, s.warp_n, s.slices};
    for (const int64_t splits : split_counts(t, e)) {
      t.splits = splits;
      for (const int64_t stages : stage_counts(s, t, e))
        for (const bool cluster : {false, true}) {
          t.stages = stages, t.cluster = cluster;
          if (!fits(t, e)) continue;
          // Short rings of different shapes may be the same.
          if (std::any_of(configs.begin(), configs.end(), [&](const Config& c) { return c.as<TileShape>() == t; }))
            continue;
          configs.push_back({.text = text_of(t), .predicted_us = predict(t, e), .choice = t, .sparse = e.sparse});
        }
    }
  }
}

// Of a pipeline, behind its barriers: vectors of each thread that warps write along rows.
int64_t staged_rows_bytes(const TileShape& tile) {
  constexpr int64_t kWarpBytes = 512;
  return tile.by_rows ? kWarpBytes * (tile.turns ? 8 : tile.m / tile.warp_m) : 0;
}

int64_t all_scales_bytes(const TileShape& tile) { return tile.m / tile.warp_m * tile.scales_bytes; }

void add_pipelines(Extent e, std::vector<Config>& configs) {
  if (e.copied_k > 0) e.k = e.copied_k;
  constexpr int64_t kRowBytes = 128, kEnough = 8;  // stages, unless all of K fits
  for (const PipelineShape& s : kPipelineShapes) {
    // Parts of an MN-major B are whole blocks of 64 columns.
    if (e.major_b == Major::mn && s.n / s.peers % 64 != 0) continue;
    const int64_t k = kRowBytes / static_cast<int64_t>(size_of(e.dtype)), warp_m = s.turns ? s.m / 4 : 16;
    TileShape t{TileShape::pipeline, s.m, s.n, k, warp_m, s.n};
    t.peers = s.peers, t.turns = s.turns, t.by_rows = e.by_rows;
    if (e.scaled_block > 0) t.scales_bytes = scales_bytes(s.n, e.scaled_columns);
    const int64_t room = e.target.limits.shared_bytes - kTurnBytes - staged_rows_bytes(t) - all_scales_bytes(t);
    const int64_t fit = room / ((s.m + s.n) * kRowBytes + kSlotBarrierBytes);
    if (t.peers > e.target.limits.cluster || t.peers > e.target.cores) continue;
    if (is_factor_float8(e.dtype) && s.turns) continue;
    if (e.scaled_columns && s.n > 128) continue;  // a scale for each would not fit registers beside the sums
    constexpr int64_t kMostSums = 128;            // of a thread, beside the places of operands of narrow vectors
    if (t.warp_m * t.warp_n / 32 > kMostSums && e.operands > 0 && size_of(e.output) > 2) continue;
    for (const int64_t splits : split_counts(t, e)) {
      t.splits = splits, t.by_rows = e.by_rows && splits == 1;
      t.stages = std::min(std::max(kEnough, ceil_div(ceil_div(e.k, k), splits)), fit);
      const auto fits = [&](int64_t n) { return e.neighbours >= n && s.n / s.peers % neighbour_group(n) == 0; };
      t.neighbours = splits > 1 ? 0 : fits(16) ? 16 : fits(8) ? 8 : 0;
      configs.push_back({.text = text_of(t), .predicted_us = predict(t, e), .choice = t});
    }
  }
}

}  // namespace

int64_t whole_operands(const Problem& problem) {
  const Dims& dims = problem.outputs[0].opt_dims;
  return std::count_if(problem.operands.begin(), problem.operands.end(), [&](const Operand& operand) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] > 1 && (d >= operand.opt_strides.size() || operand.opt_strides[d] == 0)) return false;
    return true;
  });
}

int64_t dear_functions(const Program& program) {
  static constexpr std::array kDear = {
      Opcode::pow,      Opcode::exp,       Opcode::log,        Opcode::sqrt, Opcode::recip, Opcode::sin,
      Opcode::cos,      Opcode::erf,       Opcode::sigmoid,    Opcode::tanh, Opcode::elu,   Opcode::selu,
      Opcode::celu,     Opcode::softsign,  Opcode::softplus,   Opcode::silu, Opcode::swish, Opcode::mish,
      Opcode::gelu_erf, Opcode::gelu_tanh, Opcode::scaled_tanh};
  return std::ranges::count_if(program.code, [](const Instruction& instruction) {
    return std::ranges::find(kDear, instruction.op) != kDear.end();
  });
}

bool runs_ahead(const TileShape& tile, const Extent& e) {
  constexpr int64_t kShort = 8;  // instructions
  const bool is_narrow = tile.n <= 128, is_wide = tile.n > 192;
  const bool is_short = e.instructions <= kShort && e.functions <= (is_wide ? 0 : 1);
  const int64_t most = is_narrow ? 4 : is_wide ? 0 : 1;  // operands, with NVRTC 13.0
  return is_factor_float8(e.dtype) && tile.splits == 1 && e.operands <= most && (is_narrow || is_short);
}

std::vector<Config> every_config(const Extent& e) {
  std::vector<Config> configs;
  if (e.sparse) {
    add_tiles(TileShape::sparse, kSparseShapes, e, configs);
    return configs;
  }
  if (e.gathered)
    add_tiles(e.tensor_core ? TileShape::tensor_core : TileShape::scalar, kGatheredShapes, e, configs);
  else if (e.tensor_core)
    add_tiles(TileShape::tensor_core, kTensorCoreShapes, e, configs);
  else
    add_tiles(TileShape::scalar, kScalarShapes, e, configs);
  const bool rows_along_k = !e.gathered && e.major_a == Major::k && e.major_b == Major::k;
  const bool is_read =
      e.dtype == DType::f16 || e.dtype == DType::bf16 || e.dtype == DType::i8 || is_factor_float8(e.dtype);
  if (e.target.limits.warpgroups && is_read && rows_along_k && e.scaled_block == 0)
    add_tiles(TileShape::warpgroup, kWarpgroupShapes, e, configs);
  if (e.copied) add_pipelines(e, configs);
  return configs;
}

std::vector<Config> configs(const Extent& e) { return best_first(every_config(e), kMaxConfigs); }

int64_t a_bytes(const TileShape& tile, DType dtype) { return tile.m * tile.k * static_cast<int64_t>(size_of(dtype)); }

int64_t b_bytes(const TileShape& tile, DType dtype) {
  const int64_t elements = tile.n * tile.k, size = static_cast<int64_t>(size_of(dtype));
  return tile.unit == TileShape::sparse ? elements / 2 * size + elements / 8 : elements * size;
}

int64_t threads(const TileShape& tile) {
  constexpr int64_t kProducers = 128;
  const int64_t multiplying = tile.m / tile.warp_m * (tile.n / tile.warp_n) * tile.slices * 32;
  return multiplying * (tile.turns ? 2 : 1) + (tile.unit == TileShape::pipeline ? kProducers : 0);
}

int64_t works(const TileShape& tile, const Extent& e) {
  return ceil_div(e.m, tile.m * tile.peers) * ceil_div(e.n, tile.n) * tile.splits * e.batch;
}

namespace {

int64_t ring_bytes(const TileShape& tile, DType dtype) {
  return tile.stages * (a_bytes(tile, dtype) + b_bytes(tile, dtype));
}

// As Staging in gemm/epilogue.cuh has it.
int64_t staging_bytes(const TileShape& tile, DType dtype, int64_t slabs) {
  const int64_t warps = threads(tile) / 32;
  return warps * (tile.warp_m / slabs) * (tile.warp_n + 8) * static_cast<int64_t>(accumulator_size(dtype));
}

}  // namespace

int64_t slabs(const TileShape& tile, DType dtype) {
  if (tile.adds_sums()) return 1;
  // The program stands in the code once for each, and what a block stages keeps other blocks out.
  const int64_t most = std::max<int64_t>(ring_bytes(tile, dtype), 40 * 1024);
  int64_t slabs = 1;
  while (tile.warp_m / slabs > 16 && staging_bytes(tile, dtype, slabs) > most) slabs *= 2;
  return slabs;
}

int64_t shared_bytes(const TileShape& tile, DType dtype) {
  if (tile.unit == TileShape::pipeline) return scales_begin(tile, dtype) + all_scales_bytes(tile);
  return std::max(ring_bytes(tile, dtype), staging_bytes(tile, dtype, slabs(tile, dtype)));
}

int64_t staged_rows_begin(const TileShape& tile, DType dtype) {
  return ring_bytes(tile, dtype) + tile.stages * kSlotBarrierBytes + kTurnBytes;
}

int64_t scales_begin(const TileShape& tile, DType dtype) {
  return staged_rows_begin(tile, dtype) + staged_rows_bytes(tile);
}

int64_t scales_bytes(int64_t columns, bool scaled_columns) {
  constexpr int64_t kSlots = 4, kRows = 16;  // as PanelScales in gemm_scaled/gemm_scaled.cuh has them
  return kSlots * (kRows + (scaled_columns ? columns : 2)) * static_cast<int64_t>(sizeof(float));
}

std::string accumulator_type(DType dtype) {
  if (is_floating(dtype) || is_factor_float8(dtype)) return dtype == DType::f64 ? "double" : "float";
  return size_of(dtype) == 8 ? "int64" : "int32";
}

size_t accumulator_size(DType dtype) { return size_of(dtype) == 8 ? 8 : 4; }

std::string tile_type(const TileShape& t, DType dtype, Major major_a, Major major_b) {
  const bool mn_major_a = major_a == Major::mn, mn_major_b = major_b == Major::mn;
  if (t.unit == TileShape::warpgroup)
    return fmt::format("gemm::WgmmaTile<{}, {}, {}, {}>", device_type(dtype), t.m, t.n, t.stages);
  if (t.unit == TileShape::pipeline)
    return fmt::format("gemm::PipelineTile<{}, {}, {}, {}, {}, {}, {}, {}, {}>", device_type(dtype), t.m, t.n, t.stages,
                       t.peers, mn_major_a, mn_major_b, t.turns, t.neighbours);
  if (t.unit == TileShape::sparse)
    return fmt::format("gemm::SparseTile<{}, {}, {}, {}, {}, {}, {}, {}, {}>", device_type(dtype), t.m, t.n, t.k,
                       t.warp_m, t.warp_n, t.slices, t.stages, mn_major_a);
  if (t.unit == TileShape::tensor_core)
    return fmt::format("gemm::MmaTile<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}>", device_type(dtype), t.m, t.n, t.k,
                       t.warp_m, t.warp_n, t.slices, t.stages, mn_major_a, mn_major_b);
  return fmt::format("gemm::SimtTile<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>", device_type(dtype),
                     accumulator_type(dtype), t.m, t.n, t.k, t.warp_m / 4, t.warp_n / 8, t.m / t.warp_m, t.n / t.warp_n,
                     t.stages, mn_major_a, mn_major_b);
}

}  // namespace lathe::cuda::gemm
