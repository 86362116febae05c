// SPDX-License-Identifier: Apache-2.0
// Products by the matrices of a stack that were gathered, a copy for each row.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace lathe {

// Whether the node takes whole matrices of a stack, each by one number.
bool takes_matrices(const ir::Node& node);

// A product of such matrices, its factor `side`, by one row each, or one column.
struct RowByMatrices {
  bool transposed;  // the matrices are [n, k]
  int64_t single;   // the other factor's dimension of 1, -1 or -2
};
std::optional<RowByMatrices> row_by_matrices(const ir::Node& matmul, size_t side);

}  // namespace lathe
