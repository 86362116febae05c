// SPDX-License-Identifier: Apache-2.0
// Attention of few queries on tensor cores: the form of decode.cuh.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/source.h"

namespace lathe::cuda::decode {

// The choice: warps of a block, tiles of eight rows that it has, and blocks of a cluster that share keys.
struct Blocks {
  int64_t warps = 8, row_tiles = 1, splits = 1;
};

// Whether rows are few enough, of a problem that tensor cores take.
bool takes(const Problem& problem);
// None where it is not taken.
void add_configs(const Problem& problem, std::vector<Config>& configs);

// `operands`: the text of what is read and written, and of the logits; `objects`: of objects that are declared first.
SourceLaunch launch(Source& source, const Problem& problem, const Blocks& blocks, const std::string& operands,
                    const std::string& objects);

}  // namespace lathe::cuda::decode
