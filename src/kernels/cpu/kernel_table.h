// SPDX-License-Identifier: Apache-2.0
// The CPU kernels by name. The list is the folders kernels/cpu/<name>/ that hold <name>_kernel.cpp; each defines
//   Result<std::unique_ptr<Kernel>> lathe::cpu::make_<name>(const Record&);
#pragma once

#include <string_view>

#include "device/cpu/kernel.h"

namespace lathe::cpu {

using KernelFactory = Result<std::unique_ptr<Kernel>> (*)(const Record& record);

// nullptr when this library has no kernel of that name.
KernelFactory find_kernel(std::string_view name);

}  // namespace lathe::cpu
