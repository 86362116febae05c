// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit floats in blocks along K, each of which has a scale: sums of a block are multiplied by it.
#pragma once

#include <span>

#include "passes/rewrite.h"

namespace lathe {

struct ScaledProduct {
  const ir::Node *x = nullptr, *w = nullptr;          // that dequantise the factors
  bool scales_x = false, scales_w = false;            // by blocks
  int64_t block = 0;                                  // elements of K
  size_t k_dim = 0;                                   // of the weights
  std::vector<double> after = std::vector<double>();  // what all sums are multiplied by: one, or one for each column
};

// Whether both factors of a matmul are dequantised, one of them by blocks.
bool is_scaled_by_blocks(const ir::Node& matmul);

// Nothing where it is none, or its levels are not multiplied; then `why` receives the reason. `ranges`: of the graph's
// symbols.
std::optional<ScaledProduct> scaled_product(const ir::Node& matmul, std::span<const Range> ranges,
                                            const PassContext& context, std::string* why = nullptr);

// Its result, in f32.
Result<ir::Value*> scaled_sums(Rewrite& r, const ScaledProduct& product);

}  // namespace lathe
