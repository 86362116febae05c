// SPDX-License-Identifier: Apache-2.0
// Normalisation of x[N, C, ...] over groups of channels, with a scale and a bias per channel (inputs 1 and 2): what
// group and instance normalisation share.
#pragma once

#include "ops/rules.h"

namespace lathe {

Result<> check_channel_affine(InferContext& context);
void normalize_groups(EvalContext& context, int64_t groups, double epsilon);

}  // namespace lathe
