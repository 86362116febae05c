// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/driver.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/matrix_tiles.h"
#include "kernels/cpu/gemm/split_worker.h"

namespace lathe::cpu::gemm {
namespace {

const MatrixTiles* matrix() {
  static const MatrixTiles* const tiles = has_matrix_registers() ? LATHE_ISA_SELECT(matrix_tiles)() : nullptr;
  return tiles;
}

const TileTable& tiles_of(const GemmProblem& problem) {
  static const TileTable& floats = LATHE_ISA_SELECT(tile_table)();
  static const TileTable& integers = LATHE_ISA_SELECT(integer_tile_table)(multiplies_bytes());
  if (problem.integers) {
    const bool in_matrices = has_matrix_tiles(problem.panels.k) && problem.integers->row_factor == 0;
    return in_matrices ? matrix()->integers : integers;
  }
  return problem.pairs ? pair_tiles() : floats;
}

constexpr int64_t kFloat = sizeof(float);
int64_t list_bytes(const Needs& needs) { return needs.lists * kMaxTileRows * static_cast<int64_t>(sizeof(float*)); }
int64_t tap_bytes(const Needs& needs) { return needs.taps * static_cast<int64_t>(sizeof(Tap)); }

// What a tile's rows of A take that are copied: those of few taps alone, which mostly do not fill registers.
int64_t gathered_stride(int64_t k) { return k <= 1024 ? round_up<int64_t>(k, 16) : 0; }
int64_t gathered_floats(int64_t k, const Needs& needs) {
  return matrix() && needs.is_narrow ? kMaxTileRows * gathered_stride(k) : 0;
}

// Partial sums of a row block, when there are several k blocks.
int64_t partial_floats(const Blocking& blocking, int64_t rows, int64_t k) {
  if (blocking.k_block == 0 || blocking.k_block >= k) return 0;
  const int64_t again = matrix() ? kMaxTileRows : 0;  // see Tile::skipped
  const int width = matrix() ? std::max(blocking.width, 2 * kMatrixRegisterRows) : blocking.width;
  return ((blocking.row_block ? std::min(rows, blocking.row_block) : rows) + again) * width;
}

// What a source writes is at the beginning of `scratch`, which then is what is left.
TileScratch take_scratch(const Needs& needs, std::byte*& scratch) {
  const auto take = [&](int64_t bytes) {
    std::byte* piece = scratch;
    scratch += round_up(bytes, 64);
    return piece;
  };
  TileScratch taken;
  taken.a_rows = reinterpret_cast<const float**>(take(list_bytes(needs)));
  taken.taps = reinterpret_cast<Tap*>(take(tap_bytes(needs)));
  taken.edge = reinterpret_cast<float*>(take(needs.edge_floats * kFloat));
  return taken;
}

class Worker {
 public:
  Worker(const GemmProblem& problem, std::byte* scratch)
      : problem_(problem),
        tiles_(tiles_of(problem)),
        matrices_(tiles_.leave),
        per_group_(problem.panels.count()),
        scratch_(take_scratch(problem.needs, scratch)) {
    gathered_ = reinterpret_cast<float*>(scratch);
    plan_gathering();
    partial_ = gathered_ + gathered_floats(problem.panels.k, problem.needs);
  }

  void run(const Share& share) {
    if (gathers_ || depth_ > 0 || (problem_.blocking.row_block == kTileByTile && problem_.blocking.k_block == 0))
      return run_by_tiles(share);
    int64_t block = problem_.blocking.row_block ? problem_.blocking.row_block : share.last_row;
    if (problem_.blocks) block = round_up(block, problem_.row_unit);
    for (int64_t row = share.first_row; row < share.last_row; row += block) {
      rows_begin_ = row;
      rows_end_ = std::min(row + block, share.last_row);
      run_panels(share, true);
    }
  }

 private:
  void run_panels(const Share& share, bool fetches_next) {
    for (int64_t panel = share.first_panel, next; panel < share.last_panel; panel = next) {
      next = panel + together(panel, share.last_panel);
      run_panel(panel, next - panel, fetches_next && next < share.last_panel);
    }
  }
  // Panels of one register are multiplied two by two.
  int64_t together(int64_t panel, int64_t last) const {
    const bool is_pair = problem_.blocks && problem_.panels.width == kMatrixRegisterRows && panel + 1 < last &&
                         (panel + 1) % per_group_ != 0;
    return is_pair ? 2 : 1;
  }

  // Rows of A whose taps do not fill registers are copied, where that is done once for all columns.
  void plan_gathering() {
    const Tap *taps = problem_.taps, *end = taps + problem_.needs.taps;
    const int64_t k = problem_.panels.k, whole = k / 16 * 16;
    // A product of taps takes as long as one of whole registers. Two of them for one are still less than to copy.
    const Needs& needs = problem_.needs;
    if (tiles_.gather && problem_.integers && needs.is_even && needs.lists == 1 && taps->depth < 16 &&
        needs.taps <= 2 * ceil_div<int64_t>(k, 16) &&
        std::all_of(taps, end, [&](const Tap& tap) { return tap.depth == taps->depth; }))
      depth_ = taps->depth;
    gathers_ = tiles_.gather && depth_ == 0 && gathered_floats(k, problem_.needs) > 0 && problem_.groups == 1 &&
               problem_.blocking.k_block == 0 &&
               std::any_of(taps, end, [](const Tap& tap) { return tap.depth % 16 != 0; });
    // B's rows for what does not fill the last 16 are then those that end with its last, where else they would have to
    // be copied. Rows before might be no numbers where they are floats, which zeros do not hide.
    zeros_first_ = problem_.integers && k > 16 && whole < k;
    gathered_count_ = zeros_first_ ? 2 : 1;
    gathered_taps_[0].depth = static_cast<int32_t>(zeros_first_ ? whole : round_up<int64_t>(k, 16));
    gathered_taps_[1] = {whole, k - 16, 16, 0};
  }

  // A tile's rows of those of a problem or a unit, and how many of them the tile before has.
  struct Cut {
    int64_t begin, end, skipped;
  };
  // Rows are often those of one tile: then nothing is divided, which takes as long as some products.
  static int64_t tiles_of_rows(int64_t rows, int most) { return rows <= most ? 1 : ceil_div<int64_t>(rows, most); }
  // The i-th tile of `count` rows.
  Cut cut(int64_t i, int64_t tiles, int64_t count) const {
    if (tiles == 1) return {0, count, 0};
    if (!tiles_.has_equal_tiles) return {count * i / tiles, count * (i + 1) / tiles, 0};
    const int64_t size = ceil_div(count, tiles), begin = std::min(i * size, count - size);
    return {begin, begin + size, i * size - begin};
  }
  int most_rows(int vectors) const { return tiles_.max_rows[vectors - 1]; }

  // All panels for a tile's rows before the next rows: for weights that stay in the first cache.
  void run_by_tiles(const Share& share) {
    const int widest = std::min(problem_.panels.stride(0), tiles_.vectors * tiles_.lanes);
    const int most = most_rows(ceil_div(widest, tiles_.lanes));
    const int64_t unit = problem_.row_unit ? problem_.row_unit : share.last_row - share.first_row;
    for (int64_t begin = share.first_row; begin < share.last_row; begin += unit) {
      const int64_t size = std::min(unit, share.last_row - begin), tiles = tiles_of_rows(size, most);
      for (int64_t i = 0; i < tiles; ++i) {
        const Cut rows = cut(i, tiles, size);
        rows_begin_ = begin + rows.begin;
        rows_end_ = begin + rows.end;
        skipped_ = rows.skipped;
        run_panels(share, false);
      }
    }
  }

  // The panel, and those behind it that are multiplied together with it.
  void run_panel(int64_t flat_panel, int64_t count, bool more) {
    const int64_t group = flat_panel < per_group_ ? 0 : flat_panel / per_group_;
    const int64_t panel = flat_panel - group * per_group_;
    const float* b =
        problem_.packed + group * problem_.panels.floats() + problem_.panels.offset(panel - problem_.first_packed);
    const int stride = problem_.panels.stride(panel);
    const int columns = problem_.panels.columns(panel) + (count == 2 ? problem_.panels.columns(panel + 1) : 0);
    const int step = tiles_.vectors * tiles_.lanes;
    Tile tile{};
    tile.b_stride = stride;
    if (count == 2) tile.b_next = problem_.panels.offset(1);
    tile.a_offset = group * problem_.group_input;
    tile.epilogue = problem_.epilogue;
    tile.integers = problem_.integers;
    tile.where = &scratch_.where;
    tile.partial_stride = static_cast<int64_t>(count) * problem_.blocking.width;
    tile.b_rows = problem_.panels.k;
    tile.configured = matrices_.code();
    tile.depth = depth_;
    for (int c = 0; c < columns; c += step) {
      tile.columns = std::min(step, columns - c);
      tile.column = group * problem_.panels.n + panel * problem_.panels.width + c;
      tile.b = b + c;
      const float* panel_end = b + problem_.panels.k * stride;
      run_k_blocks(tile, c + step >= columns && more ? panel_end : nullptr);
    }
  }

  // `next` is what will be read when this panel is done, if anything.
  void run_k_blocks(Tile& tile, const float* next) {
    const int64_t k_block = problem_.blocking.k_block ? problem_.blocking.k_block : problem_.panels.k;
    int64_t first = 0;
    do {
      int64_t last = first, depth = 0;
      do depth += problem_.taps[last++].depth;
      while (last < problem_.needs.taps && depth + problem_.taps[last].depth <= k_block);
      const bool final_block = last == problem_.needs.taps;
      tile.load_partial = first > 0;
      tile.store_partial = !final_block;
      const float* upcoming = final_block ? next : tile.b + problem_.taps[last].k * tile.b_stride;
      run_rows(tile, first, last, depth, upcoming);
      first = last;
    } while (first < problem_.needs.taps);
  }

  void run_rows(Tile& tile, int64_t first_tap, int64_t last_tap, int64_t depth, const float* upcoming) {
    const bool is_widest = tile.columns == tiles_.vectors * tiles_.lanes;
    const int vectors = is_widest ? tiles_.vectors : ceil_div(tile.columns, tiles_.lanes), most = most_rows(vectors);
    const int64_t rows = rows_end_ - rows_begin_;
    const int64_t unit = problem_.row_unit ? std::min(problem_.row_unit, rows) : rows;
    plan_prefetch(tile, problem_.blocks ? nullptr : upcoming, depth,
                  [&] { return tiles_of_rows(unit, most) * ceil_div(rows, unit); });
    for (int64_t begin = rows_begin_; begin < rows_end_; begin += unit) {
      const int64_t size = std::min(unit, rows_end_ - begin), tiles = tiles_of_rows(size, most);
      for (int64_t i = 0; i < tiles; ++i) {
        const Cut rows = cut(i, tiles, size);
        const int64_t row = begin + rows.begin;
        const int count = static_cast<int>(rows.end - rows.begin);
        tile.skipped = static_cast<int>(skipped_ + rows.skipped);
        if (row != filled_row_ || count != filled_count_) {
          filled_ = problem_.source->fill(row, count, scratch_);
          filled_row_ = row;
          filled_count_ = count;
          if (gathers_) gather(tile, count);
          a_distance_ =
              tiles_.gather && !problem_.blocks && (gathers_ || problem_.needs.lists == 1) ? distance(count) : 0;
          if (tile.skipped > 0) skip_rows(tile.skipped, count);
        }
        tile.a_rows = filled_.a_rows;
        tile.a_distance = a_distance_;
        tile.taps = filled_.taps + first_tap;
        tile.tap_count = gathers_ ? gathered_count_ : last_tap - first_tap;
        tile.rows = count;
        if (const PairBlocks* blocks = problem_.blocks) {
          tile.height = blocks->height;
          tile.block_group = blocks->group_floats();
          tile.a_blocks = problem_.a_blocks + row / blocks->height * blocks->group_floats();
        }
        tile.partial = partial_ + (row + rows.skipped - rows_begin_) * tile.partial_stride;
        tiles_.functions[vectors - 1][count - 1](tile);
        tile.prefetch += prefetch_step_;
      }
    }
  }

  // Of all rows of A; 0 where they differ.
  int64_t distance(int count) const {
    const auto to_next = [&](int r) {
      return reinterpret_cast<intptr_t>(filled_.a_rows[r + 1]) - reinterpret_cast<intptr_t>(filled_.a_rows[r]);
    };
    if (count == 1) return 1;
    bool is_even = true;
    for (int r = 1; !problem_.needs.is_even && r + 1 < count; ++r) is_even &= to_next(r) == to_next(0);
    return is_even ? to_next(0) : 0;
  }

  void gather(Tile tile, int count) {
    tile.a_rows = filled_.a_rows;
    tile.taps = filled_.taps;
    tile.tap_count = problem_.needs.taps;
    tile.rows = count;
    const int64_t k = problem_.panels.k, stride = gathered_stride(k);
    tiles_.gather(tile, gathered_, stride, zeros_first_);
    for (int r = 0; r < count; ++r) scratch_.a_rows[r] = gathered_ + r * stride;
    filled_ = {scratch_.a_rows, gathered_taps_};
  }

  void skip_rows(int skipped, int count) {
    const auto skip = [&](auto& rows) { std::copy(rows + skipped, rows + count, rows); };
    skip(scratch_.where.out);
    for (int i = 0; i < problem_.epilogue->count; ++i) skip(scratch_.where.operand[i]);
  }

  // Spreads the fetching of the next k block or panel evenly over the tiles of this one.
  template <class TileCount>
  void plan_prefetch(Tile& tile, const float* upcoming, int64_t depth, TileCount tile_count) {
    tile.prefetch_lines = 0;
    prefetch_step_ = 0;
    const int64_t steps = depth / 4;
    if (!upcoming || steps == 0) return;
    const int64_t lines = depth * tile.b_stride * kFloat / 64;
    const int64_t per_tile = ceil_div(lines, tile_count());
    tile.prefetch = reinterpret_cast<const char*>(upcoming);
    tile.prefetch_lines = static_cast<int>(std::min<int64_t>(ceil_div(per_tile, steps), 8));
    prefetch_step_ = tile.prefetch_lines * steps * 64;
  }

  const GemmProblem& problem_;
  const TileTable& tiles_;
  MatrixSetup matrices_;
  const int64_t per_group_;  // panels
  TileScratch scratch_;
  TileTaps filled_{};
  int64_t filled_row_ = -1;
  int filled_count_ = 0;
  bool gathers_ = false, zeros_first_ = false;
  int depth_ = 0;  // of a tile
  float* gathered_ = nullptr;
  Tap gathered_taps_[2]{};
  int gathered_count_ = 1;
  int64_t a_distance_ = 0;
  float* partial_ = nullptr;
  int64_t rows_begin_ = 0, rows_end_ = 0, skipped_ = 0;
  int64_t prefetch_step_ = 0;
};

// Whether threads that have such shares split floats.
bool is_split(const GemmProblem& problem, const SplitShare& share) {
  return problem.needs.may_split && usable_split_functions() && !problem.pairs && !problem.integers &&
         problem.groups == 1 && share.pays(problem.panels.k);
}

void run_share(const GemmProblem& problem, const Share& share, bool splits, std::byte* scratch) {
  if (!splits) return Worker(problem, scratch).run(share);
  const TileScratch taken = take_scratch(problem.needs, scratch);
  SplitWorker(problem, *usable_split_functions(), tiles_of(problem), taken, reinterpret_cast<float*>(scratch))
      .run(share);
}

}  // namespace

const SplitFunctions* usable_split_functions() {
  static const SplitFunctions* const functions = has_matrix_registers() ? LATHE_ISA_SELECT(split_functions)() : nullptr;
  return functions;
}

bool valid(const Blocking& blocking) {
  return blocking.width >= kPanelQuantum && blocking.width <= kMaxTileColumns && blocking.width % kPanelQuantum == 0 &&
         blocking.rows >= 1 && blocking.rows <= kMaxTileRows && blocking.row_block >= 0 && blocking.k_block >= 0;
}

size_t scratch_bytes(const Blocking& blocking, int64_t rows, int64_t k, const Needs& needs) {
  const int64_t floats = gathered_floats(k, needs) + partial_floats(blocking, rows, k);
  const int64_t split = needs.may_split && usable_split_functions() ? SplitScratch(rows, k).end : 0;
  return static_cast<size_t>(round_up(list_bytes(needs), 64) + round_up(tap_bytes(needs), 64) +
                             round_up(needs.edge_floats * kFloat, 64) + round_up(std::max(floats, split) * kFloat, 64));
}

void run_problem_alone(const GemmProblem& problem, std::byte* scratch) {
  const bool splits = is_split(problem, {problem.rows, problem.panels, false, 1});
  run_share(problem, {0, problem.rows, 0, problem.groups * problem.panels.count()}, splits, scratch);
}

void run_panels_alone(const GemmProblem& problem, int64_t first, int64_t last, std::byte* scratch) {
  Worker(problem, scratch).run({0, problem.rows, first, last});
}

bool has_matrix_tiles(int64_t fours) { return matrix() && fills_matrix_registers(fours); }

const TileTable& pair_tiles() {
  static const TileTable& vectors = LATHE_ISA_SELECT(pair_tile_table)(multiplies_bf16());
  return matrix() ? matrix()->pairs : vectors;
}

int tile_columns() {
  static const TileTable& floats = LATHE_ISA_SELECT(tile_table)();
  return std::max(floats.vectors * floats.lanes, kPanelQuantum);
}

void run_problem(const GemmProblem& problem, std::byte* scratch, ThreadPool& pool) {
  const int64_t panels = problem.groups * problem.panels.count();
  const double flops = 2.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.panels.k) *
                       static_cast<double>(problem.panels.n * problem.groups);
  const int64_t unit = problem.row_unit ? problem.row_unit : 1;
  const int64_t units = ceil_div(problem.rows, unit);
  const size_t stride = scratch_bytes(problem.blocking, problem.rows, problem.panels.k, problem.needs);
  const SplitShare split_share(problem.rows, problem.panels, problem.blocking.split_columns, pool.size());
  const bool splits = is_split(problem, split_share);
  const bool by_columns = splits ? split_share.by_columns : problem.blocking.split_columns;
  const int64_t grain = flops < 2 * kMinParallelFlops ? INT64_MAX / 4 : 1;
  pool.parallel_for(by_columns ? panels : units, grain, [&](int64_t begin, int64_t end, int worker) {
    Share share{0, problem.rows, 0, panels};
    if (by_columns) {
      share.first_panel = begin;
      share.last_panel = end;
    } else {
      share.first_row = begin * unit;
      share.last_row = std::min(end * unit, problem.rows);
    }
    run_share(problem, share, splits, scratch + worker * stride);
  });
}

}  // namespace lathe::cpu::gemm
