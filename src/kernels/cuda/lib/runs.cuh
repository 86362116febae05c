// SPDX-License-Identifier: Apache-2.0
// Runs of W neighbours along a tensor's last dimension, the last of them short where W does not divide its extent. One
// run for each thread.
#pragma once

#include "lib/space.cuh"

// The calling thread's run: its first coordinates and its elements; 0 when there is none left.
template <int Threads, int W, class Tensor, int R>
LATHE_DEVICE int locate_run(const Tensor& tensor, long (&c)[R]) {
  const long extent = tensor.dim(R - 1), along = (extent + W - 1) / W;
  const long run = static_cast<long>(block_x()) * Threads + thread_x();
  if (run >= extent_of<0, R - 1>(tensor) * along) return 0;
  c[R - 1] = run % along * W;
  unflatten_dims<0, R - 1>(tensor, run / along, c);
  const long left = extent - c[R - 1];
  return left < W ? static_cast<int>(left) : W;
}
