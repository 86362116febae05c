// SPDX-License-Identifier: Apache-2.0
// Convolutions, deconvolutions and matrix products with constant weights, seen as y[c] = sum(w[c] * x) + b[c].
#pragma once

#include "passes/rewrite.h"
#include "passes/weights_math.h"

namespace lathe {

struct Linear {
  const ir::Node* node;
  int64_t channels;  // of the output
  size_t axis;       // the output's channel axis
  const Tensor* weights;
  const Tensor* bias;  // null = none
};

// The linear node that makes `value`, when nothing else reads it and its parameters are constant.
std::optional<Linear> linear_of(const ir::Value* value);

// y * scale + shift, with the factors in the weights; a matrix product gets its shift by an addition.
ir::Value* add_scaled(Rewrite& rewrite, const Linear& linear, std::span<const double> scale,
                      std::span<const double> shift);

// The same where weights, bias or factors follow from weights that can be replaced: f64, one number for each channel or
// one for all; undefined content = no such factor or addend. Null where the weights' channels are spread over groups.
ir::Value* add_derived(Rewrite& rewrite, const Linear& linear, const Known& scale, const Known& shift);
bool is_derived(const Linear& linear);

// A constant that varies along one axis of `value` at most, as one number per position of that axis; nullopt when it
// varies along others, or would widen `value`.
std::optional<std::vector<double>> along_axis(const ir::Value* constant, const ir::Value* value, size_t axis);

// The same in f64, with what it follows from: one number for each position or one for all.
std::optional<Known> known_along_axis(const ir::Value* constant, const ir::Value* value, size_t axis);

// A constant of one number per position of `axis`, shaped to broadcast against a tensor of that rank.
Result<Tensor> channel_tensor(DType dtype, std::span<const double> values, int rank, size_t axis);

}  // namespace lathe
