// SPDX-License-Identifier: Apache-2.0
// Windows that the copy engine brings to a pipeline (gemm/pipeline.cuh): a panel of A is one element of the windows of
// all pixels of a tile, some of its channels.
#pragma once

#include "conv/window.cuh"
#include "gemm/pipeline.cuh"

namespace conv {

// Where the window of a tile's first pixel begins in the map of the images: channel, column, row and image. K counts
// kPadded channels of each element of the window, which are whole panels.
template <class Window, int kPadded>
struct WindowPlace {
  int at[4];

  LATHE_DEVICE_MEMBER WindowPlace(const Pixels& pixels, long first) {
    const Corner corner = corner_of<Window>(pixels, first);
    at[0] = 0, at[1] = corner.at[2], at[2] = corner.at[1], at[3] = static_cast<int>(corner.image);
  }
};

// Found by its place (gemm::copy_a() brings those of matrices).
template <class Tile, class Window, int kPadded>
LATHE_DEVICE void copy_a(const gemm::PipelineMemory<Tile>& memory, int slot, const TensorMap* map,
                         WindowPlace<Window, kPadded> place, const gemm::Block& block, int i) {
  static_assert(kPadded % Tile::kK == 0, "a panel is of one element of windows");
  const int k = static_cast<int>(block.k) + i * Tile::kK, tap = k / kPadded;
  place.at[0] = k % kPadded;
  copy_windows(memory.a(slot), map, place.at, tap % Window::kernel(2) * Window::dilation(2),
               tap / Window::kernel(2) * Window::dilation(1), memory.filled(slot));
}

}  // namespace conv
