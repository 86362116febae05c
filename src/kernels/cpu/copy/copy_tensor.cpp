// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "base/for_size.h"
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/transpose.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskBytes = 48 << 10;  // about 5 us of copying
constexpr int64_t kTile = 64;                // elements on a side of a transposed piece

// A rows x columns piece; strides in elements.
template <class T>
struct Piece {
  T* target;
  const T* source;
  int64_t target_row, target_column;
  int64_t source_row, source_column;
};

template <class T>
void copy_rows(const Piece<T>& p, int64_t rows, int64_t columns) {
  const bool dense = p.target_column == 1 && p.source_column == 1;
  const auto bytes = static_cast<size_t>(columns) * sizeof(T);
  for (int64_t r = 0; r < rows; ++r) {
    T* target = p.target + r * p.target_row;
    const T* source = p.source + r * p.source_row;
    if (dense && bytes >= 64) {
      std::memmove(target, source, bytes);  // the same memory when a copy is in place
    } else if (p.source_column == 0 && p.target_column == 1) {
      std::fill_n(target, columns, *source);
    } else if (dense) {
      for (int64_t c = 0; c < columns; ++c) target[c] = source[c];
    } else {
      for (int64_t c = 0; c < columns; ++c) target[c * p.target_column] = source[c * p.source_column];
    }
  }
}

// target(r, c) with columns contiguous, source(r, c) with rows contiguous.
template <class T>
void copy_transposed(const Piece<T>& p, int64_t rows, int64_t columns) {
  if constexpr (sizeof(T) == 4) {
    static const auto transpose = LATHE_ISA_SELECT(transpose_floats);
    transpose(reinterpret_cast<float*>(p.target), p.target_row, reinterpret_cast<const float*>(p.source),
              p.source_column, rows, columns);
  } else {
    for (int64_t r0 = 0; r0 < rows; r0 += kTile)
      for (int64_t c0 = 0; c0 < columns; c0 += kTile)
        for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
          for (int64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
            p.target[r * p.target_row + c] = p.source[c * p.source_column + r];
  }
}

// The nest with the loop that the source walks contiguously made the second from the inside; false if there is none.
bool arrange_transposed(LoopNest& nest) {
  const int inner = nest.rank - 1;
  if (nest.strides[0][inner] != 1 || nest.strides[1][inner] == 1 || nest.strides[1][inner] == 0) return false;
  for (int d = 0; d < inner; ++d) {
    if (nest.strides[1][d] != 1) continue;
    std::rotate(nest.dims + d, nest.dims + d + 1, nest.dims + inner);
    for (int k = 0; k < 2; ++k) std::rotate(nest.strides[k] + d, nest.strides[k] + d + 1, nest.strides[k] + inner);
    return true;
  }
  return false;
}

template <class T>
void copy_as(const TensorArg& target, const TensorArg& source, ThreadPool& pool) {
  LoopNest nest = make_loop_nest({&target, 1}, {&source, 1});
  const bool transposed = arrange_transposed(nest);
  const int column_dim = nest.rank - 1, row_dim = nest.rank - 2;
  const int64_t columns = nest.dims[column_dim], rows = row_dim < 0 ? 1 : nest.dims[row_dim];
  int64_t total_rows = 1;
  for (int d = 0; d < column_dim; ++d) total_rows *= nest.dims[d];
  // Few long rows are divided; a transposed piece keeps whole rows, for its tiles need several of them.
  const int64_t grain = std::max<int64_t>(1, kMinTaskBytes / static_cast<int64_t>(sizeof(T)));
  const int64_t pieces = transposed || total_rows >= 4 * pool.size() ? 1 : ceil_div(columns, grain);

  const auto block = [&](int64_t row, int64_t count, int64_t column, int64_t width) {
    int64_t offsets[2];
    nest.offsets(column_dim, row, offsets);
    const Piece<T> piece{target.as<T>() + offsets[0] + column * nest.strides[0][column_dim],
                         source.as<T>() + offsets[1] + column * nest.strides[1][column_dim],
                         row_dim < 0 ? 0 : nest.strides[0][row_dim],
                         nest.strides[0][column_dim],
                         row_dim < 0 ? 0 : nest.strides[1][row_dim],
                         nest.strides[1][column_dim]};
    transposed ? copy_transposed(piece, count, width) : copy_rows(piece, count, width);
  };
  const int64_t units = total_rows * pieces;
  const int64_t unit_grain = std::max<int64_t>(1, grain * pieces / columns);
  pool.parallel_for(units, unit_grain, [&](int64_t begin, int64_t end, int) {
    const auto column_at = [&](int64_t piece) { return columns * piece / pieces; };
    for (int64_t unit = begin; unit < end;) {
      const int64_t row = unit / pieces, piece = unit % pieces;
      if (pieces > 1) {
        block(row, 1, column_at(piece), column_at(piece + 1) - column_at(piece));
        ++unit;
      } else {
        const int64_t count = std::min(rows - row % rows, end - unit);
        block(row, count, 0, columns);
        unit += count;
      }
    }
  });
}

}  // namespace

void copy_tensor(const TensorArg& target, const TensorArg& source, ThreadPool& pool) {
  if (target.volume() == 0) return;
  for_size(size_of(target.dtype), [&](auto zero) { copy_as<decltype(zero)>(target, source, pool); });
}

void fill_tensor(const TensorArg& target, uint64_t bits, ThreadPool& pool) {
  TensorArg value;
  value.dtype = target.dtype;
  value.data = &bits;  // little endian: the low bytes come first
  copy_tensor(target, value, pool);
}

}  // namespace lathe::cpu
