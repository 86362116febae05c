// SPDX-License-Identifier: Apache-2.0
// Indices as networks give them. Device code cannot report one that lies outside.
#pragma once

#include "lib/types.cuh"

// Negative ones count from the end; -1 when it lies outside.
template <class T>
LATHE_DEVICE long wrapped_index(T value, long extent) {
  long index = static_cast<long>(value);
  if (index < 0) index += extent;
  return index >= 0 && index < extent ? index : -1;
}
