// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/split_worker.h"

#include <algorithm>

#include "base/divide.h"

namespace lathe::cpu::gemm {
namespace {

constexpr int64_t kKeptColumns = 512;  // whose sums are kept from one block of K to the next

}  // namespace

SplitScratch::SplitScratch(int64_t rows, int64_t k) {
  const SplitBlocks blocks(rows, k);
  const int64_t whole = round_up<int64_t>(std::min(rows, blocks.most_rows), kMatrixRegisterRows);
  constexpr int64_t kMostOfA = SplitBlocks::kBytesOfA / static_cast<int64_t>(sizeof(float));
  const int64_t terms = whole * blocks.row_floats();
  b = rows < blocks.most_rows ? terms : std::max(terms, kMostOfA);
  partial = b + kSplitColumns * std::min(blocks.steps, SplitBlocks::kMostSteps) * kSplitDepth * kTerms / 2;
  end = partial + (blocks.k_blocks > 1 ? whole * kKeptColumns : 0);
}

SplitWorker::SplitWorker(const GemmProblem& problem, const SplitFunctions& functions, const TileTable& floats,
                         const TileScratch& scratch, float* terms)
    : problem_(problem),
      functions_(functions),
      floats_(floats),
      scratch_(scratch),
      blocks_(problem.rows, problem.panels.k),
      matrices_(functions.leave),
      places_(problem.rows, problem.panels.k),
      a_(terms),
      b_(terms + places_.b),
      partial_(terms + places_.partial) {}

void SplitWorker::run(const Share& share) {
  const int64_t rows = share.last_row - share.first_row, row_block = SplitBlocks(rows, problem_.panels.k).row_block;
  const int64_t of_group = blocks_.k_blocks > 1 ? kKeptColumns / problem_.panels.width : problem_.panels.count();
  for (first_row_ = share.first_row; first_row_ < share.last_row; first_row_ += rows_) {
    rows_ = std::min(row_block, share.last_row - first_row_);
    groups_ = ceil_div<int64_t>(rows_, kMatrixRegisterRows);
    height_ = static_cast<int>(ceil_div(rows_, groups_));
    split_rows();
    for (int64_t panel = share.first_panel; panel < share.last_panel; panel += of_group)
      run_panels(panel, std::min(panel + of_group, share.last_panel));
  }
}

void SplitWorker::split_rows() {
  const int64_t block = int64_t{height_} * kMatrixRegisterRows;
  for (int64_t group = 0; group < groups_; ++group) {
    float* to = a_ + group * height_ * blocks_.row_floats();
    const int count = static_cast<int>(std::min<int64_t>(height_, rows_ - group * height_));
    const TileTaps filled = problem_.source->fill(first_row_ + group * height_, count, scratch_);
    for (int r = 0; r < height_; ++r)
      functions_.split_row(filled.a_rows[std::min(r, count - 1)] + filled.taps->a_offset,
                           r < count ? problem_.panels.k : 0, blocks_.steps, to + r * kMatrixRegisterRows, block);
  }
}

SplitWorker::Chunk SplitWorker::chunk_at(int64_t first_panel, int64_t index) const {
  const Panels& panels = problem_.panels;
  const int64_t of_panel = ceil_div<int64_t>(panels.width, kSplitColumns), panel = first_panel + index / of_panel;
  const int64_t column = index % of_panel * kSplitColumns;
  const int stride = panels.stride(panel);
  return {problem_.packed + panels.offset(panel - problem_.first_packed) + column, stride,
          panel * panels.width + column, static_cast<int>(std::min(kSplitColumns, panels.columns(panel) - column)),
          static_cast<int>(std::min(kSplitColumns, stride - column) / kMatrixRegisterRows)};
}

void SplitWorker::run_panels(int64_t first, int64_t last) {
  const Panels& panels = problem_.panels;
  first_column_ = first * panels.width;
  const int64_t chunks = (last - first - 1) * ceil_div<int64_t>(panels.width, kSplitColumns) +
                         ceil_div<int64_t>(panels.stride(last - 1), kSplitColumns);
  for (int64_t step = 0; step < blocks_.steps; step += blocks_.block_steps) {
    const int64_t count = std::min(blocks_.block_steps, blocks_.steps - step);
    const Depth depth{step, count, step + count == blocks_.steps};
    for (int64_t i = 0; i < chunks; ++i) run_chunk(chunk_at(first, i), depth, chunk_at(first, (i + 1) % chunks));
  }
}

void SplitWorker::run_chunk(const Chunk& chunk, const Depth& depth, const Chunk& next) {
  const int64_t k = depth.first * kSplitDepth;
  functions_.split_columns(chunk.b + k * chunk.b_stride, chunk.b_stride, problem_.panels.k - k, depth.count,
                           chunk.halves, b_);
  alignas(64) float finished[2 * kMatrixRegisterRows * kSplitColumns];
  const int64_t group_floats = height_ * blocks_.row_floats();
  SplitTile tile{};
  tile.height = height_;
  tile.a_next = group_floats;
  tile.b = b_;
  tile.halves = chunk.halves;
  tile.steps = depth.count;
  tile.adds = depth.first > 0;
  tile.configured = matrices_.code();
  tile.next = next.b + k * next.b_stride;
  tile.next_stride = next.b_stride;
  tile.next_rows = static_cast<int>(ceil_div(kSplitDepth, ceil_div<int64_t>(groups_, 2)));
  for (int64_t group = 0; group < groups_; group += 2) {
    tile.blocks = group + 1 < groups_ ? 2 : 1;
    tile.a = a_ + group * group_floats + depth.first * kTerms * height_ * kMatrixRegisterRows;
    tile.sums = finished;
    tile.stride = kSplitColumns;
    if (blocks_.k_blocks > 1) {
      tile.sums = partial_ + group * height_ * kKeptColumns + chunk.column - first_column_;
      tile.stride = kKeptColumns;
    }
    functions_.multiply(tile);
    tile.next += depth.count * tile.next_rows * tile.next_stride;
    const int64_t row = group * height_;
    if (depth.is_last)
      finish(chunk, first_row_ + row, static_cast<int>(std::min<int64_t>(tile.blocks * height_, rows_ - row)),
             tile.sums, tile.stride);
  }
}

void SplitWorker::finish(const Chunk& chunk, int64_t row, int count, float* sums, int64_t stride) {
  static const auto finish_sums = LATHE_ISA_SELECT(finish_tile);
  if (!functions_.are_finite(sums, stride, count, chunk.halves)) multiply_floats(chunk, row, count, sums, stride);
  problem_.source->fill(row, count, scratch_);
  finish_sums(*problem_.epilogue, scratch_.where, sums, stride, count, chunk.column, chunk.columns);
}

void SplitWorker::multiply_floats(const Chunk& chunk, int64_t row, int count, float* sums, int64_t stride) {
  Tile tile{};
  tile.where = &scratch_.where;
  tile.epilogue = problem_.epilogue;
  tile.b_stride = chunk.b_stride;
  tile.partial_stride = stride;
  tile.store_partial = true;
  tile.tap_count = problem_.needs.taps;
  tile.b_rows = problem_.panels.k;
  for (int c = 0; c < chunk.halves * kMatrixRegisterRows; c += floats_.lanes)
    for (int r = 0; r < count; r += tile.rows) {
      tile.rows = std::min(floats_.max_rows[0], count - r);
      const TileTaps filled = problem_.source->fill(row + r, tile.rows, scratch_);
      tile.a_rows = filled.a_rows;
      tile.taps = filled.taps;
      tile.b = chunk.b + c;
      tile.columns = floats_.lanes;
      tile.partial = sums + r * stride + c;
      floats_.functions[0][tile.rows - 1](tile);
    }
}

}  // namespace lathe::cpu::gemm
