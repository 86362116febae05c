// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// 0, 1, ... up to the length, which is an i64[1].
inline ir::Value* count_up(ir::GraphBuilder& c, ir::Value* length) {
  return c.add(RangeAttrs{}, {c.integer_scalar(0), c.squeeze(length, {0}), c.integer_scalar(1)});
}

}  // namespace lathe
