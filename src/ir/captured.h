// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace lathe::ir {

// What bodies of one node read from outside, in the order in which it comes in.
class Captured {
 public:
  // The input of a body of that node that is the value.
  Value* inside(Value* value, Graph& body);
  // Gives a body the inputs that only others read.
  void complete(Graph& body);
  const std::vector<Value*>& values() const { return values_; }

 private:
  std::vector<Value*> values_;
  std::map<std::pair<const Graph*, const Value*>, Value*> inputs_;
};

}  // namespace lathe::ir
