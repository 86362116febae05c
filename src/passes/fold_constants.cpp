// SPDX-License-Identifier: Apache-2.0
// Computes what depends on constants alone, and shape arithmetic whose result the shape rules already know.
#include <algorithm>

#include "ir/known_content.h"
#include "ops/rules.h"
#include "passes/quantization.h"
#include "passes/rewrite.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

bool is_used(const ir::Value& value) { return !value.uses().empty() || value.is_graph_output(); }

// The bytes that the node's results have beyond those of its inputs stay within the limit. Where nothing multiplies
// integers, quantised weights of any size become floats: they would otherwise be dequantised at every run. So do what
// is cast from storage types, and 16-bit floats where nothing computes with them.
bool may_grow(const ir::Node& node, const PassContext& context) {
  if (node.is(OpKind::dequantize)) return true;
  if (node.is(OpKind::cast) && is_storage_only(node.input(0)->dtype())) return true;
  if (node.is(OpKind::cast) && !context.arithmetic.narrow_floats && node.output()->dtype() == DType::f32) return true;
  int64_t growth = 0;
  for (ir::Value* input : node.inputs())
    if (input) growth -= static_cast<int64_t>(input->content()->bytes());
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const std::optional<int64_t> count = volume(node.output(i)->shape()).as_constant();
    const std::optional<int64_t> bytes = bytes_of(node.output(i)->dtype(), count.value_or(-1));
    if (!bytes || __builtin_add_overflow(growth, *bytes, &growth))
      return node.has_trait(kDataDependent);  // those select from their inputs
  }
  return growth <= context.max_folded_bytes;
}

// Contractions and windows are left to the engine's kernels when the plain evaluation would take long: each output
// element costs about as many products as one output channel has weights.
bool is_cheap(const ir::Node& node, const PassContext& context) {
  if (!node.has_trait(kHeavy)) return true;
  const std::optional<int64_t> outputs = volume(node.output()->shape()).as_constant();
  int64_t depth = 64;  // of a pooling window
  if (node.num_inputs() > 1) {
    const Tensor& weights = *node.input(1)->content();
    const int64_t columns =
        node.is(OpKind::matmul) ? weights.dims().empty() ? 1 : weights.dims().back() : weights.dims().at(0);
    depth = weights.volume() / std::max<int64_t>(columns, 1);
  }
  int64_t products = 0;
  return outputs && !__builtin_mul_overflow(*outputs, depth, &products) && products <= context.max_folded_products;
}

bool has_constant_inputs(const ir::Node& node) {
  if (node.has_trait(kFresh | kControlFlow)) return false;
  for (ir::Value* input : node.inputs())
    if (input && !input->content()) return false;
  return true;
}

// Nor do sizes that hang on weights which can be replaced: nothing may be computed of what they hold now.
bool makes_sizes_of_weights(const ir::Node& node) {
  bool is_derived = false;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const ir::Value* input = node.input(i);
    if (!input || !input->content() || input->constant()) continue;
    if (says_sizes(node.info(), i)) return true;
    is_derived = true;
  }
  return is_derived && node.has_trait(kDataDependent);
}

Result<bool> replace_by_constant(ir::Graph& graph, ir::Node* node, ir::Value* value, Known content) {
  LATHE_ASSIGN(ir::Value * constant, graph.add_known(std::move(content), {{}, node->origin(), {}}, node));
  LATHE_TRY(graph.replace_uses(value, constant));
  return true;
}

Result<bool> fold(ir::Graph& graph, ir::Node* node, const PassContext& context) {
  if (stays_packed(*node, context.arithmetic)) return false;
  // Products of levels want quantised weights as they are; lower_quantization folds what they do not take.
  if (node->is(OpKind::dequantize) && are_multiplied(node->input(0)->dtype(), context.arithmetic) &&
      node->attrs<DequantizeAttrs>().blocks.empty())
    return false;
  std::vector<Known> results;
  if (has_constant_inputs(*node) && !makes_sizes_of_weights(*node) && may_grow(*node, context) &&
      is_cheap(*node, context)) {
    std::vector<Known> inputs;
    for (ir::Value* input : node->inputs()) inputs.push_back(input ? input->known() : Known());
    Result<std::vector<Known>> computed = compute(node->attributes(), inputs, node->num_outputs());
    // An operation that fails on its values (an index out of range) fails when it is run, if it is run.
    if (computed) results = *std::move(computed);
  }
  bool changed = false;
  for (size_t i = 0; i < node->num_outputs(); ++i) {
    ir::Value* output = node->output(i);
    if (!is_used(*output)) continue;
    Known content;
    if (!results.empty()) {
      content = results[i];
    } else {
      LATHE_ASSIGN(std::optional<Tensor> inferred, ir::inferred_content(*output));
      if (inferred) content.content = *std::move(inferred);
    }
    if (!content.content.defined()) continue;
    LATHE_ASSIGN(const bool replaced, replace_by_constant(graph, node, output, std::move(content)));
    changed |= replaced;
  }
  if (changed) erase_unused(graph, node);
  return changed;
}

}  // namespace

Result<bool> fold_constants(ir::Graph& graph, PassContext& context) {
  bool changed = false;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    ir::Node* node = it->get();
    ++it;
    if (node->is(OpKind::constant)) continue;
    LATHE_ASSIGN(const bool folded, fold(graph, node, context));
    changed |= folded;
  }
  return changed;
}

}  // namespace lathe
