// SPDX-License-Identifier: Apache-2.0
// Rows of attention of which several have weighed keys of their own: what each leaves to the others.
#pragma once

#include "attention/logits.cuh"

// Four columns of a row.
struct Merged {
  RunningSoftmax row;
  Vec<float, 4> sums;
};

// Where the softmax of Rows rows is, and their sums of Columns columns of values by weights, relative to the largest.
template <int Rows, int Columns>
struct Partial {
  static constexpr int kSize = Rows * (Columns + 2);  // floats
  float* data;

  LATHE_DEVICE_MEMBER RunningSoftmax row(int at) const { return {data[2 * at], data[2 * at + 1]}; }
  LATHE_DEVICE_MEMBER void put(int at, const RunningSoftmax& row) const {
    data[2 * at] = row.largest, data[2 * at + 1] = row.sum;
  }
  LATHE_DEVICE_MEMBER float* sums(int at) const { return data + 2 * Rows + at * Columns; }
};

template <int Count, class PartOf>
LATHE_DEVICE float largest_of(const PartOf& part_of, int row) {
  float largest = -infinity();
  LATHE_UNROLL
  for (int i = 0; i < Count; ++i) largest = fmaxf(largest, part_of(i).row(row).largest);
  return largest;
}

// Of Count parts.
template <int Count, class PartOf>
LATHE_DEVICE Merged merge(const PartOf& part_of, int row, int column) {
  Merged merged{{largest_of<Count>(part_of, row), 0.0f}, {}};
  LATHE_UNROLL
  for (int i = 0; i < Count; ++i) {
    const RunningSoftmax own = part_of(i).row(row);
    const float factor = exp2_fast(own.largest - merged.row.base());
    const auto sums = *reinterpret_cast<const Vec<float, 4>*>(part_of(i).sums(row) + column);
    merged.row.sum += factor * own.sum;
    LATHE_UNROLL
    for (int j = 0; j < 4; ++j) merged.sums.at[j] += factor * sums.at[j];
  }
  return merged;
}
