// SPDX-License-Identifier: Apache-2.0
// A dense left operand that a program computes: each thread changes the elements that it copied, in the panel, once
// they have arrived and before the others see them.
#pragma once

#include "gemm/dense_loader.cuh"
#include "lib/tensor.cuh"

namespace gemm {

// The rows are numbered through the dimensions Rows (an index list), the last fastest; the program's coordinates are
// those and the column.
template <class Dense, class Program, class Rows>
class ProgramLoader : public Dense {
 public:
  LATHE_DEVICE_MEMBER ProgramLoader(const Program& program, const Rows& dims) : program_(program), dims_(dims) {}

  LATHE_DEVICE_MEMBER void start_program(long row, long rows, long column, long columns) {
    row_ = static_cast<unsigned>(row);
    rows_ = static_cast<unsigned>(rows);
    column_ = static_cast<int>(column);
    columns_ = static_cast<int>(columns);
  }

  LATHE_DEVICE_MEMBER void finish(char* panel) {
    LATHE_UNROLL
    for (int i = 0; i < Dense::kPasses; ++i) {
      if (Dense::kUneven && Dense::row_of(i) >= Panel::kRows) break;
      const unsigned row = row_ + static_cast<unsigned>(Dense::row_of(i));
      const int column = column_ + Dense::column_of(i);
      if (row < rows_ && column < columns_)
        change(panel + Panel::offset(Dense::row_of(i), Dense::column_of(i)), row, column);
    }
    column_ += Panel::kColumns;
  }

 private:
  using T = typename Dense::Element;
  using Panel = typename Dense::Block;
  static constexpr int kWidth = Dense::kAtOnceInRow, kLast = Program::kCoordinates - 1;

  LATHE_DEVICE_MEMBER void change(char* at, unsigned row, int column) {
    auto* elements = reinterpret_cast<Vec<T, kWidth>*>(at);
    Vec<T, kWidth> values = *elements;
    float v[kWidth];
    LATHE_UNROLL
    for (int e = 0; e < kWidth; ++e) v[e] = to_float(values.at[e]);
    long c[Program::kCoordinates];
    LATHE_UNROLL
    for (int d = kLast - 1; d > 0; --d) {
      const auto extent = static_cast<unsigned>(dims_(d));
      c[d] = row % extent;
      row /= extent;
    }
    c[0] = row;
    c[kLast] = column;
    const int count = columns_ - column < kWidth ? columns_ - column : kWidth;
    program_.template apply<kLast, kWidth>(v, c, count);
    LATHE_UNROLL
    for (int e = 0; e < kWidth; ++e)
      if (e < count) values.at[e] = from_float<T>(v[e]);  // what lies behind the last column stays zero
    *elements = values;
  }

  const Program& program_;
  const Rows& dims_;
  unsigned row_, rows_;
  int column_, columns_;
};

}  // namespace gemm
