// SPDX-License-Identifier: Apache-2.0
// What passes that replace nodes share: rules in tables, and the bookkeeping of one replacement.
#pragma once

#include "ir/builder.h"
#include "passes/pass.h"

namespace lathe {

// One replacement of `node` by others. New nodes go before it and inherit its origin and that of what was absorbed.
class Rewrite : public ir::GraphBuilder {
 public:
  Rewrite(ir::Graph& graph, PassContext& context, ir::Node* node)
      : GraphBuilder(graph, {{}, node->origin(), {}}, node), context(context), node(node) {}

  ir::Value* input(size_t i) const { return node->input(i); }
  ir::Value* output() const { return node->output(); }
  void absorb(const ir::Node* other);
  ir::Value* scaled(ir::Value* x, double factor) { return factor == 1 ? x : binary(ElementwiseOp::mul, x, factor); }

  // Readers of the node's first output take `result`, which takes over its name when it is new; the node goes, and so
  // do producers that only it needed. False, changing nothing but dead nodes, when that would alter the value's type or
  // alias a graph output.
  Result<bool> finish(ir::Value* result);

  PassContext& context;
  ir::Node* const node;
};

// A rule tries to rewrite a node of kind `root`; it answers whether it did (then nothing reads the node). An error of
// the builder ends the pass, whatever the rule answers.
struct Rule {
  std::string_view equation;
  OpKind root;
  Result<bool> (*apply)(Rewrite& rewrite);
};

// Every live node against every rule, in order; true when any applied.
Result<bool> apply_rules(ir::Graph& graph, PassContext& context, std::span<const Rule> rules);

// Whether a graph output may read `value` in place of the value it reads now: each graph output keeps a value of its
// own, which is neither an input nor a constant.
bool may_stand_for(const ir::Value* value, const ir::Value* replaced);

// Erases a node that nothing reads, then its producers likewise.
void erase_unused(ir::Graph& graph, ir::Node* node);

}  // namespace lathe
