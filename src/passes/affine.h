// SPDX-License-Identifier: Apache-2.0
// Integers that grow evenly along each dimension of a value, as indices do.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace lathe {

struct Affine {
  Expr first;
  std::vector<int64_t> steps;
};

std::optional<Affine> affine_of(const ir::Value* value);
// a - b, broadcast to `to`.
std::optional<Affine> affine_difference(const ir::Value* a, const ir::Value* b, const Shape& to);

// An integer that is known by the sizes.
std::optional<Expr> known_integer(const ir::Value* value);

// Whether only the last two dimensions have more than one element.
bool is_matrix(const Shape& shape);

}  // namespace lathe
