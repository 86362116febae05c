// SPDX-License-Identifier: Apache-2.0
// What passes that form control flow share: moving nodes of a graph into a body.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/captured.h"
#include "passes/pass.h"

namespace lathe {

using NodeSet = std::unordered_set<const ir::Node*>;

// Copies nodes into a body, and knows what values of the graph are there. Those that are not bound come in from
// outside, constants as copies. Without `captured` it copies within the graph, where each value is there already.
class BodyWriter {
 public:
  BodyWriter(const ir::Graph& graph, ir::Graph& body, ir::Captured* captured)
      : graph_(graph), body_(body), captured_(captured) {}

  void bind(const ir::Value* outside, ir::Value* inside) { inside_[outside] = inside; }
  Result<ir::Value*> inside(ir::Value* outside);
  // Those of `nodes`, in the order in which the graph has them; their results are bound to those of the copies.
  Result<> copy(const NodeSet& nodes);

 private:
  const ir::Graph& graph_;
  ir::Graph& body_;
  ir::Captured* captured_;
  std::unordered_map<const ir::Value*, ir::Value*> inside_;
};

// The nodes of `among` that these values depend on.
NodeSet producers_of(std::vector<const ir::Value*> values, const NodeSet& among);

// Takes nodes that only each other read out of the graph.
void erase_all(ir::Graph& graph, const NodeSet& nodes);

}  // namespace lathe
