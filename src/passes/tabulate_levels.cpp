// SPDX-License-Identifier: Apache-2.0
// What is computed of one tensor of 8-bit levels, element by element, and becomes levels again, is a table of 256: an
// activation that a quantiser has cut into its steps, for one.
#include <unordered_map>

#include "ops/quantization.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

constexpr size_t kMostNodes = 64;
constexpr int64_t kLevels = 256;

// By a table that an earlier run has made.
bool is_known_lookup(const ir::Node& node) { return is_lookup(node) && node.input(0)->constant(); }

// Takes dozens of instructions for each element, or a kernel of its own: others are as fast where they are computed
// now.
bool is_long(const ir::Node& node) {
  if (is_known_lookup(node)) return true;
  if (node.is(OpKind::unary)) {
    const UnaryOp op = node.attrs<UnaryAttrs>().op;
    return op == UnaryOp::erf || op == UnaryOp::exp || op == UnaryOp::log;
  }
  if (!node.is(OpKind::activation)) return false;
  const ActivationOp op = node.attrs<ActivationAttrs>().op;
  return op != ActivationOp::relu && op != ActivationOp::clip && op != ActivationOp::leaky_relu;
}

bool is_by_element(const ir::Node& node) {
  return (node.has_trait(kPointwise) && node.num_outputs() == 1) || is_known_lookup(node);
}

// The nodes by which a value is computed of one tensor of levels and of numbers, in the order in which they run.
class Between {
 public:
  explicit Between(const ir::Value* levels) : levels_(levels) {}

  // Whether there is nothing else that it is computed of.
  bool find(const ir::Value* value) {
    if (value == levels_ || index_.contains(value)) return true;
    if (const Tensor* constant = value->constant()) return constant->volume() == 1;
    const ir::Node* node = value->producer();
    if (!node || !is_by_element(*node)) return false;
    for (const ir::Value* input : node->inputs())
      if (input && !(is_known_lookup(*node) && input == node->input(0)) && !find(input)) return false;
    if (nodes_.size() >= kMostNodes) return false;
    index_[value] = nodes_.size();
    nodes_.push_back(node);
    return true;
  }

  bool is_long() const {
    return std::ranges::any_of(nodes_, [](const ir::Node* node) { return lathe::is_long(*node); });
  }

  // The value of the last node for each level, as gathers count them: negative ones from the end.
  Result<Tensor> table() const {
    LATHE_ASSIGN(Tensor levels, Tensor::allocate(levels_->dtype(), {kLevels}));
    for (int64_t i = 0; i < kLevels; ++i) levels.mutable_as<uint8_t>()[i] = static_cast<uint8_t>(i);
    std::vector<Tensor> results;
    for (const ir::Node* node : nodes_) {
      std::vector<Tensor> inputs;
      for (const ir::Value* input : node->inputs()) {
        const Tensor* constant = input ? input->constant() : nullptr;
        inputs.push_back(!input             ? Tensor()
                         : input == levels_ ? levels
                         : !constant        ? results[index_.at(input)]
                         : is_lookup(*node) ? *constant
                                            : constant->reshaped({}));
      }
      LATHE_ASSIGN(std::vector<Tensor> result, run_op(node->attributes(), inputs, 1));
      results.push_back(std::move(result[0]));
    }
    return results.back();
  }

  const std::vector<const ir::Node*>& nodes() const { return nodes_; }

 private:
  const ir::Value* levels_;
  std::vector<const ir::Node*> nodes_;
  std::unordered_map<const ir::Value*, size_t> index_;  // of the nodes' results
};

// Tensors of levels by which the value is computed, the nearest first.
std::vector<ir::Value*> levels_before(ir::Value* value) {
  std::vector<ir::Value*> values = {value}, levels;
  for (size_t at = 0; at < values.size() && at < kMostNodes; ++at) {
    const ir::Node* node = values[at]->producer();
    if (!node || !is_by_element(*node)) continue;
    for (ir::Value* input : node->inputs()) {
      if (!input || input->constant() || std::ranges::find(values, input) != values.end()) continue;
      values.push_back(input);
      if (is_byte_integer(input->dtype())) levels.push_back(input);
    }
  }
  return levels;
}

Result<bool> tabulate(Rewrite& r) {
  if (!r.context.arithmetic.weighted_products || !is_byte_integer(r.output()->dtype())) return false;
  std::vector<ir::Value*> candidates = levels_before(r.output());
  for (auto levels = candidates.rbegin(); levels != candidates.rend(); ++levels) {
    Between between(*levels);
    if (!same_shape(*levels, r.output()) || !between.find(r.output()) || !between.is_long()) continue;
    LATHE_ASSIGN(Tensor table, between.table());
    if (table.dims() != Dims{kLevels}) continue;
    for (const ir::Node* node : between.nodes())
      if (node != r.node) r.absorb(node);
    return r.finish(r.add(GatherAttrs{}, {r.constant(std::move(table)), *levels}));
  }
  return false;
}

}  // namespace

Result<bool> tabulate_levels(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"quantize(f(dequantize(q, s)), t) = gather(table, q)", OpKind::quantize, tabulate},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
