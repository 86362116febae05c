// SPDX-License-Identifier: Apache-2.0
// The kernel that packs new weights, the same in all plans: its parameters are a table and where it says that a number
// was out of range (base/packing_table.inc).
#pragma once

#include <string>

namespace lathe::cuda {

std::string packing_source();

}  // namespace lathe::cuda
