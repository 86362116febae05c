// SPDX-License-Identifier: Apache-2.0
#include "passes/lost_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;

constexpr size_t kMostSteps = 64;  // on the way from a softmax to a product

bool is_product(const Node& node) {
  return (node.is(OpKind::matmul) || node.is(OpKind::einsum)) && node.num_inputs() == 2 && !node.input(0)->content() &&
         !node.input(1)->content();
}

bool is_passed(const Node& node) { return node.has_trait(kPointwise | kView | kMovement); }

// What attention has between a softmax and its products.
bool is_of_attention(const Node& node) {
  if (node.is(OpKind::elementwise)) {
    const Op op = node.attrs<ElementwiseAttrs>().op;
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::div;
  }
  return node.is(OpKind::cast) || node.is(OpKind::select) || node.has_trait(kView) || is(&node, ActivationOp::tanh);
}

struct Step {
  const Node* node;
  size_t from;  // the step before it; the first is its own
};

// The nodes from a softmax to the next product in either direction, the product first; empty = there is none.
template <class Neighbours>
std::vector<const Node*> path_to_product(const Node& softmax, const Neighbours& neighbours) {
  std::vector<Step> steps = {{&softmax, 0}};
  for (size_t at = 0; at < steps.size() && at < kMostSteps; ++at) {
    if (at > 0 && is_product(*steps[at].node)) {
      std::vector<const Node*> path;
      for (; at > 0; at = steps[at].from) path.push_back(steps[at].node);
      return path;
    }
    if (at > 0 && !is_passed(*steps[at].node)) continue;
    for (const Node* next : neighbours(*steps[at].node))
      if (std::none_of(steps.begin(), steps.end(), [&](const Step& step) { return step.node == next; }))
        steps.push_back({next, at});
  }
  return {};
}

std::vector<const Node*> producers(const Node& node) {
  std::vector<const Node*> nodes;
  for (const Value* input : node.inputs())
    if (input && input->producer()) nodes.push_back(input->producer());
  return nodes;
}

std::vector<const Node*> readers(const Node& node) {
  std::vector<const Node*> nodes;
  for (const ir::Use& use : node.output()->uses()) nodes.push_back(use.node);
  return nodes;
}

std::string called(const Node& node) { return fmt::format("{} '{}'", node.info().name, node.output()->name()); }

// What quantising and dequantising are, before and after they are lowered; not what makes floats of integers' sums.
bool rounds_to_integers(const Node& node) {
  if (node.is(OpKind::quantize)) return is_integer(node.output()->dtype());
  return is(&node, UnaryOp::round) ||
         (node.is(OpKind::dequantize) && is_integer(node.input(0)->dtype()) && node.input(0)->dtype() != DType::i32);
}

// What stands in the way to a product, the product included; empty = nothing that is known.
std::string obstacle(const std::vector<const Node*>& path, std::string_view what) {
  for (const Node* node : path) {
    if (node->is(OpKind::einsum))
      return fmt::format("its {} pass the einsum '{}' of '{}'", what, node->attrs<EinsumAttrs>().equation,
                         node->output()->name());
    if (node != path.front() && !is_of_attention(*node)) return fmt::format("its {} pass {}", what, called(*node));
  }
  return {};
}

std::string reason_of(const Node& softmax, const std::vector<const Node*>& before,
                      const std::vector<const Node*>& behind) {
  const auto& attrs = softmax.attrs<SoftmaxAttrs>();
  if (attrs.log) return "it is a logarithm";
  if (attrs.axis != -1 && attrs.axis != softmax.output()->rank() - 1)
    return fmt::format("it runs along axis {}, and not along the last", attrs.axis);
  if (std::ranges::any_of(before, [](const Node* node) { return rounds_to_integers(*node); }))
    return "its scores are rounded to integers";
  if (std::ranges::any_of(behind, [](const Node* node) { return rounds_to_integers(*node); }))
    return std::string(kIntegerProbabilities);
  for (const auto& [path, what] : {std::pair(&before, "scores"), std::pair(&behind, "probabilities")})
    if (std::string found = obstacle(*path, what); !found.empty()) return found;
  const Node& product = *behind.front();
  const Value* probabilities = behind.size() == 1 ? softmax.output() : behind[1]->output();
  if (product.input(0) != probabilities)
    return fmt::format("its probabilities are the right operand of {}", called(product));
  if (product.attrs<MatmulAttrs>().transpose_a)
    return fmt::format("its probabilities are transposed for {}", called(product));
  if (before.front()->output()->rank() < 3 || product.output()->rank() < 3)
    return "its products are of single matrices";
  return fmt::format("between {} and {} scores change their shape, or what attention has no words for is done to them",
                     called(*before.front()), called(product));
}

}  // namespace

void forget_lost_attentions(const ir::Graph& graph, PassContext& context) {
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::softmax)) context.notes.erase(node->output()->name());
}

void note_lost_attentions(const ir::Graph& graph, PassContext& context) {
  for (const auto& node : graph.nodes()) {
    if (!node->is(OpKind::softmax) || context.notes.contains(node->output()->name())) continue;
    const std::vector<const Node*> before = path_to_product(*node, producers), behind = path_to_product(*node, readers);
    if (before.empty() || behind.empty()) continue;
    context.notes[node->output()->name()] = std::string(kNoAttention) + reason_of(*node, before, behind);
  }
}

}  // namespace lathe
