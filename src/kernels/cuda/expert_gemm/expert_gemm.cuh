// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts. A tile's rows are those of one expert, wherever they lie; how many tiles
// there are is known on the device alone, so that a launch has blocks for as many as there can be, and those without
// one leave at once.
#pragma once

#include "gemm/gemm.cuh"

namespace expert_gemm {

// Of a row, or `experts` where its id is none's. kStrict: negative ids count from the end. `ids` has the rows'
// dimensions.
template <bool kStrict, class Ids>
LATHE_DEVICE int expert_of(const Ids& ids, long row, int experts) {
  long c[Ids::kRank];
  unflatten(ids, row, c);
  long id = static_cast<long>(ids.data[offset_of(ids, c)]);
  if (kStrict && id < 0) id += experts;
  return id >= 0 && id < experts ? static_cast<int>(id) : experts;
}

// Rows [first, end) of `order`, of one expert. Those of none are a part, too: their sums are 0.
struct Part {
  int expert, first, end;
  const int* order;
};

// By one block. Writes the numbers of all rows in the order of their experts, how many parts of kRows rows they make,
// and the parts: expert, first and end of each.
template <int kRows, bool kStrict, class Ids>
LATHE_DEVICE void sort_rows(const Ids& ids, long rows, int experts, int* schedule) {
  dependency_wait();
  int* next = reinterpret_cast<int*>(dynamic_shared());  // how many rows an expert has; then where the next one goes
  for (int e = thread_x(); e <= experts; e += block_threads()) next[e] = 0;
  barrier();
  for (long row = thread_x(); row < rows; row += block_threads())
    atomic_add(next + expert_of<kStrict>(ids, row, experts), 1);
  barrier();
  if (warp() == 0) {
    int rows_before = 0, parts_before = 0;
    for (int first = 0; first <= experts; first += 32) {
      const int expert = first + lane();
      const int own_rows = expert <= experts ? next[expert] : 0, own_parts = (own_rows + kRows - 1) / kRows;
      int row = own_rows, part = own_parts;
      LATHE_UNROLL
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other_row = shuffle_up(row, distance), other_part = shuffle_up(part, distance);
        if (lane() >= distance) row += other_row, part += other_part;
      }
      const int all_rows = shuffle_idx(row, 31), all_parts = shuffle_idx(part, 31);
      row += rows_before - own_rows, part += parts_before - own_parts;
      if (expert <= experts) next[expert] = row;
      for (int i = 0; i < own_parts; ++i) {
        int* to = schedule + rows + 1 + 3 * static_cast<long>(part + i);
        const int left = own_rows - i * kRows;
        to[0] = expert, to[1] = row + i * kRows, to[2] = to[1] + (left < kRows ? left : kRows);
      }
      rows_before += all_rows, parts_before += all_parts;
    }
    if (lane() == 0) schedule[rows] = parts_before;
  }
  barrier();
  for (long row = thread_x(); row < rows; row += block_threads())
    schedule[atomic_add(next + expert_of<kStrict>(ids, row, experts), 1)] = static_cast<int>(row);
}

// The part of that number, of rows that are sorted; false = there is none.
LATHE_DEVICE bool find_sorted(const int* schedule, long rows, int number, Part& part) {
  dependency_wait();
  if (number >= schedule[rows]) return false;
  const int* from = schedule + rows + 1 + 3 * static_cast<long>(number);
  part = {from[0], from[1], from[2], schedule};
  return true;
}

// Of few rows, which each block looks through: of kRows neighbours those that have the expert of row `number`, unless
// that is another's part already. `order` is shared memory.
template <int kRows, bool kStrict, class Ids>
LATHE_DEVICE bool find_among_few(const Ids& ids, long rows, int experts, int number, int* order, Part& part) {
  static_assert(kRows <= 32, "a row for each lane");
  dependency_wait();
  const int own = number % kRows;
  const long row = number - own + lane();
  const int expert = lane() < kRows && row < rows ? expert_of<kStrict>(ids, row, experts) : -1;
  const bool is_alike = expert == shuffle_idx(expert, own);
  const unsigned alike = ballot(is_alike);
  if ((alike & ((1u << own) - 1)) != 0) return false;
  if (warp() == 0 && is_alike) order[count_bits(alike & ((1u << lane()) - 1))] = static_cast<int>(row);
  barrier();
  part = {shuffle_idx(expert, own), 0, count_bits(alike), order};
  return true;
}

template <class Tile>
LATHE_DEVICE gemm::Block block_of(const Part& part, int experts, long column_tile, int split, int splits, long k) {
  const int total = part.expert < experts ? static_cast<int>((k + Tile::kK - 1) / Tile::kK) : 0;
  const int share = (total + splits - 1) / splits;
  gemm::Block block;
  block.row = part.first;
  block.column = column_tile * Tile::kN;
  block.batch = 0;
  block.split = split;
  block.k = static_cast<long>(split) * share * Tile::kK;
  block.blocks = gemm::clamp(total - split * share, share);
  return block;
}

// The part's rows in the output, whose last dimension is D.
template <int D>
struct PartRows {
  static constexpr bool kAll = true;
  const int* order;

  template <class Out, int N>
  LATHE_DEVICE_MEMBER bool coordinates(const Out& out, long row, long (&c)[N]) const {
    gemm::row_coordinates<D, 1>(out, order[row], c);
    return true;
  }
};

// Its rows as the left operand. The last dimension of X is K; every row begins at a multiple of kWidth elements.
template <class X, class Panel, int kThreads, int kWidth>
class RowLoader {
 public:
  LATHE_DEVICE_MEMBER void start(const X& x, const Part& part, const gemm::Block& block, long columns) {
    at_ = x.data;
    column_ = static_cast<int>(block.k) + Copies::column();
    columns_ = static_cast<int>(columns);
    rows_left_ = part.end - part.first;
    LATHE_UNROLL
    for (int i = 0; i < Copies::kPasses; ++i) {
      const int row = Copies::row_of(i) < rows_left_ ? part.order[part.first + Copies::row_of(i)] : 0;
      rows_[i] = static_cast<int>(gemm::place_of<0, X::kRank - 1>(x, static_cast<unsigned>(row)) / kWidth);
    }
  }

  LATHE_DEVICE_MEMBER void fetch(char* panel, bool wanted) {
    panel += Panel::offset(Copies::row_of(0), Copies::column());
    const int valid = wanted ? gemm::clamp(columns_ - column_, kWidth) : 0;
    LATHE_UNROLL
    for (int i = 0; i < Copies::kPasses; ++i) {
      if (Copies::kUneven && Copies::row_of(i) >= Panel::kRows) break;
      gemm::copy_elements<typename X::Type, kWidth>(panel + Copies::bytes_ahead(i),
                                                    at_ + static_cast<long>(rows_[i]) * kWidth + column_,
                                                    Copies::row_of(i) < rows_left_ ? valid : 0);
    }
    column_ += Panel::kColumns;
  }

  LATHE_DEVICE_MEMBER void place(char*) {}
  LATHE_DEVICE_MEMBER void finish(char*) {}

 private:
  using Copies = gemm::ColumnCopies<Panel, kThreads, kWidth>;
  const typename X::Type* at_;
  int rows_[Copies::kPasses];  // where they begin, in copies
  int rows_left_;
  int column_, columns_;
};

}  // namespace expert_gemm
