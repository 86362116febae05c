// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/row_shapes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/divide.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxValues = 64;          // floats that a thread holds
constexpr int64_t kMaxBlockValues = 32768;  // and a block
constexpr double kIdealValues = 24;         // of a thread
constexpr double kIdealAccess = 128;        // bytes side by side
constexpr int64_t kWarp = 32, kMaxThreads = 1024;
constexpr size_t kMaxConfigs = 4;
constexpr double kMemoryShare = 0.625;  // of the memory's rate, as it is reached

int64_t power_of_2_from(int64_t value) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value))); }

double bytes_of(const IndexSpace& space) {
  return static_cast<double>(space.opt_rows()) * static_cast<double>(space.opt_length()) *
         static_cast<double>(size_of(space.view(0).dtype));
}

// Microseconds of one pass over memory.
double pass_us(const Target& target, const IndexSpace& space) {
  return bytes_of(space) / (kMemoryShare * target.memory_rate);
}

// Rows of a block: enough threads for a block, but not so many that multiprocessors stay idle.
int64_t rows_per_block(const Target& target, const IndexSpace& space, int64_t lanes) {
  if (lanes > kWarp) return 1;
  const int64_t most = 128 / lanes, least = kWarp / lanes;
  const int64_t spread = space.opt_rows() / target.cores;
  return std::clamp(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(spread, 1)))), least,
                    most);
}

void add_resident(const Target& target, const IndexSpace& space, std::vector<Config>& configs) {
  const auto length = space.length().as_constant();
  if (!length || *length == 0 || *length > kMaxBlockValues) return;
  const int64_t width = chunk_width(space), chunks = *length / width;
  const double ideal = pass_us(target, space);
  for (int64_t lanes = 1; lanes <= kMaxThreads; lanes *= 2) {
    const int64_t each = ceil_div(chunks, lanes);
    if (each * width > kMaxValues || lanes * each * width > 2 * kMaxBlockValues) continue;
    if (lanes * each * width > kMaxBlockValues && lanes == kMaxThreads) continue;
    if (lanes > 1 && lanes / 2 >= chunks) break;
    RowShape shape{RowShape::resident, lanes, rows_per_block(target, space, lanes), each};
    const double waste = static_cast<double>(lanes * each) / static_cast<double>(chunks);
    const double unevenness = std::fabs(std::log2(static_cast<double>(each * width) / kIdealValues));
    const double access = static_cast<double>(lanes * width) * static_cast<double>(size_of(space.view(0).dtype));
    const double scatter = std::max(0.0, std::log2(kIdealAccess / access));
    const double threads = static_cast<double>(space.opt_rows() * lanes);
    const double idle = std::max(0.0, std::log2(static_cast<double>(target.busy_threads()) / threads));
    configs.push_back(shape.to_config(target.launch_us +
                                      (2 * ideal + 0.2) * (waste + 0.1 * unevenness + 0.2 * scatter + 0.05 * idle)));
  }
}

void add_rows(const Target& target, const IndexSpace& space, int64_t passes, std::vector<Config>& configs) {
  const double ideal = pass_us(target, space);
  const int64_t chunks = std::max<int64_t>(space.opt_length() / chunk_width(space), 1);
  for (int64_t lanes : {8, 32, 128, 256, 512}) {
    if (lanes > 8 && lanes > 2 * chunks) continue;
    RowShape shape{RowShape::rows, lanes, rows_per_block(target, space, lanes)};
    const double steps = std::fabs(std::log2(static_cast<double>(chunks) / static_cast<double>(lanes * 4)));
    const double busy =
        std::min(1.0, static_cast<double>(space.opt_rows() * lanes) / static_cast<double>(target.busy_threads()));
    configs.push_back(
        shape.to_config(target.launch_us + static_cast<double>(passes) * ideal * (1 + 0.1 * steps) / busy));
  }
  const int64_t splits =
      std::min<int64_t>({ceil_div(2 * target.cores, std::max<int64_t>(space.opt_rows(), 1)), chunks / 512, 512});
  if (splits < 2) return;
  RowShape shape{RowShape::split, 256};
  shape.splits = splits;
  configs.push_back(shape.to_config(2 * target.launch_us + static_cast<double>(passes) * ideal));
}

void add_columns(const Target& target, const IndexSpace& space, int64_t passes, uint32_t state_bytes,
                 std::vector<Config>& configs) {
  const double ideal = pass_us(target, space);
  const int64_t width = chunk_width(space), length = std::max<int64_t>(space.opt_length(), 1);
  const int64_t columns = std::max<int64_t>(space.opt_extent(space.kept() - 1) / width, 1);
  const int64_t outer = space.opt_rows() / std::max<int64_t>(space.opt_extent(space.kept() - 1), 1);
  for (int64_t tx : {8, 16, 32, 64}) {
    if (tx > 8 && tx / 2 >= columns) break;
    const int64_t ty = std::min<int64_t>(256 / tx, power_of_2_from(length));
    if (tx * ty * width * state_bytes > 48 * 1024) continue;
    RowShape shape{RowShape::columns, tx * ty};
    shape.ty = ty;
    shape.unroll = std::clamp<int64_t>(length / ty, 1, width >= 8 ? 2 : 4);
    const int64_t blocks = std::max<int64_t>(outer * ceil_div(columns, tx), 1);
    const double waste = static_cast<double>(ceil_div(columns, tx) * tx) / static_cast<double>(columns);
    const double busy = std::min(1.0, static_cast<double>(blocks) / (4.0 * target.cores));
    configs.push_back(shape.to_config(target.launch_us + static_cast<double>(passes) * ideal * waste / busy));
    const int64_t splits = std::min<int64_t>({ceil_div(4 * target.cores, blocks), length / (ty * 4), 256});
    if (splits < 2) continue;
    shape.kind = RowShape::strips;
    shape.splits = splits;
    configs.push_back(
        shape.to_config((passes > 1 ? 3 : 2) * target.launch_us + static_cast<double>(passes) * ideal * waste));
  }
}

}  // namespace

Config RowShape::to_config(double predicted_us) const {
  constexpr std::string_view kNames[] = {"resident", "rows", "split", "columns", "strips"};
  std::string text = fmt::format("{} {}", kNames[kind], lanes);
  if (kind == columns || kind == strips) text = fmt::format("{} {}x{}", kNames[kind], tx(), ty);
  if (rows_per_block > 1) text += fmt::format(" rows{}", rows_per_block);
  if (kind == resident) text += fmt::format(" chunks{}", chunks);
  if (splits > 1) text += fmt::format(" splits{}", splits);
  return {.text = std::move(text), .predicted_us = predicted_us, .choice = *this};
}

bool has_columns(const IndexSpace& space) { return unit_dim(space.view(0)) == space.kept() - 1; }

int chunk_width(const IndexSpace& space) {
  return space.vector_along(has_columns(space) ? space.kept() - 1 : space.rank() - 1);
}

std::vector<Config> row_configs(const Target& target, const IndexSpace& space, bool writes_rows, uint32_t state_bytes) {
  const int64_t passes = writes_rows ? 3 : 1;  // over memory
  std::vector<Config> configs;
  if (has_columns(space)) {
    add_columns(target, space, passes, state_bytes, configs);
  } else {
    if (writes_rows) add_resident(target, space, configs);
    add_rows(target, space, passes, configs);
  }
  return best_first(std::move(configs), kMaxConfigs);
}

Expr row_blocks(const IndexSpace& space, const RowShape& shape) {
  if (shape.kind != RowShape::columns && shape.kind != RowShape::strips)
    return ceildiv(space.rows(), shape.rows_per_block);
  const Expr& columns = space.extent(space.kept() - 1);
  Expr outer = 1;
  for (int i = 0; i + 1 < space.kept(); ++i) outer *= space.extent(i);
  return outer * ceildiv(columns, shape.tx() * chunk_width(space));
}

uint32_t row_shared_bytes(const IndexSpace& space, const RowShape& shape, uint32_t state_bytes) {
  if (shape.kind == RowShape::columns || shape.kind == RowShape::strips)
    return shape.ty == 1 ? 0 : static_cast<uint32_t>(shape.lanes * chunk_width(space)) * state_bytes;
  return shape.lanes <= kWarp ? 0 : static_cast<uint32_t>(shape.lanes / kWarp) * state_bytes;
}

}  // namespace lathe::cuda
