// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/resize/samples.h"
#include "ops/op.h"

namespace lathe::cpu {

SampleRule sample_rule(const ResizeAttrs& attrs);

}  // namespace lathe::cpu
