// SPDX-License-Identifier: Apache-2.0
// What programs make of the contents of tensors, for trials.
#pragma once

#include <vector>

#include "base/result.h"
#include "device/program.h"
#include "ops/tensor.h"

namespace lathe {

// How far f32 arithmetic in another order may be off, as a part of the largest operand.
inline constexpr float kRounding = 1e-6f;

float element_of(const Tensor& tensor, int64_t i);
float largest_of(const Tensor& values);  // of finite magnitudes

// The result of a program that has one, for each element of `dims`; registers of the same dims, dense.
Result<Tensor> result_of(const Program& program, const std::vector<Tensor>& registers, const Dims& dims);

// The most that any element of the program's result changes when register 0 changes by rounding.
Result<float> step_at_ties(const Program& program, std::vector<Tensor> registers, const Tensor& result);

// The even columns, and the odd ones.
Result<std::vector<Tensor>> pairs_of(const Tensor& results);

}  // namespace lathe
