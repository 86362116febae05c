// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/build.h"

namespace lathe {

// Compresses the images of a plan that has all its code, on so many threads. Sources stay texts. So does everything
// where it is more than engines take of compressed code.
Result<> deflate_code(BuiltPlan& built, size_t most_threads);

}  // namespace lathe
