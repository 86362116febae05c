// SPDX-License-Identifier: Apache-2.0
// How kernel `resize` goes through its output.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/kernel.h"

namespace lathe::cpu::resizing {

inline constexpr int kMaxBlend = 256;  // taps of one output element, over all axes, that are blended at once

// One dimension of the output; a dimension that is not resized has one tap of its own index.
struct WalkedAxis {
  int64_t extent, y_stride;
  int64_t x_extent, x_stride;
  const int32_t* index = nullptr;
  const void* weight = nullptr;
  int64_t taps = 1;

  int64_t offset(int64_t j, int64_t tap) const {
    const int64_t source = index ? std::clamp<int64_t>(index[j * taps + tap], 0, x_extent - 1) : j;
    return source * x_stride;
  }
  template <class W>
  W weight_at(int64_t j, int64_t tap) const {
    return weight ? static_cast<const W*>(weight)[j * taps + tap] : W{1};
  }
};

// The tables of the dimensions; those that are not resized have none. Weights are f64 where levels are summed, else
// f32.
struct TapTable {
  const int32_t* index = nullptr;
  const void* weight = nullptr;
  int64_t taps = 1;
};
using TapTables = TapTable[kMaxRank];

// The dimensions in the order of the walk: others, the row, and the contiguous channels.
struct ResizeWalk {
  WalkedAxis axes[kMaxRank + 2];
  int others = 0;
  WalkedAxis row{1, 0, 1, 0}, channels{1, 1, 1, 1};
  int64_t total = 1;       // of all but the channels
  int64_t outer_taps = 1;  // product over the others

  ResizeWalk(const TensorArg& x, const TensorArg& y, uint32_t resized, const TapTables& tables);
  // Whether the row is best interpolated as a whole: first across the other dimensions, then along itself.
  bool by_rows() const { return channels.extent == 1 && row.x_stride == 1 && row.index; }
};

// Rows are fast where they are contiguous in x and y alike: an x that lies in another order is copied first.
bool lies_otherwise(const TensorArg& x, const TensorArg& y);

// A dense tensor of x's dims in y's order, without memory yet.
TensorArg in_order_of(const TensorArg& y, const TensorArg& x);

// The taps of all dimensions but the row, for one row.
template <class W>
struct RowTaps {
  int64_t count = 1;
  int64_t offsets[kMaxBlend] = {0};
  W weights[kMaxBlend] = {1};
};

// Returns the offset of the row in y.
template <class W>
int64_t collect(const ResizeWalk& walk, int64_t row, RowTaps<W>& taps) {
  int64_t target = 0;
  taps.count = 1;
  taps.offsets[0] = 0;
  taps.weights[0] = 1;
  for (int d = walk.others - 1; d >= 0; --d) {
    const WalkedAxis& axis = walk.axes[d];
    const int64_t j = row % axis.extent;
    row /= axis.extent;
    target += j * axis.y_stride;
    for (int64_t t = axis.taps - 1; t >= 0; --t)  // the first tap last: it overwrites what the others start from
      for (int64_t i = 0; i < taps.count; ++i) {
        taps.offsets[t * taps.count + i] = taps.offsets[i] + axis.offset(j, t);
        taps.weights[t * taps.count + i] = taps.weights[i] * axis.weight_at<W>(j, t);
      }
    taps.count *= axis.taps;
  }
  return target;
}

}  // namespace lathe::cpu::resizing
