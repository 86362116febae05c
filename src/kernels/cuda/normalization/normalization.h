// SPDX-License-Identifier: Apache-2.0
// Rows that are normalised by a statistic of their own: what the tactics of normalisation and softmax share.
#pragma once

#include "kernels/axes_tactic.h"
#include "kernels/cuda/index_space.h"
#include "kernels/cuda/source.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

struct RowStatistic {
  std::string type;     // in normalization/statistics.cuh
  std::string members;  // the initializers of its members
  uint32_t state_bytes = 0;
};

RowStatistic statistic_of(const RowNormalization& rows);

struct Normalization {
  // Tensor 0 is x; then come the results, the scale and the bias, where there are any, and the operands of the program
  // and of the prologue.
  IndexSpace space;
  RowStatistic statistic;
  bool has_scale = false, has_bias = false;
};

// Of layer, RMS, instance and group normalization. Rows are the dimensions from first_axis on, and of groups their
// channels, too.
Normalization normalization_of(const Problem& problem, const RowNormalization& rows);
// Of rows along one axis, without scale and bias.
Normalization normalization_along(const Problem& problem, int64_t axis, RowStatistic statistic);

// What the launches of a normalisation read: x, scale and bias, then what the programs do.
Emission inputs_of(const Problem& problem, const Normalization& normalization);
// Declares that and the results; gives the expressions of x, of scale and bias, and of the results.
struct NormalizedText {
  std::string x, affine, results;
};
NormalizedText declare_normalized(Source& source, const Problem& problem, const Normalization& normalization);

Matched match_rows(const Problem& problem, Normalization normalization);

// Why no kernel here takes the types; nullopt = all are floats of 32 or 16 bits, or results are levels.
std::optional<std::string> refuse_types(const Problem& problem);

}  // namespace lathe::cuda
