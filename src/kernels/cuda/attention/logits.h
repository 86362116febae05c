// SPDX-License-Identifier: Apache-2.0
// What the tactics of attention ask of a problem and write of it alike.
#pragma once

#include "kernels/cuda/source.h"
#include "ops/attention_inputs.h"

namespace lathe::cuda {

// Heads that lie in another order are read by strides. Why that cannot be.
std::optional<std::string> refuse_order(const Problem& problem);

// Masks, sinks and distances are floats when they are read.
std::optional<std::string> refuse_doubles(const Problem& problem);

// How many tiles of so many keys a tile of so many queries sees.
struct TileCounts {
  double mean = 0, most = 0;
};
TileCounts seen_tiles(const Problem& problem, int64_t queries, int64_t keys);

// The mask as if it had one element for each query and key.
Operand mask_of_scores(const Problem& problem);

// Of distances, which may be the same for all heads, those of each head.
Operand distances_of_heads(const Problem& problem);

// Declares the mask, the sinks and the distances, if there are such, which become the emission's next inputs; gives the
// object of logits.cuh. The tensors are Q_ and K_.
std::string declare_logits(Source& source, const Problem& problem, Emission& emission);

}  // namespace lathe::cuda
