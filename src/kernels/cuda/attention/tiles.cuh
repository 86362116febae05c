// SPDX-License-Identifier: Apache-2.0
// Tiles of 16-bit rows in shared memory, and their fragments for mma.m16n8k16. Rows are padded by 16 bytes, so that
// ldmatrix has no bank conflicts.
#pragma once

#include "lib/computed.cuh"

template <class T, int Rows_, int Columns_>
struct Tile {
  static constexpr int kRows = Rows_, kColumns = Columns_, kPitch = Columns_ + 8;
  static constexpr int kElements = kRows * kPitch;
  T* data;

  // Rows first, first + 1, ... at c of the tensor's dimension 2; zeros beyond its end and beyond its last column.
  template <int Threads, class Tensor>
  LATHE_DEVICE_MEMBER void copy_from(const Tensor& tensor, const long (&c)[4], long first) const {
    constexpr int kChunks = kColumns / 8;
    const T* base = tensor.data + offset_of(tensor, c);
    const long rows = tensor.dim(2) - first;
    for (int i = thread_x(); i < kRows * kChunks; i += Threads) {
      const int row = i / kChunks, column = i % kChunks * 8;
      const bool inside = row < rows && column < tensor.dim(3);
      const T* from = inside ? base + (first + row) * tensor.stride(2) + column : base;
      copy_async16(data + row * kPitch + column, from, inside ? 16 : 0);
    }
  }

  // Once the thread's own copies of copy_from() with the same arguments have arrived, before others read them: what a
  // program makes of the elements. Zeros beyond the end stay.
  template <int Threads, class Tensor>
  LATHE_DEVICE_MEMBER void compute(const Tensor&, const long (&)[4], long) const {}
  template <int Threads, class Tensor, class Program>
  LATHE_DEVICE_MEMBER void compute(const Computed<Tensor, Program>& tensor, const long (&c)[4], long first) const {
    constexpr int kChunks = kColumns / 8;
    for (int i = thread_x(); i < kRows * kChunks; i += Threads) {
      const int row = i / kChunks, column = i % kChunks * 8;
      const long at[4] = {c[0], c[1], first + row, column};
      if (at[2] >= tensor.dim(2) || column >= tensor.dim(3)) continue;
      auto* elements = reinterpret_cast<Vec<T, 8>*>(data + row * kPitch + column);
      Vec<T, 8> values = *elements;
      float v[8];
      LATHE_UNROLL
      for (int j = 0; j < 8; ++j) v[j] = to_float(values.at[j]);
      tensor.program.template apply<3, 8>(v, at, 8);
      LATHE_UNROLL
      for (int j = 0; j < 8; ++j) values.at[j] = from_float<T>(v[j]);
      *elements = values;
    }
  }

  // 16 x 16 elements at (row, column) as operand a.
  LATHE_DEVICE_MEMBER void load_a(unsigned (&a)[4], int row, int column) const {
    ldmatrix_x4(a, data + (row + lane() % 16) * kPitch + column + lane() / 16 * 8);
  }
  // Rows row .. row + 15 as two operands b whose n are the rows and whose k are 16 columns.
  LATHE_DEVICE_MEMBER void load_b(unsigned (&b0)[2], unsigned (&b1)[2], int row, int column) const {
    unsigned r[4];
    ldmatrix_x4(r, data + (row + lane() / 16 * 8 + lane() % 8) * kPitch + column + lane() / 8 % 2 * 8);
    b0[0] = r[0], b0[1] = r[1], b1[0] = r[2], b1[1] = r[3];
  }
  // The same with the columns column .. column + 15 as n and 16 rows as k.
  LATHE_DEVICE_MEMBER void load_b_across(unsigned (&b0)[2], unsigned (&b1)[2], int row, int column) const {
    unsigned r[4];
    ldmatrix_x4_trans(r, data + (row + lane() % 16) * kPitch + column + lane() / 16 * 8);
    b0[0] = r[0], b0[1] = r[1], b1[0] = r[2], b1[1] = r[3];
  }
};
