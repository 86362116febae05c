// SPDX-License-Identifier: Apache-2.0
// A pointwise expression as it grows from its last node towards what it reads. Where it may, it takes in nodes that
// move elements: what it reads beyond them is read through an indexing map.
#pragma once

#include <map>
#include <span>
#include <unordered_set>

#include "indexing/access.h"
#include "lowering/computed_part.h"
#include "lowering/program_builder.h"

namespace lathe {

// Whether the node is padding with a number, or a strided slice, in either direction: an expression may read what it
// cuts. Slices without steps are views, which cost nothing as they are.
bool cuts_elements(const ir::Node& node);
// Whether it moves elements in any way that expressions know, and computes nothing.
bool moves_elements(const ir::Node& node);
// Whether storing it would take a copy: it is transposed, or a view of what is transposed or a slice, or a slice of
// such.
bool takes_a_copy(const ir::Node& node);

class ExpressionBuilder {
 public:
  ExpressionBuilder(ir::Node* last, const NodeOrder& order);
  // Computes only those elements of the last node's result that `result` reads over that space.
  ExpressionBuilder(ir::Node* last, const NodeOrder& order, Space space, IndexMap result);

  // Takes concatenations of what is computed of a part of a tensor and of the rest of it (lowering/computed_part.h) for
  // what they are. Reads have fills then.
  void join_computed_parts() { joins_parts_ = true; }
  bool has_computed_parts() const { return !parts_.empty(); }
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
  Read read_of_input(const ir::Node& node, size_t input) const;
  std::vector<Read> reads_of_inputs(const ir::Node& node) const;
  std::optional<MovedRead> find_part(const ir::Node& concat, const Sources& sources);
  bool is_rest(const ir::Node& node) const;
  bool has_parts_whole() const;
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
  bool joins_parts_ = false;
  struct Parts {
    ComputedPart of;
    Interval interval;  // where the part is
  };
  std::map<const ir::Node*, Parts> parts_;      // of concatenations
  std::unordered_set<const ir::Node*> unread_;  // nodes that only move the rest, which is read with the part
};

}  // namespace lathe
