// SPDX-License-Identifier: Apache-2.0
// Indexing maps: which element of a tensor is read at a point of an iteration space. A map goes from the reader's point
// to the element that is read, so maps compose by application: the index into a transposition's result, permuted, is
// the index into what it reads. Transposes, reshapes, slices, padding, broadcasts, concatenations are maps and nothing
// else (docs/fusion.md; the term is XLA's and MLIR's).
#pragma once

#include "indexing/space.h"
#include "ir/graph.h"

namespace lathe {

// begin <= value < end.
struct Interval {
  Expr value, begin, end;
  bool operator==(const Interval&) const = default;
};

struct IndexMap {
  Shape index;  // an expression of the space's axes for each dimension of the tensor
  // Where all of these hold, the index is inside the tensor; elsewhere there is no element.
  std::vector<Interval> domain;
  bool operator==(const IndexMap&) const = default;
};

// What a node's result has at a point when the node computes nothing: the element of the piece whose domain holds, of
// which there is at most one, or else the fill.
struct Piece {
  size_t input = 0;  // of the node
  IndexMap map;
};
struct Sources {
  std::vector<Piece> pieces;
  std::optional<double> fill;  // none = some piece always has the element
};

// Where the elements of the node's result number `output`, read at `map`, come from; nullopt for nodes that compute,
// and where no axes of `space` can be split as a reshape needs. May split axes: older maps go through
// Space::current().
std::optional<Sources> sources_of(const ir::Node& node, size_t output, const IndexMap& map, Space& space);

// The index of an operand that broadcasts to the shape of a result; nullopt where that is not proven.
std::optional<Shape> broadcast_index(const Shape& operand, const Shape& result, const Shape& index);

// Whether the node's result has each element of its first input once, and no others: transposes and reshapes.
bool permutes_elements(const ir::Node& node);
// The same in another row-major order.
bool reorders_elements(const ir::Node& node);

// Where in the node's result the element of its first input at `input` is, for a node that permutes them.
std::optional<Shape> destination_of(const ir::Node& node, const Shape& input, Space& space);

// The index into a tensor of dims `to` of the element that in row-major order lies where `index` is in dims `from`.
std::optional<Shape> regrouped(const Shape& index, const Shape& from, const Shape& to, Space& space);

// "(i0, i1o, 4*i2 + i1i) where 0 <= i0 - 1 < h".
std::string to_string(const IndexMap& map, std::span<const std::string> names);

}  // namespace lathe
