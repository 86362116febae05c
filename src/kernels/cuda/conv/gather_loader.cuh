// SPDX-License-Identifier: Apache-2.0
// The input of a convolution as the left operand of a product, element by element: for few channels, planar images and
// pixels that no vector fits.
#pragma once

#include "conv/window.cuh"
#include "gemm/gemm.cuh"

namespace conv {

// K runs over the window's taps and, innermost, over kChannels. A thread has whole chunks of 16 bytes of its rows:
// the elements wait in registers while the block before is multiplied.
template <class X, class Panel, int kThreads, class Window, int kChannels>
class GatherLoader {
 public:
  LATHE_DEVICE_MEMBER void start(const X& x, const Pixels& pixels, long first_channel, const gemm::Block& block,
                                 long rows) {
    x_ = &x;
    k_ = static_cast<int>(block.k);
    LATHE_UNROLL
    for (int i = 0; i < kRowsPerThread; ++i) {
      const int row = row_of(i);
      rows_[i].exists = block.row + row < rows && row < Panel::kRows;
      const Corner corner = corner_of<Window>(pixels, rows_[i].exists ? block.row + row : 0);
      rows_[i].at = x.data + corner.image * x.stride(0) + first_channel * x.stride(1);
      LATHE_UNROLL
      for (int axis = 0; axis < 3; ++axis) {
        rows_[i].at += corner.at[axis] * axis_stride(x, axis);
        rows_[i].corner[axis] = corner.at[axis];
      }
    }
  }

  LATHE_DEVICE_MEMBER void fetch(char*, bool wanted) {
    LATHE_UNROLL
    for (int c = 0; c < kChunksPerThread; ++c) {
      const int k = k_ + chunk_of(c) * kWidth;
      Tap<Window> tap;
      tap.start(k / kChannels);
      int channel = k % kChannels;
      LATHE_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        const long offset = tap.offset(*x_) + channel * x_->stride(1);
        LATHE_UNROLL
        for (int i = 0; i < kRowsPerThread; ++i) {
          const bool inside = wanted && rows_[i].exists && tap.exists() && is_inside(*x_, rows_[i].corner, tap);
          elements_[i][c].at[e] = inside ? rows_[i].at[offset] : T{};
        }
        if (++channel == kChannels) {
          channel = 0;
          tap.next();
        }
      }
    }
    k_ += Panel::kColumns;
  }

  LATHE_DEVICE_MEMBER void place(char* panel) {
    LATHE_UNROLL
    for (int i = 0; i < kRowsPerThread; ++i) LATHE_UNROLL
    for (int c = 0; c < kChunksPerThread; ++c)
      if (row_of(i) < Panel::kRows)
        *reinterpret_cast<Chunk*>(panel + Panel::chunk_offset(row_of(i), chunk_of(c))) = elements_[i][c];
  }

  LATHE_DEVICE_MEMBER void finish(char*) {}

 private:
  using T = typename X::Type;
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
  using Chunk = Vec<T, kWidth>;
  // Threads are spread over rows first: a warp reads one element of neighbouring pixels.
  static constexpr int kRowThreads = kThreads < Panel::kRows ? kThreads : Panel::kRows;
  static constexpr int kRowsPerThread = (Panel::kRows + kRowThreads - 1) / kRowThreads;
  static constexpr int kChunkThreads = kThreads / kRowThreads;
  static constexpr int kChunksPerThread = Panel::kChunks / kChunkThreads;
  static_assert(kThreads % kRowThreads == 0 && Panel::kChunks % kChunkThreads == 0, "threads have equal shares");

  struct Row {
    const T* at;  // the corner's pixel
    int corner[3];
    bool exists;
  };

  LATHE_DEVICE_MEMBER static int row_of(int i) { return thread_x() % kRowThreads + i * kRowThreads; }
  LATHE_DEVICE_MEMBER static int chunk_of(int c) { return thread_x() / kRowThreads + c * kChunkThreads; }

  const X* x_;
  int k_;
  Row rows_[kRowsPerThread];
  Chunk elements_[kRowsPerThread][kChunksPerThread];
};

}  // namespace conv
