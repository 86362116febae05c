// SPDX-License-Identifier: Apache-2.0
// Where the code of the kernels that are compiled for each instruction set (*_simd.cpp) comes from.
#pragma once

#include "base/result.h"

namespace lathe::cpu {

// Sees to it that the functions that LATHE_ISA_SELECT names can be called, which nobody may do before. Those of most
// libraries are linked (linked_kernels.cpp), and this does nothing. Where they are packed (packed_kernels.cpp), the
// first call unpacks the ones for this processor; it fails where the system allows no code to be mapped. May be called
// from any thread.
Result<> have_kernel_code();

}  // namespace lathe::cpu
