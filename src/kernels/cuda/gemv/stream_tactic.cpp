// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemv/stream_tactic.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "base/result.h"
#include "kernels/cuda/gemm/tile_cost_tactic.h"

namespace lathe::cuda::gemv {
namespace {

constexpr int64_t kHeldRegisters = 72;  // of a thread, for panels
constexpr int64_t kResidentWarps = 16;  // of a multiprocessor, by their registers
constexpr int64_t kFirstBlocks = 4;     // of a multiprocessor, in place while the launch before runs
constexpr double kCacheShare = 0.25;    // for what these blocks bring there
constexpr int64_t kPad = 16;            // bytes between rows in shared memory

}  // namespace

int64_t PanelStream::ahead() const {
  const int64_t own = ceil_div(panels, warps);
  const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(own, 1))));
  const int64_t each = panel_bytes / 128 + 2;  // registers: with scales and zeros
  return std::min(all, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kHeldRegisters / each))));
}

int64_t PanelStream::own() const { return is_even && panels % warps == 0 ? panels / warps : 0; }

std::string PanelStream::cached(const Target& target) const {
  const int64_t rest = panels - ahead() * warps, first = kFirstBlocks * target.cores;
  if (target.limits.cluster == 1 || rest <= 0) return "0";  // no launch begins before another ends
  const double share = kCacheShare * target.cache_bytes / static_cast<double>(std::min(slices, first * groups));
  const int64_t some = std::min(rest, static_cast<int64_t>(share) / panel_bytes);
  return blocks() <= first ? fmt::format("{}", some) : fmt::format("block_x() < {} ? {} : 0", first, some);
}

int64_t PanelStream::beside(const Target& target) const {
  return std::clamp<int64_t>(ceil_div(blocks(), target.cores), 1, ceil_div(kResidentWarps, warps * groups));
}

int64_t PanelStream::staged_bytes(int64_t rows, int64_t others, const Target& target) const {
  const int64_t bytes = rows * (panels * kStreamPanel * 2 + kPad);
  const Target::Limits& limits = target.limits;
  constexpr int64_t kReserved = 1024;  // of each block, for CUDA itself
  const bool fits = bytes + others <= limits.shared_bytes &&
                    (bytes + others + kReserved) * beside(target) <= limits.core_shared_bytes;
  return fits ? bytes : 0;
}

int64_t PanelStream::waves(const Target& target) const {
  return ceil_div(slices * warps, kResidentWarps * target.cores);
}

double PanelStream::predicted_us(double bytes, const Target& target) const {
  constexpr double kLaunchShare = 0.3;         // weights are on their way before the step before ends
  constexpr double kBlockClocks = 1770;        // of a block, but for its panels: those of tiles at both ends
  constexpr double kAccessMicroseconds = 0.7;  // until what a warp has on its way is there
  constexpr double kSeen = 0.1;                // of what the longer part hides
  const double memory = gemm::memory_us(bytes, target);
  const double in_turn = block_clocks + panel_clocks * static_cast<double>(ceil_div(panels, warps));
  const double clocks = kBlockClocks + in_turn * static_cast<double>(waves(target));
  const int64_t rounds = waves(target) * ceil_div(panels, warps * ahead());
  const double waits = clocks / target.clock_mhz + kAccessMicroseconds * static_cast<double>(rounds);
  return kLaunchShare * target.launch_us + std::max(memory, waits) + kSeen * std::min(memory, waits);
}

// A quotient, of which intervals say that it is 0 or 1, also in a product with the rows. Of
// min(max(rows - than, 0), 1), a difference of two maxima, they say that it may be as many as the rows are, so that a
// workspace it multiplies would grow with the square of the rows.
Expr are_more(const Expr& rows, int64_t than) {
  constexpr int64_t kMoreThanAnyRows = int64_t{1} << 40;
  return floordiv(rows - Expr(than + 1), kMoreThanAnyRows) + 1;
}

}  // namespace lathe::cuda::gemv
