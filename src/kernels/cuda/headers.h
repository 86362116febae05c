// SPDX-License-Identifier: Apache-2.0
// The text of every device header (*.cuh) under kernels/cuda and of the formulas of base/ that they include, held in
// the library: what the compiler of device code is given as the files that sources include.
#pragma once

#include <span>

#include "device/cuda/source_header.h"

namespace lathe::cuda {

using Header = SourceHeader;

std::span<const Header> headers();

}  // namespace lathe::cuda
