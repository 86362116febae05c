// SPDX-License-Identifier: Apache-2.0
#include "base/packed_code.h"

namespace lathe {

Result<> have_packed_code() { return {}; }

}  // namespace lathe
