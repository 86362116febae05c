// SPDX-License-Identifier: Apache-2.0
// From a flat row number (a pixel of an image, a row of a batch of matrices) to offsets into several tensors at once.
#pragma once

#include <cstdint>

#include "device/cpu/kernel.h"

namespace lathe::cpu::gemm {

// Stream s of row r lies at sum(index[d] * strides[s][d]), index being r written in the mixed radix `sizes`.
template <int kStreams>
class RowMap {
 public:
  int streams = 0;

  bool even() const { return rank_ <= 1; }  // after collapse(): one stride from row to row
  void add_dim(int64_t size) {
    sizes_[rank_] = size;
    for (auto& stream : strides_) stream[rank_] = 0;
    ++rank_;
  }
  void set_stride(int stream, int dim, int64_t stride) { strides_[stream][dim] = stride; }
  // Merges neighbouring dimensions where every stream allows it. Call once, after all dimensions and strides.
  void collapse() {
    int kept = 0;
    for (int d = 1; d < rank_; ++d) {
      if (mergeable(kept, d)) {
        sizes_[kept] *= sizes_[d];
      } else {
        sizes_[++kept] = sizes_[d];
      }
      for (auto& stream : strides_) stream[kept] = stream[d];
    }
    rank_ = rank_ ? kept + 1 : 0;
  }
  // store(stream, i, offset of row first + i) for i < count, stream by stream.
  template <class Store>
  void fill(int64_t first, int count, Store&& store) const {
    if (even()) {
      for (int s = 0; s < streams; ++s) {
        int64_t offset = first * strides_[s][0];
        for (int i = 0; i < count; ++i, offset += strides_[s][0]) store(s, i, offset);
      }
      return;
    }
    int64_t index[kMaxRank] = {}, offset[kStreams] = {};
    for (int d = rank_ - 1; d >= 0; --d) {
      index[d] = d ? first % sizes_[d] : first;
      first = d ? first / sizes_[d] : 0;
      for (int s = 0; s < streams; ++s) offset[s] += index[d] * strides_[s][d];
    }
    for (int i = 0; i < count; ++i) {
      for (int s = 0; s < streams; ++s) store(s, i, offset[s]);
      step(index, offset);
    }
  }

 private:
  bool mergeable(int outer, int inner) const {
    for (int s = 0; s < streams; ++s)
      if (sizes_[outer] != 1 && strides_[s][outer] != strides_[s][inner] * sizes_[inner]) return false;
    return true;
  }
  void step(int64_t* index, int64_t* offset) const {
    for (int d = rank_ - 1; d >= 0; --d) {
      for (int s = 0; s < streams; ++s) offset[s] += strides_[s][d];
      if (++index[d] < sizes_[d] || d == 0) return;
      for (int s = 0; s < streams; ++s) offset[s] -= index[d] * strides_[s][d];
      index[d] = 0;
    }
  }

  int rank_ = 0;
  int64_t sizes_[kMaxRank] = {};
  int64_t strides_[kStreams][kMaxRank] = {};
};

}  // namespace lathe::cpu::gemm
