// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/op.h"

namespace lathe {

// The dims that input 0, a list, asks for. Input 1 must be a seed, one i64. `op` is named in errors.
Result<Shape> drawn_shape(InferContext& context, std::string_view op);

}  // namespace lathe
