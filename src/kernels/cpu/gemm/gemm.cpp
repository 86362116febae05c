// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/gemm.h"

#include <algorithm>

namespace lathe::cpu::gemm {

int64_t packed_floats(int64_t k, int64_t n, int64_t batches, int width) {
  return Panels{k, n, width}.floats() * batches;
}

void pack_weights(const float* source, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t batches,
                  int64_t batch_stride, int width, std::span<float> packed) {
  const Panels panels{k, n, width};
  for (int64_t b = 0; b < batches; ++b)
    pack(panels, source + b * batch_stride, k_stride, n_stride, 0, panels.count(), packed.data() + b * panels.floats());
}

std::string to_text(const Blocking& blocking) {
  return fmt::format("{}x{} rows={} k={} split={}", blocking.rows, blocking.width, blocking.row_block, blocking.k_block,
                     blocking.split_columns ? "columns" : "rows");
}

std::vector<Blocking> candidates(const GemmShape& shape, int threads) {
  std::vector<Blocking> found;
  auto add = [&](Blocking blocking) {
    if (blocking.k_block >= shape.k) blocking.k_block = 0;
    if (blocking.row_block >= shape.m * shape.batch) blocking.row_block = 0;
    if (threads == 1) blocking.split_columns = false;
    if (std::find(found.begin(), found.end(), blocking) == found.end() && found.size() < 24) found.push_back(blocking);
  };
  // Few rows: the weights are the traffic, so threads share them. Many rows: each thread keeps its own rows.
  const bool wide = shape.n * 2 > shape.m * shape.batch;
  const int best_width = shape.n % 48 == 0 && shape.m > 6 ? 48 : 64;
  for (bool split : {wide, !wide})
    for (int width : {best_width, best_width == 48 ? 64 : 48, 32}) {
      if (width > 16 && shape.n <= width - 16) continue;
      // A panel's k block should stay in L2 next to the rows of A.
      add({width, 0, shape.k * width > 48 * 1024 ? int64_t{512} : 0, split});
      add({width, 0, 0, split});
      if (shape.k <= 512) add({width, 48, 0, split});
      if (stays_near(shape.k * shape.n)) add({width, kTileByTile, 0, split});
      if (shape.k > 256) add({width, 0, 256, split});
    }
  if (found.empty()) add({kPanelQuantum, 0, 0, false});
  return found;
}

std::vector<Blocking> matrix_candidates(const GemmShape& shape, int threads) {
  constexpr int64_t kBlockOfA = 128 << 10;  // pairs that stay in the second cache
  constexpr int64_t kTile = 2 * kMatrixRegisterRows;
  const int64_t rows = shape.m * shape.batch, block = kBlockOfA / std::max<int64_t>(shape.k, 1) / kTile * kTile;
  std::vector<Blocking> found;
  for (const bool split : {true, false}) {
    if (split && threads == 1) continue;
    found.push_back({kMatrixRegisterRows, 0, 0, split});
    if (rows > kTile) found.push_back({kMatrixRegisterRows, kTileByTile, 0, split});
    if (block > 0 && block < rows) found.push_back({kMatrixRegisterRows, block, 0, split});
  }
  return found;
}

}  // namespace lathe::cpu::gemm
