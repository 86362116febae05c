// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm_weight_only/unpacked.h"

#include <algorithm>

namespace lathe::cpu::gemm {
namespace {

constexpr int64_t kKBlock = 256;  // of which a panel's weights stay in the second cache
// Of panels as wide as a tile, whose rows lie one behind the other in the first cache.
Blocking blocking() { return {.width = tile_columns(), .row_block = 192, .k_block = kKBlock}; }

const PanelKernel& panel_kernel() {
  static const PanelKernel& kernel = LATHE_ISA_SELECT(weight_only_kernel)();
  return kernel;
}

}  // namespace

bool are_unpacked(int64_t rows) {
  constexpr int64_t kLeastRows = 16;
  return rows >= kLeastRows && panel_kernel().unpack;
}

int64_t UnpackedProduct::tap_count() const { return ceil_div(panels_.k, kKBlock); }
size_t UnpackedProduct::tap_bytes() const {
  return round_up(static_cast<size_t>(tap_count()) * sizeof(Tap), size_t{64});
}
size_t UnpackedProduct::panel_bytes() const {
  return static_cast<size_t>(panels_.k * PackedPanels::kColumns) * sizeof(float);
}
size_t UnpackedProduct::thread_bytes() const {
  return panel_bytes() + scratch_bytes(blocking(), rows_, panels_.k, {.taps = tap_count()});
}

const Tap* UnpackedProduct::write_taps(std::byte* workspace) const {
  auto* taps = reinterpret_cast<Tap*>(workspace);
  for (int64_t t = 0; t < tap_count(); ++t)
    taps[t] = {t * kKBlock, t * kKBlock, static_cast<int32_t>(std::min(kKBlock, panels_.k - t * kKBlock)), 0};
  return taps;
}

void UnpackedProduct::multiply(int64_t panel, const std::byte* codes, const BoundEpilogue& epilogue,
                               const RowSource& source, const Tap* taps, std::byte* own) const {
  auto* weights = reinterpret_cast<float*>(own);
  GemmProblem problem;
  problem.rows = rows_;
  problem.blocking = blocking();
  problem.panels = {.k = panels_.k, .n = panels_.n, .width = problem.blocking.width};
  problem.packed = weights;
  problem.taps = taps;
  problem.needs.taps = tap_count();
  problem.epilogue = &epilogue;
  problem.source = &source;
  const int width = problem.panels.width, per_panel = PackedPanels::kColumns / width;
  const int64_t first = panel * per_panel, last = std::min(first + per_panel, problem.panels.count());
  const int64_t rest = round_up(panels_.n, int64_t{kPanelQuantum}) - first * width;
  const int columns = static_cast<int>(std::min<int64_t>(rest, PackedPanels::kColumns));
  panel_kernel().unpack(panels_, codes, columns, std::min(columns, width), weights);
  problem.first_packed = first;
  run_panels_alone(problem, first, last, own + panel_bytes());
}

void UnpackedProduct::run(const std::byte* packed, const BoundEpilogue& epilogue, const RowSource& source,
                          std::byte* workspace, ThreadPool& pool) const {
  const auto* taps = reinterpret_cast<const Tap*>(workspace);
  const double flops = 2.0 * static_cast<double>(rows_ * panels_.k) * static_cast<double>(panels_.n);
  const int64_t grain = flops < kMinParallelFlops ? panels_.panels() : 1;
  pool.parallel_for(panels_.panels(), grain, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = workspace + tap_bytes() + static_cast<size_t>(worker) * thread_bytes();
    for (int64_t panel = begin; panel < end; ++panel)
      multiply(panel, packed + panel * panels_.panel_bytes(), epilogue, source, taps, own);
  });
}

}  // namespace lathe::cpu::gemm
