// SPDX-License-Identifier: Apache-2.0
// Text for conv/window.cuh.
#pragma once

#include <string>

#include "kernels/cpu/conv/conv_attributes_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::conv {

std::string window_type(const cpu::ConvAttributes& attributes);
std::string pixels(Source& source, const Operand& output);  // a conv::Pixels

}  // namespace lathe::cuda::conv
