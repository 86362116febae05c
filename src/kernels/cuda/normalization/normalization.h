// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised by a statistic of their own: what the tactics of normalisation and softmax share.
#pragma once

#include "kernels/axes_tactic.h"
#include "kernels/cuda/index_space.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

struct RowStatistic {
  std::string type;     // in normalization/statistics.cuh
  std::string members;  // the initializers of its members
  uint32_t state_bytes = 0;
};

RowStatistic statistic_of(const RowNormalization& rows);

struct Normalization {
  // Tensor 0 is x, 1 is y; then come the scale and the bias, where there are any, and the operands of the program and
  // of the prologue.
  IndexSpace space;
  RowStatistic statistic;
  bool has_scale = false, has_bias = false;
};

// Of rows along one axis, without scale and bias.
Normalization normalization_along(const Problem& problem, int64_t axis, RowStatistic statistic);

Matched match_rows(const Problem& problem, Normalization normalization);

// Why no kernel here takes the types; nullopt = all are floats of 32 or 16 bits.
std::optional<std::string> refuse_types(const Problem& problem);

}  // namespace lathe::cuda
