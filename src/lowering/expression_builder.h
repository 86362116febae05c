// SPDX-License-Identifier: Apache-2.0
// A pointwise expression as it grows from its last node towards what it reads. Where it may, it takes in nodes that
// move elements: what it reads beyond them is read through an indexing map.
#pragma once

#include <span>

#include "indexing/access.h"
#include "lowering/program_builder.h"

namespace lathe {

// Whether the node is padding with a number, or a strided slice, in either direction: an expression may read what it
// cuts. Slices without steps are views, which cost nothing as they are.
bool cuts_elements(const ir::Node& node);
// Whether it moves elements in any way that expressions know, and computes nothing.
bool moves_elements(const ir::Node& node);

class ExpressionBuilder {
 public:
  ExpressionBuilder(ir::Node* last, const NodeOrder& order);
  // Computes only those elements of the last node's result that `result` reads over that space.
  ExpressionBuilder(ir::Node* last, const NodeOrder& order, Space space, IndexMap result);

  // Whether the last node computes, or an indexing map says which element it moves.
  bool is_known();
  // Takes in producers that `may_join`, all of whose readers are in the expression and see its elements in the same
  // places, until there are so many nodes.
  void grow(const MayJoin& may_join, size_t most = SIZE_MAX);
  // Takes in those of the nodes whose elements are read at all: of a concatenation's inputs, one is. The nodes are in
  // graph order, and all of their readers are among them. False where some node is read at several indices, or it is
  // open which input of a concatenation is read: then cut() may tell where to cut the space so that one of them is.
  bool take(std::span<ir::Node* const> nodes);
  const std::optional<SplitPoint>& cut() const { return cut_; }
  const Space& space() const { return space_; }
  const IndexMap& result() const { return result_; }
  // Gives up views of what lies in memory as it is viewed anyway.
  void trim();
  // Gives up the node that joined last, but for the first.
  void drop_last();
  bool is_movement_only() const;
  size_t size() const { return nodes_.size(); }
  const std::vector<ir::Node*>& nodes() const { return nodes_; }

  // nullopt when its operands or axes are too many, or memory cannot be read by some map.
  std::optional<Region> region();

 private:
  // What a node that moves elements reads: of one of its inputs.
  struct MovedRead {
    size_t input = 0;
    Read read;
  };
  const MovedRead* source_of(const ir::Node& node);
  std::optional<MovedRead> find_source(const ir::Node& node);
  std::optional<Read> read_through(const ir::Use& use, const ir::Value& value);
  std::optional<Read> read_of(const ir::Node& node);
  bool add(ir::Node* node, Read read);
  bool add_producer(const MayJoin& may_join);
  bool contains(const ir::Node* node) const { return node && reads_.contains(node); }
  bool is_plain_view(const ir::Node& node) const;
  void forget(const ir::Node* node);

  const NodeOrder& order_;
  Space space_;
  IndexMap result_;
  std::vector<ir::Node*> nodes_;
  std::unordered_map<const ir::Node*, Read> reads_;  // of each node's result
  // Of those that move elements, found once: where axes were split for it, not every index can be found again.
  std::unordered_map<const ir::Node*, MovedRead> sources_;
  std::optional<SplitPoint> cut_;
};

}  // namespace lathe
