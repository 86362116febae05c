// SPDX-License-Identifier: Apache-2.0
// Tiles of rows in shared memory, and their fragments for mma: m16n8k32 of 8-bit floats, m16n8k16 of 16-bit floats,
// m16n8k8 of f32 as TF32. Rows are padded by 16 bytes, so that ldmatrix has no bank conflicts.
#pragma once

#include "lib/computed.cuh"
#include "lib/paged.cuh"

// d += a b for 16 rows, 8 columns, and as much of K as 32 bytes hold.
template <class T>
LATHE_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (is_same<T, float>)
    mma_m16n8k8_tf32(d, a, b);
  else if constexpr (is_float8<T>)
    mma_m16n8k32(d, a, b, T{});
  else
    mma_m16n8k16(d, a, b, T{});
}

// As an operand of a product.
template <class T>
LATHE_DEVICE T as_operand(float value) {
  if constexpr (is_same<T, float>)
    return bit_cast<float>(tf32_bits(value));
  else
    return from_float<T>(value);
}

template <class T, int Rows_, int Columns_>
struct Tile {
  static constexpr int kVector = 16 / static_cast<int>(sizeof(T));  // elements of 16 bytes
  static constexpr int kDepth = 2 * kVector;                        // K of one mma
  static constexpr int kRows = Rows_, kColumns = Columns_, kPitch = Columns_ + kVector;
  static constexpr int kElements = kRows * kPitch;
  T* data;

  // Rows first, first + 1, ... at c of the tensor's dimension 2; zeros beyond its end and beyond its last column.
  template <int Threads, class Tensor>
  LATHE_DEVICE_MEMBER void copy_from(const Tensor& tensor, const long (&c)[4], long first) const {
    constexpr int kChunks = kColumns / kVector;
    const T* base = tensor.data + offset_of(tensor, c);
    const long rows = tensor.dim(2) - first;
    for (int i = thread_x(); i < kRows * kChunks; i += Threads) {
      const int row = i / kChunks, column = i % kChunks * kVector;
      const bool inside = row < rows && column < tensor.dim(3);
      const T* from = inside ? base + (first + row) * tensor.stride(2) + column : base;
      copy_async16(data + row * kPitch + column, from, inside ? 16 : 0);
    }
  }

  template <int Threads, class Pool, class Table>
  LATHE_DEVICE_MEMBER void copy_from(const Paged<Pool, Table>& tensor, const long (&c)[4], long first) const {
    constexpr int kChunks = kColumns / kVector;
    for (int i = thread_x(); i < kRows * kChunks; i += Threads) {
      const int row = i / kChunks, column = i % kChunks * kVector;
      const long wanted[4] = {c[0], c[1], first + row, column};
      long at[4];
      const bool inside = wanted[2] < tensor.dim(2) && column < tensor.dim(3) && tensor.find(wanted, at);
      const T* from = tensor.pool.data + (inside ? offset_of(tensor.pool, at) : 0);
      copy_async16(data + row * kPitch + column, from, inside ? 16 : 0);
    }
  }

  // Once the thread's own copies of copy_from() with the same arguments have arrived, before others read them: what a
  // program makes of the elements, and f32 rounded to TF32. Zeros beyond the end stay.
  template <int Threads, class Tensor>
  LATHE_DEVICE_MEMBER void compute(const Tensor& tensor, const long (&c)[4], long first) const {
    if constexpr (is_same<T, float>) change<Threads>(tensor, c, first, [](float(&)[kVector], const long(&)[4]) {});
  }
  template <int Threads, class Tensor, class Program>
  LATHE_DEVICE_MEMBER void compute(const Computed<Tensor, Program>& tensor, const long (&c)[4], long first) const {
    change<Threads>(tensor, c, first, [&](float(&v)[kVector], const long(&at)[4]) {
      tensor.program.template apply<3, kVector>(v, at, kVector);
    });
  }

  template <int Threads, class Tensor, class Change>
  LATHE_DEVICE_MEMBER void change(const Tensor& tensor, const long (&c)[4], long first, const Change& change) const {
    constexpr int kChunks = kColumns / kVector;
    for (int i = thread_x(); i < kRows * kChunks; i += Threads) {
      const int row = i / kChunks, column = i % kChunks * kVector;
      const long at[4] = {c[0], c[1], first + row, column};
      if (at[2] >= tensor.dim(2) || column >= tensor.dim(3)) continue;
      auto* elements = reinterpret_cast<Vec<T, kVector>*>(data + row * kPitch + column);
      Vec<T, kVector> values = *elements;
      float v[kVector];
      LATHE_UNROLL
      for (int j = 0; j < kVector; ++j) v[j] = to_float(values.at[j]);
      change(v, at);
      LATHE_UNROLL
      for (int j = 0; j < kVector; ++j) values.at[j] = as_operand<T>(v[j]);
      *elements = values;
    }
  }

  // 16 rows by kDepth elements at (row, column) as operand a.
  LATHE_DEVICE_MEMBER void load_a(unsigned (&a)[4], int row, int column) const {
    ldmatrix_x4(a, data + (row + lane() % 16) * kPitch + column + lane() / 16 * kVector);
  }
  // Rows row .. row + 15 as two operands b whose n are the rows and whose k are kDepth columns.
  LATHE_DEVICE_MEMBER void load_b(unsigned (&b0)[2], unsigned (&b1)[2], int row, int column) const {
    unsigned r[4];
    ldmatrix_x4(r, data + (row + lane() / 16 * 8 + lane() % 8) * kPitch + column + lane() / 8 % 2 * kVector);
    b0[0] = r[0], b0[1] = r[1], b1[0] = r[2], b1[1] = r[3];
  }
  // The same with the columns column .. column + 15 as n and kDepth rows as k. Of f32, k and k + 4 are the rows 2k and
  // 2k + 1, as weights have them (see weights_of()). Of 8-bit floats, each four of k are 2j, 2j + 1, 2j + 8 and 2j + 9
  // of 16 rows, as weights have them, too; b0 has the even columns and b1 the odd ones.
  LATHE_DEVICE_MEMBER void load_b_across(unsigned (&b0)[2], unsigned (&b1)[2], int row, int column) const {
    if constexpr (is_same<T, float>) {
      const T* from = data + (row + lane() % 4 * 2) * kPitch + column + lane() / 4;
      b0[0] = bit_cast<unsigned>(from[0]), b0[1] = bit_cast<unsigned>(from[kPitch]);
      b1[0] = bit_cast<unsigned>(from[8]), b1[1] = bit_cast<unsigned>(from[kPitch + 8]);
    } else if constexpr (is_float8<T>) {
      unsigned r[4];  // of each eight rows, those 2j and 2j + 1 of two neighbouring columns
      ldmatrix_x4_trans(r, data + (row + lane()) * kPitch + column);
      LATHE_UNROLL
      for (int i = 0; i < 2; ++i) {
        b0[i] = permute_bytes<0x6420>(r[2 * i], r[2 * i + 1]);
        b1[i] = permute_bytes<0x7531>(r[2 * i], r[2 * i + 1]);
      }
    } else {
      unsigned r[4];
      ldmatrix_x4_trans(r, data + (row + lane() % 16) * kPitch + column + lane() / 16 * 8);
      b0[0] = r[0], b0[1] = r[1], b1[0] = r[2], b1[1] = r[3];
    }
  }
};
