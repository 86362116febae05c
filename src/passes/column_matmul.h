// SPDX-License-Identifier: Apache-2.0
// Matmuls by weights that are known, column by column: what makes one of several.
#pragma once

#include <optional>
#include <vector>

#include "passes/pass.h"

namespace lathe {

// x w, or x by matrices w of experts, and what constants alone do to each of its columns.
struct ColumnMatmul {
  ir::Node* matmul;
  size_t axis;                         // of w: its columns
  const ir::Node* packed;              // what dequantises w, if it stays packed; null = w is constant
  std::vector<const Tensor*> weights;  // w, or levels, scales and zero points
  std::vector<ir::Node*> changes;      // to columns: a row that is added; after levels scales and casts, too
  ir::Value* result;
  int64_t columns;
};

// In whole vectors of columns. A weight that others read, too, would be in memory twice.
std::optional<ColumnMatmul> constant_matmul_of(ir::Node* node, const PassContext& context);
// With what is done to its columns.
std::optional<ColumnMatmul> changed_matmul_of(ir::Node* node, const PassContext& context);

// Whether its factors have 8 bits: sums are i32 or f32.
bool multiplies_levels(const ir::Node& matmul);

// Whether one matmul can be both. Each new node stands for all layers that go, so one precision must be pinned for all.
bool are_alike(const ColumnMatmul& a, const ColumnMatmul& b, PassContext& context);

}  // namespace lathe
