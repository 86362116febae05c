// SPDX-License-Identifier: Apache-2.0
// The windows of a convolution in a tile of its input that lies in shared memory: rows of pixels, each of kPitch
// elements. K runs over runs of neighbouring elements, each a whole number of words of 32 bits: the rows of a window
// or, where its taps lie apart, its taps. Eight words are a step of the matrix units, of which a thread has two.
#pragma once

#include "conv/window.cuh"

namespace conv_stem {

template <class T, class Window, int kPitch_, int kTileH, int kTileW>
struct WindowWords {
  using Element = T;
  static constexpr int kPitch = kPitch_;
  static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
  static constexpr bool kWholeRows = Window::dilation(2) == 1;
  static constexpr int kRunElements = kPitch * (kWholeRows ? Window::kernel(2) : 1);
  static constexpr int kRunWords = (kRunElements + kPerWord - 1) / kPerWord;
  static constexpr int kRunsOfRow = kWholeRows ? 1 : Window::kernel(2);
  static constexpr int kWords = Window::kernel(1) * kRunsOfRow * kRunWords;
  static constexpr int kSteps = (kWords + 7) / 8;
  // The tile: pixels, and the words of a row, behind whose last pixel a run may end.
  static constexpr int kRows = (kTileH - 1) * Window::stride(1) + (Window::kernel(1) - 1) * Window::dilation(1) + 1;
  static constexpr int kColumns = (kTileW - 1) * Window::stride(2) + (Window::kernel(2) - 1) * Window::dilation(2) + 1;
  static constexpr int kRowWords = (kColumns * kPitch + (kPitch % kPerWord == 0 ? 0 : 2 * (kPerWord - 1))) / kPerWord;
  static constexpr int kBytes = kRows * kRowWords * 4;
  static_assert(Window::kernel(0) == 1 && Window::stride(2) * kPitch % kPerWord == 0, "windows begin with a word");
  static_assert(kWholeRows || (kPitch % kPerWord == 0 && Window::dilation(2) * kPitch % kPerWord == 0),
                "taps begin with a word");

  // Where the window of the tile's output pixel `row` begins.
  LATHE_DEVICE_MEMBER static constexpr int begin(int row) {
    return row / kTileW * Window::stride(1) * kRowWords + row % kTileW * Window::stride(2) * kPitch / kPerWord;
  }
  // From there to a word; what K has behind the last one is anything.
  LATHE_DEVICE_MEMBER static constexpr int offset(int word) {
    if (word >= kWords) return 0;
    const int run = word / kRunWords;
    return run / kRunsOfRow * Window::dilation(1) * kRowWords +
           run % kRunsOfRow * Window::dilation(2) * kPitch / kPerWord + word % kRunWords;
  }
  // The bits of a word that are the window's. Integers need not be cleared: their weights are 0, and what is not a
  // number is none of them.
  LATHE_DEVICE_MEMBER static constexpr unsigned bits(int word) {
    if (is_same<T, int8>) return ~0u;
    const int left = word >= kWords ? 0 : kRunElements - word % kRunWords * kPerWord;
    return left >= kPerWord ? ~0u : (1u << (left * 8 * static_cast<int>(sizeof(T)))) - 1;
  }

  // Of the four words from `first` on, that of the thread.
  LATHE_DEVICE_MEMBER static int own_offset(int first) {
    const int own = lane() % 4;
    int at = offset(first) + own;
    LATHE_UNROLL
    for (int i = 1; i < 4; ++i) {
      const int jump = offset(first + i) - offset(first + i - 1) - 1;
      if (jump != 0) at += own >= i ? jump : 0;
    }
    return at;
  }
  LATHE_DEVICE_MEMBER static unsigned own_bits(int first) {
    unsigned mask = ~0u;
    LATHE_UNROLL
    for (int i = 0; i < 4; ++i)
      if (bits(first + i) != ~0u) mask = lane() % 4 == i ? bits(first + i) : mask;
    return mask;
  }
};

}  // namespace conv_stem
