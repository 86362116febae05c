// SPDX-License-Identifier: Apache-2.0
// A left operand whose rows or columns are collapsed from axes at several strides: heads that are merged as they are
// read.
#pragma once

#include "gemm/column_copies.cuh"
#include "gemm/dense_loader.cuh"

namespace gemm {

// Where `index` lies, which numbers the dimensions [kFirst, kEnd) of x through, the last fastest.
template <int kFirst, int kEnd, class X>
LATHE_DEVICE long place_of(const X& x, unsigned index) {
  long place = 0;
  LATHE_UNROLL
  for (int i = kEnd - 1; i > kFirst; --i) {
    const auto extent = static_cast<unsigned>(x.dim(i));
    place += static_cast<long>(index % extent) * x.stride(i);
    index /= extent;
  }
  return place + static_cast<long>(index) * x.stride(kFirst);
}

// The first kRowAxes dimensions of X are the rows, the others K; every place at a multiple of kWidth columns is a
// multiple of kWidth. A thread keeps the places of its rows.
template <class X, int kRowAxes, class Panel, int kThreads, int kWidth>
class CollapsedLoader {
 public:
  // `data` is the batch's matrix.
  LATHE_DEVICE_MEMBER void start(const X& x, const typename X::Type* data, long row, long rows, long column,
                                 long columns) {
    x_ = &x;
    column_ = static_cast<int>(column) + Copies::column();
    columns_ = static_cast<int>(columns);
    rows_left_ = min_of(rows - row, Panel::kRows);
    const long first = place_of_row(row);
    at_ = data + first;
    LATHE_UNROLL
    for (int i = 0; i < Copies::kPasses; ++i)
      rows_[i] = static_cast<int>((place_of_row(row + Copies::row_of(i)) - first) / kWidth);
  }

  LATHE_DEVICE_MEMBER void fetch(char* panel, bool wanted) {
    panel += Panel::offset(Copies::row_of(0), Copies::column());
    const auto* at = at_ + place_of<kRowAxes, X::kRank>(*x_, static_cast<unsigned>(column_));
    const int valid = wanted && column_ < columns_ ? kWidth : 0;
    LATHE_UNROLL
    for (int i = 0; i < Copies::kPasses; ++i) {
      if (Copies::kUneven && Copies::row_of(i) >= Panel::kRows) break;
      copy_elements<typename X::Type, kWidth>(panel + Copies::bytes_ahead(i), at + static_cast<long>(rows_[i]) * kWidth,
                                              Copies::row_of(i) < rows_left_ ? valid : 0);
    }
    column_ += Panel::kColumns;
  }

  LATHE_DEVICE_MEMBER void place(char*) {}
  LATHE_DEVICE_MEMBER void finish(char*) {}

 private:
  using Copies = ColumnCopies<Panel, kThreads, kWidth>;

  LATHE_DEVICE_MEMBER long place_of_row(long row) const {
    return place_of<0, kRowAxes>(*x_, static_cast<unsigned>(row));
  }

  const X* x_;
  const typename X::Type* at_;  // the block's first row
  int rows_[Copies::kPasses];   // from there, in copies
  int rows_left_;
  int column_, columns_;
};

}  // namespace gemm
