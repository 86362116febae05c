// SPDX-License-Identifier: Apache-2.0
// Convolutions whose channels are moved into the image, or split, as they are stored (Operand::reassociation).
#pragma once

#include <optional>
#include <string>

#include "tuning/tactic.h"

namespace lathe::cuda::conv {

struct Shuffle {
  Problem problem;             // output and operands: of the channels' dimensions, the contiguous one is the last
  int dimension = 1;           // of the output: that one
  size_t channel_dims = 1;     // of the output's dimensions: the channels
  std::vector<int64_t> order;  // the channel that each column of the product is; empty = its own
  std::vector<bool> packed;    // of the operands: constants of the channels, which are packed in that order
};

// A reason when no vectors of channels are neighbours in the output.
std::optional<std::string> describe_shuffle(const Problem& problem, Shuffle& out);

// Makes pixels one dimension, or as few as they can be, with those of the channels behind them: there is less to
// compute of where a row lies.
void merge_pixels(Shuffle& shuffle);

// Rows of the weights in that order; empty = as they are.
Result<Tensor> in_order(const Tensor& weights, const std::vector<int64_t>& order);

// The program's operands become inputs of the emission.
Result<> add_operands(const Shuffle& shuffle, Emission& emission);

}  // namespace lathe::cuda::conv
