// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernel_code.h"

namespace lathe::cpu {

Result<> have_kernel_code() { return {}; }

}  // namespace lathe::cpu
