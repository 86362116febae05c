// SPDX-License-Identifier: Apache-2.0
// The input of a convolution as the left operand of a product: a row for each output pixel, K runs over the window's
// taps and, innermost, over the channels. Channels lie side by side in memory.
#pragma once

#include "conv/window.cuh"
#include "gemm/column_copies.cuh"
#include "gemm/dense_loader.cuh"
#include "gemm/gemm.cuh"

namespace conv {

// kChannels are read of each pixel; K counts kPadded, a multiple of kWidth. A thread copies one column of some rows, so
// it keeps one place in K and the corners of its rows.
template <class X, class Panel, int kThreads, int kWidth, class Window, int kChannels, int kPadded>
class WindowLoader {
 public:
  LATHE_DEVICE_MEMBER void start(const X& x, const Pixels& pixels, long first_channel, const gemm::Block& block,
                                 long rows) {
    x_ = &x;
    const long k = block.k + (kAligned ? 0 : Copies::column());
    channel_ = static_cast<int>(k % kPadded);
    tap_.start(static_cast<int>(k / kPadded));
    rows_left_ = gemm::min_of(rows - block.row, Panel::kRows);
    const long first_image = corner_of<Window>(pixels, block.row).image;
    base_ = x.data + first_image * x.stride(0) + first_channel;
    LATHE_UNROLL
    for (int i = 0; i < Copies::kPasses; ++i) {
      const Corner corner = corner_of<Window>(pixels, block.row + Copies::row_of(i));
      long offset = (corner.image - first_image) * x.stride(0);
      LATHE_UNROLL
      for (int axis = 0; axis < 3; ++axis) {
        offset += corner.at[axis] * axis_stride(x, axis);
        rows_[i].corner[axis] = corner.at[axis];
      }
      rows_[i].offset = static_cast<int>(offset);
    }
  }

  LATHE_DEVICE_MEMBER void fetch(char* panel, bool wanted) {
    panel += Panel::offset(Copies::row_of(0), Copies::column());
    const int channel = channel_ + (kAligned ? Copies::column() : 0);
    const T* at = base_ + (tap_.offset(*x_) + channel);
    const int width = kChannels % kWidth == 0 ? kWidth : gemm::clamp(kChannels - channel, kWidth);
    const int valid = wanted && tap_.exists() ? width : 0;
    LATHE_UNROLL
    for (int i = 0; i < Copies::kPasses; ++i) {
      if (Copies::kUneven && Copies::row_of(i) >= Panel::kRows) break;
      const bool inside = Copies::row_of(i) < rows_left_ && is_inside(*x_, rows_[i].corner, tap_);
      gemm::copy_elements<T, kWidth>(panel + Copies::bytes_ahead(i), at + rows_[i].offset, inside ? valid : 0);
    }
    channel_ += Panel::kColumns;
    if constexpr (kPadded >= Panel::kColumns) {
      if (channel_ >= kPadded) {
        channel_ -= kPadded;
        tap_.next();
      }
    } else {
      tap_.advance(channel_ / kPadded);
      channel_ %= kPadded;
    }
  }

  LATHE_DEVICE_MEMBER void place(char*) {}
  LATHE_DEVICE_MEMBER void finish(char*) {}

 private:
  using T = typename X::Type;
  using Copies = gemm::ColumnCopies<Panel, kThreads, kWidth>;

  // Whether a block's columns are all of one tap, which the block's threads share then.
  static constexpr bool kAligned = kPadded % Panel::kColumns == 0;

  struct Row {
    int offset;  // of the corner's pixel, from base_
    int corner[3];
  };

  const X* x_;
  const T* base_;
  Tap<Window> tap_;
  int channel_;  // of the thread's column, or, aligned, of the block's first
  int rows_left_;
  Row rows_[Copies::kPasses];
};

}  // namespace conv
