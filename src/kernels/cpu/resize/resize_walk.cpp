// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/resize_walk.h"

#include <cstdlib>

namespace lathe::cpu::resizing {

ResizeWalk::ResizeWalk(const TensorArg& x, const TensorArg& y, uint32_t resized, const TapTables& tables) {
  WalkedAxis all[kMaxRank];
  int channel_dim = -1, row_dim = -1;
  for (int d = 0; d < y.rank; ++d) {
    all[d] = {y.dims[d], y.strides[d], x.dims[d], x.strides[d]};
    if (resized >> d & 1) {
      all[d].index = tables[d].index;
      all[d].weight = tables[d].weight;
      all[d].taps = tables[d].taps;
    } else if (y.strides[d] == 1 && x.strides[d] == 1 && (channel_dim < 0 || y.dims[d] > y.dims[channel_dim])) {
      channel_dim = d;
    }
  }
  int64_t all_taps = 1;
  for (int d = 0; d < y.rank; ++d) all_taps *= all[d].taps;
  // The row is the innermost dimension, or the one of most taps where there are many: its taps are not listed ahead.
  const auto precedes = [&](int d, int e) {
    return all_taps > kMaxBlend ? all[d].taps > all[e].taps : std::abs(y.strides[d]) <= std::abs(y.strides[e]);
  };
  for (int d = 0; d < y.rank; ++d)
    if (d != channel_dim && (row_dim < 0 || precedes(d, row_dim))) row_dim = d;
  for (int d = 0; d < y.rank; ++d) {
    if (d == channel_dim) {
      channels = all[d];
      continue;
    }
    total *= all[d].extent;
    if (d == row_dim) {
      row = all[d];
    } else {
      outer_taps *= all[d].taps;
      axes[others++] = all[d];
    }
  }
}

bool lies_otherwise(const TensorArg& x, const TensorArg& y) {
  for (int d = 0; d < y.rank; ++d)
    if (y.strides[d] == 1 && y.dims[d] > 1) return x.strides[d] != 1 && x.dims[d] > 1;
  return false;
}

TensorArg in_order_of(const TensorArg& y, const TensorArg& x) {
  int order[kMaxRank];
  for (int d = 0; d < x.rank; ++d) {
    int i = d;
    for (; i > 0 && std::abs(y.strides[order[i - 1]]) < std::abs(y.strides[d]); --i) order[i] = order[i - 1];
    order[i] = d;
  }
  TensorArg dense = x;
  int64_t stride = 1;
  for (int i = x.rank; i-- > 0; stride *= x.dims[order[i]]) dense.strides[order[i]] = stride;
  return dense;
}

}  // namespace lathe::cpu::resizing
