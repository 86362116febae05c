// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/packing/packing_source.h"

namespace lathe::cuda {

std::string packing_source() {
  return "#include \"packing/packing.cuh\"\n"
         "LATHE_PARAMETERS(2)\n"
         "LATHE_KERNEL(kPackingThreads, 1) void lathe_kernel(const PackingHead* table, int* found) {\n"
         "  pack(table, found);\n"
         "}\n";
}

}  // namespace lathe::cuda
