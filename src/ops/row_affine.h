// SPDX-License-Identifier: Apache-2.0
// Normalisations over the axes from `axis` on, with a scale and a bias that broadcast to x: what layer and RMS
// normalisation share.
#pragma once

#include "ops/rules.h"

namespace lathe {

// Checks that input `index` (scale or bias) broadcasts to x's shape.
Result<> check_row_operand(InferContext& context, size_t index);
// values (x's elements in order) times input 1, plus input 2 where present.
void apply_affine(EvalContext& context, std::vector<double>& values);
// Elements of one row: the dims from `axis` on.
int64_t row_size(const Dims& dims, int64_t axis);

}  // namespace lathe
