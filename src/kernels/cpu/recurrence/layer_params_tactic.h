// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/recurrence/layer_params.h"
#include "ops/op.h"

namespace lathe::cpu::recurrence {

// Fails where a gate's function is none that there is.
Result<LayerParams> layer_params(const RecurrenceAttrs& attrs);

}  // namespace lathe::cpu::recurrence
