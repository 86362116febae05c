// SPDX-License-Identifier: Apache-2.0
// What passes that replace nodes share: rules in tables, and the bookkeeping of one replacement.
#pragma once

#include "passes/pass.h"

namespace lathe {

// One replacement of `node` by others. New nodes go before it and inherit its origin and that of what was absorbed.
class Rewrite {
 public:
  Rewrite(ir::Graph& graph, PassContext& context, ir::Node* node)
      : graph(graph), context(context), node(node), origin_(node->origin()) {}

  ir::Value* input(size_t i) const { return node->input(i); }
  ir::Value* output() const { return node->output(); }
  void absorb(const ir::Node* other);

  Result<ir::Value*> add(const Attributes& attributes, std::vector<ir::Value*> inputs);
  Result<ir::Value*> unary(UnaryOp op, ir::Value* x);
  Result<ir::Value*> activation(ActivationOp op, ir::Value* x, double alpha = 0, double beta = 0);
  Result<ir::Value*> elementwise(ElementwiseOp op, ir::Value* a, ir::Value* b);
  Result<ir::Value*> constant(Tensor value);
  Result<ir::Value*> scalar(DType dtype, double value);  // rank 0
  Result<ir::Value*> ints(const Ints& values);
  Result<ir::Value*> reshape(ir::Value* x, const Ints& dims);             // 0 keeps an extent, -1 takes the rest
  Result<ir::Value*> dims_of(ir::Value* x, int64_t first, int64_t last);  // of [first, last), a list

  // Readers of the node's first output take `result`, which takes over its name when it is new; the node goes, and so
  // do producers that only it needed. False, changing nothing but dead nodes, when that would alter the value's type or
  // alias a graph output.
  Result<bool> finish(ir::Value* result);

  ir::Graph& graph;
  PassContext& context;
  ir::Node* const node;

 private:
  std::vector<std::string> origin_;
  std::vector<ir::Node*> added_;
};

// A rule tries to rewrite a node of kind `root`; it answers whether it did (then the node is gone).
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
