// SPDX-License-Identifier: Apache-2.0
// Direct convolution as a kernel, for kernels that are made of convolutions.
#pragma once

#include <memory>

#include "kernels/cpu/conv/conv.h"

namespace lathe::cpu::conv {

// Padding may be negative here: the first tap then lies inside of x. They must be sane otherwise.
std::unique_ptr<Kernel> make_direct(const ConvParams& params, Epilogue epilogue);

}  // namespace lathe::cpu::conv
