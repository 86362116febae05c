// SPDX-License-Identifier: Apache-2.0
// Products whose results are normalised row by row (Operand::normalization of an output): the launch that adds up
// splits has whole rows (gemm/normalized_sums.cuh). Where the results are written, too, a product without splits writes
// them, and that launch reads them; elsewhere every sum is kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/normalization/normalization.h"

namespace lathe::cuda::gemm {

struct Ending;

struct ResultNormalization {
  RowStatistic statistic;
  std::vector<Operand> vectors;  // the scale, and the bias, if there are any: the step's inputs behind the program's
  Operand out;                   // the normalised rows
  bool beside = false;           // they are result 1, and what is normalised is result 0
};

// Takes it off the problem, of which a product is left. A reason in words where no launch normalises so.
std::optional<std::string> take_normalization(Problem& problem, std::optional<ResultNormalization>& out);

// Adds the launch that adds up, finishes and normalises what `splits` have kept, or normalises what is written.
void add_normalization(const Ending& ending, int64_t splits, Emission& emission);

}  // namespace lathe::cuda::gemm
