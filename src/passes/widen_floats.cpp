// SPDX-License-Identifier: Apache-2.0
// Brings computation in f16 and bf16 up to f32 where the target has no kernels of these types. Weights become f32 while
// building, and what lies between two ops stays f32, so that nothing is rounded there ("excess precision", as C calls
// it). Where the network itself casts, it is rounded as it says; its inputs and outputs keep their types. Factors that
// were bf16 may be rounded to it again, where the target multiplies such faster.
#include <unordered_map>

#include "passes/pass.h"
#include "passes/precision_rules.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Whether it computes; what moves or compares is wide when something that it reads is.
bool computes(const Node& node) {
  return node.has_trait(kNarrows) ||
         (node.has_trait(kWidens) && !(node.is(OpKind::dequantize) && !is_narrow(node.output()->dtype())));
}

class Widener {
 public:
  Widener(ir::Graph& graph, bool bf16_factors) : graph_(graph), bf16_factors_(bf16_factors) {}

  Result<bool> run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      if (node->is(OpKind::cast)) continue;  // reads what there is
      const bool reads_wide = reads(*node, [&](const Value* input) { return narrow_types_.contains(input); });
      if (node->is(OpKind::dequantize) && !computes(*node))
        LATHE_TRY(read_narrow(*node));
      else if (reads_wide || (computes(*node) && (node->is(OpKind::dequantize) || reads(*node, is_narrow_value))))
        LATHE_TRY(widen(*node));
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value* value = graph_.outputs()[i].value;
      const auto narrow = narrow_types_.find(value);
      if (narrow == narrow_types_.end()) continue;
      LATHE_ASSIGN(Value * rounded, cast(value, narrow->second, nullptr));
      graph_.set_output(i, rounded);
    }
    return changed_;
  }

 private:
  // Whether it is a product of such factors, as the network has them.
  bool multiplies(const Node& node, DType type) const {
    if (!factors_of(node.attributes())) return false;
    const auto narrow = narrow_types_.find(node.input(0));
    return (narrow == narrow_types_.end() ? node.input(0)->dtype() : narrow->second) == type;
  }

  static bool is_narrow_value(const Value* value) { return is_narrow(value->dtype()); }

  template <class F>
  static bool reads(const Node& node, F is) {
    for (size_t i = 0; i < node.num_inputs(); ++i)
      if (node.input(i) && is_computed_with(node, i) && is(node.input(i))) return true;
    return false;
  }

  Result<> widen(Node& node) {
    const bool is_rounded = bf16_factors_ && multiplies(node, DType::bf16);
    std::vector<DType> before;
    for (size_t i = 0; i < node.num_outputs(); ++i) before.push_back(node.output(i)->dtype());
    if (node.is(OpKind::dequantize)) {
      DequantizeAttrs attrs = node.attrs<DequantizeAttrs>();
      attrs.to = DType::f32;
      LATHE_TRY(graph_.set_attributes(&node, attrs));
      changed_ = true;
    }
    std::vector<Value*> inputs = node.inputs();
    bool is_other = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !is_narrow_value(inputs[i]) || !is_computed_with(node, i)) continue;
      LATHE_ASSIGN(inputs[i], cast(inputs[i], DType::f32, &node));
      is_other = true;
    }
    // The shape rule runs also where all inputs are wide already, for what they were before has changed.
    LATHE_TRY(graph_.set_inputs(&node, std::move(inputs)));
    changed_ |= is_other;
    if (is_rounded) LATHE_TRY(round_factors(graph_, node, DType::bf16));
    for (size_t i = 0; i < node.num_outputs(); ++i)
      if (node.output(i)->dtype() != before[i]) narrow_types_.emplace(node.output(i), before[i]);
    return {};
  }

  // For ops that need the types that the network has.
  Result<> read_narrow(Node& node) {
    std::vector<Value*> inputs = node.inputs();
    bool is_other = false;
    for (Value*& input : inputs) {
      const auto narrow = narrow_types_.find(input);
      if (narrow == narrow_types_.end()) continue;
      LATHE_ASSIGN(input, cast(input, narrow->second, &node));
      is_other = true;
    }
    return is_other ? graph_.set_inputs(&node, std::move(inputs)) : Result<>();
  }

  // One cast of each value serves all readers that come later.
  Result<Value*> cast(Value* value, DType to, Node* before) {
    Value*& made = casts_[value];
    if (!made) {
      LATHE_ASSIGN(made, add_named_cast(graph_, value, to, {}, before));
    }
    return made;
  }

  ir::Graph& graph_;
  const bool bf16_factors_;
  bool changed_ = false;
  std::unordered_map<const Value*, DType> narrow_types_;  // of the values that became f32
  std::unordered_map<const Value*, Value*> casts_;        // each value has one other type
};

}  // namespace

Result<bool> widen_floats(ir::Graph& graph, PassContext& context) {
  if (context.arithmetic.narrow_floats) return false;
  return Widener(graph, context.arithmetic.bf16_factors).run();
}

}  // namespace lathe
