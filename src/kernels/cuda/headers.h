// SPDX-License-Identifier: Apache-2.0
// The text of every device header (*.cuh) under kernels/cuda, held in the library: what the compiler of device code is
// given as the files that sources include.
#pragma once

#include <span>

namespace lathe::cuda {

struct Header {
  const char* name;  // as sources include it: "lib/types.cuh"
  const char* text;
};

std::span<const Header> headers();

}  // namespace lathe::cuda
