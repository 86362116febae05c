// SPDX-License-Identifier: Apache-2.0
// A pointwise expression as it grows from its last node towards what it reads. Where it may, it takes in nodes that
// move elements: what it reads beyond them is read in another order. So are excerpts of memory.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "build/program_builder.h"

namespace lathe {

class Expression {
 public:
  explicit Expression(ir::Node* last);

  // Whether axes can be found for what the last node reads.
  bool is_known();
  // Takes in a producer that `may_join`, all of whose readers are in the expression and see its elements in the same
  // places; false when there is none.
  bool grow(const std::function<bool(const ir::Node&)>& may_join);
  // Gives up views of what lies in memory as it is viewed anyway.
  void trim();
  // Gives up the node that joined last, but for the first.
  void drop_last();
  bool is_movement_only() const;
  size_t size() const { return nodes_.size(); }
  const std::vector<ir::Node*>& nodes() const { return nodes_; }

  // nullopt when its operands or axes are too many.
  std::optional<Region> region(const std::function<size_t(const ir::Node*)>& position) const;

 private:
  std::optional<AxisView> view_through(const ir::Use& use, const ir::Value& value);
  std::optional<AxisView> view_of(const ir::Node& node);
  bool contains(const ir::Node* node) const { return node && views_.contains(node); }
  bool is_plain_view(const ir::Node& node) const;

  AxisSpace space_;
  std::vector<ir::Node*> nodes_;
  std::unordered_map<const ir::Node*, AxisView> views_;  // of the results
};

// A program whose nodes may move elements: notes how each operand is read.
class ArrangedProgram {
 public:
  ArrangedProgram(const AxisSpace& space, const ir::Value* accumulator) : space_(&space), program_(accumulator) {}

  ProgramBuilder& program() { return program_; }
  void set_space(const AxisSpace& space) { space_ = &space; }
  // A node whose result, to which its operands broadcast, has that view.
  bool add(const ir::Node& node, const AxisView& view);
  // A node that moves the result of one that was added, or memory that is read by that view.
  bool add_moved(const ir::Node& node) { return program_.add_moved(node, true); }
  bool add_moved(const ir::Node& node, const AxisView& input);
  // An excerpt of memory, which has that view.
  bool add_excerpt(const ir::Node& node, const AxisView& view);
  // The operands that the program itself has added are read by that view.
  void note_views(const AxisView& view) {
    views_.resize(program_.num_operands(), view);
    excerpts_.resize(views_.size());
  }

  Region::Arrangement arrangement(const AxisView& result) const;
  // Whether the dimensions that excerpts cut are axes of their own.
  bool knows_excerpts() const;

 private:
  const AxisSpace* space_;
  ProgramBuilder program_;
  std::vector<AxisView> views_;                                // of the operands
  std::vector<std::optional<Excerpt>> excerpts_;               // of them
  std::unordered_map<const ir::Value*, AxisView> last_views_;  // by which values were read
};

}  // namespace lathe
