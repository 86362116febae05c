// SPDX-License-Identifier: Apache-2.0
// What rules ask about values and nodes.
#pragma once

#include "ir/graph.h"

namespace lathe {

// The producer, when it is of that kind; else null. Null values are fine.
const ir::Node* made_by(const ir::Value* value, OpKind kind);
const ir::Node* made_by(const ir::Value* value, UnaryOp op);
const ir::Node* made_by(const ir::Value* value, ActivationOp op);
const ir::Node* made_by(const ir::Value* value, ElementwiseOp op);
bool is(const ir::Node* node, UnaryOp op);
bool is(const ir::Node* node, ActivationOp op);
bool is(const ir::Node* node, ElementwiseOp op);

// Those operands whose elements its results are made of; empty = it computes others, or it is none of the like. Padding
// without a number adds zeros.
std::vector<const ir::Value*> unchanged_operands(const ir::Node& node);

// Constants: the one value of a one-element constant; whether every element equals a number.
std::optional<double> scalar_of(const ir::Value* value);
bool all_equal(const ir::Value* value, double number);
// Whether all that lie along an axis are alike, as batches are of constants that exporters have repeated.
bool is_repeated(const Tensor& constant, size_t axis);
// The number that every element equals, of a constant or of one that is repeated.
std::optional<double> splat_of(const ir::Value* value);
// The integers of a constant or of a value whose contents are known.
std::optional<Ints> ints_of(const ir::Value* value);

// The axes that an optional input lists, counted from the front; the first `count` where there is none. nullopt = they
// are not known.
std::optional<Ints> axes_of(const ir::Value* listed, size_t count, int64_t rank);

// The permutation that transposes matrices in batches: the last two of `rank` dimensions change places.
Ints swap_of_last_two(int64_t rank);

// Numbers in exported models are rounded, to 16 bits even: sqrt(2) comes as 1.4142135, 1.4142 or 1.414.
bool near(double a, double b);

// x op c with a one-element constant c that does not change the shape of x. Either operand may be the constant when the
// op commutes; else it is the second.
struct WithScalar {
  ir::Value* x = nullptr;
  double c = 0;
};
std::optional<WithScalar> match_scalar(const ir::Value* value, ElementwiseOp op);
std::optional<WithScalar> match_scaled(const ir::Value* value);   // x * c or x / (1 / c)
std::optional<WithScalar> match_shifted(const ir::Value* value);  // x + c or x - (-c)

// The axis along which `value` reduces x and stays of the same rank, or is given it by a view.
std::optional<int64_t> reduced_axis(const ir::Value* value, ReduceOp op, const ir::Value* x);

// A bound or an index along an axis as a number, which below 0 counts from the end of an axis that is open; nothing
// where the axis may be too short for that.
std::optional<int64_t> place_in(const Expr& extent, const Expr& at, std::span<const Range> symbols);

bool same_shape(const ir::Value* a, const ir::Value* b);
bool is_last_axis(int64_t axis, const ir::Value* value);
bool commutes(ElementwiseOp op);

// Whether it is a matmul of two operands that a run computes, as those of attention are.
bool multiplies_computed(const ir::Node* node);

// A product flattened: factor * leaves[0] * leaves[1] * ... Inner multiplications must have no other reader. Powers
// with exponents 2 and 3, and divisions by constants, take part.
struct FlatProduct {
  double factor = 1;
  std::vector<ir::Value*> leaves;
  std::vector<const ir::Node*> nodes;  // those flattened, the root first
};
FlatProduct product_of(const ir::Node* root);

// For a product of two leaves of which one is x: finds (x, other) for either order.
inline std::optional<std::pair<ir::Value*, ir::Value*>> pair_of(const FlatProduct& product, size_t first) {
  if (product.leaves.size() != 2) return std::nullopt;
  return std::pair(product.leaves[first], product.leaves[1 - first]);
}

}  // namespace lathe
