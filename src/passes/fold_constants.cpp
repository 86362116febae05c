// SPDX-License-Identifier: Apache-2.0
// Computes what depends on constants alone, and shape arithmetic whose result the shape rules already know.
#include <algorithm>
#include <functional>
#include <new>
#include <unordered_set>
#include <utility>

#include "base/for_each_in_threads.h"
#include "ir/known_content.h"
#include "ops/narrowing.h"
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

bool may_fold(const ir::Node& node, const PassContext& context) {
  if (stays_packed(node, context.arithmetic)) return false;
  // Products of levels want quantised weights as they are; lower_quantization folds what they do not take.
  if (!node.is(OpKind::dequantize) || !are_multiplied(node.input(0)->dtype(), context.arithmetic)) return true;
  const bool scales_blocks = is_factor_float8(node.input(0)->dtype()) && context.arithmetic.float8_block > 0;
  return !node.attrs<DequantizeAttrs>().blocks.empty() && !scales_blocks;
}

// Of a node that may be folded.
bool may_compute(const ir::Node& node, const PassContext& context) {
  return has_constant_inputs(node) && !makes_sizes_of_weights(node) && may_grow(node, context) &&
         is_cheap(node, context);
}

// Nothing where the operation fails on its values (an index out of range): it fails when it is run, if it is run.
std::vector<Known> compute_outputs(const ir::Node& node) {
  std::vector<Known> inputs;
  for (ir::Value* input : node.inputs()) inputs.push_back(input ? input->known() : Known());
  Result<std::vector<Known>> computed = compute(node.attributes(), inputs, node.num_outputs());
  return computed ? *std::move(computed) : std::vector<Known>();
}

bool has_used_outputs(const ir::Node& node) {
  for (size_t i = 0; i < node.num_outputs(); ++i)
    if (is_used(*node.output(i))) return true;
  return false;
}

int64_t bytes_of_outputs(const ir::Node& node) {
  int64_t total = 0;
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const std::optional<int64_t> count = volume(node.output(i)->shape()).as_constant();
    total += bytes_of(node.output(i)->dtype(), count.value_or(0)).value_or(0);
  }
  return total;
}

// Of blocks of weights, as NVFP4 has them.
bool are_scales(const ir::Value& value) {
  return !value.uses().empty() && std::ranges::all_of(value.uses(), [](const ir::Use& use) {
    return use.node->is(OpKind::dequantize) && use.index > 0;
  });
}

void note_widened(const ir::Node& node, WidenedWeights& widened) {
  if (!node.has_trait(kConverts) || !is_storage_only(node.input(0)->dtype()) || are_scales(*node.output())) return;
  ++widened.count;
  widened.stored += static_cast<int64_t>(node.input(0)->content()->bytes());
  widened.floats += bytes_of_outputs(node);
}

// Replaces what is known of the node's outputs: `results`, or what the shape rules know where there are none.
Result<bool> replace_outputs(ir::Graph& graph, ir::Node* node, const std::vector<Known>& results,
                             PassContext& context) {
  bool changed = false;
  if (!results.empty() && has_used_outputs(*node)) note_widened(*node, context.widened);
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

Result<bool> fold(ir::Graph& graph, ir::Node* node, PassContext& context) {
  if (!may_fold(*node, context)) return false;
  return replace_outputs(graph, node, may_compute(*node, context) ? compute_outputs(*node) : std::vector<Known>(),
                         context);
}

// Weights, each of which takes long: those of a round are computed at the same time, and no round is so large that
// what it reads and what it makes need much memory together.
class WeightsFolder {
 public:
  WeightsFolder(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Result<bool> run() {
    bool changed = false;
    for (std::vector<ir::Node*> nodes = next_round(); !nodes.empty(); nodes = next_round()) {
      std::vector<std::vector<Known>> results(nodes.size());
      std::vector<std::function<void()>> works;
      for (size_t i = 0; i < nodes.size(); ++i)
        if (!add_narrowing(*nodes[i], results[i], works))
          works.emplace_back([&, i] { results[i] = compute_outputs(*nodes[i]); });
      for_each_in_threads(works.size(), context_.threads, [&](size_t i, size_t) {
        try {
          works[i]();
        } catch (const std::bad_alloc&) {  // folded by itself later, when others need no memory, or it fails there
        }
      });
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (results[i].empty()) continue;
        LATHE_ASSIGN(const bool replaced, replace_outputs(graph_, nodes[i], std::exchange(results[i], {}), context_));
        changed |= replaced;
      }
    }
    return changed;
  }

  // What run() has found to stay as it is: telling so may take a look at all its weights.
  bool keeps(const ir::Node& node) const { return kept_.contains(&node); }

 private:
  static constexpr int64_t kLarge = 1 << 20, kMostOfRound = int64_t{512} << 20;  // bytes

  // A network's largest weights would keep one thread busy when all others are done: those that are rounded to 16 bits
  // are so in pieces. False, adding nothing, of other nodes.
  static bool add_narrowing(const ir::Node& node, std::vector<Known>& results,
                            std::vector<std::function<void()>>& works) {
    static constexpr int64_t kPiece = 1 << 20;  // elements
    if (!node.is(OpKind::cast) || !node.input(0)->constant() || node.input(0)->dtype() != DType::f32) return false;
    const Tensor& from = *node.input(0)->constant();
    const DType to = node.attrs<CastAttrs>().to;
    Result<Tensor> made = is_narrowed_to(to) ? Tensor::allocate(to, from.dims()) : Tensor();
    if (!made || !made->defined()) return false;
    auto* const bytes = made->mutable_as<std::byte>();
    for (int64_t begin = 0; begin < from.volume(); begin += kPiece)
      works.emplace_back([&from, bytes, to, begin] {
        narrow(from.as<float>() + begin, std::min(kPiece, from.volume() - begin), to,
               bytes + static_cast<size_t>(begin) * size_of(to));
      });
    results = {Known{*std::move(made), nullptr}};
    return true;
  }

  std::vector<ir::Node*> next_round() {
    std::vector<ir::Node*> nodes;
    int64_t total = 0;
    for (const auto& each : graph_.nodes()) {
      ir::Node* node = each.get();
      const int64_t bytes = bytes_of_outputs(*node);
      if (node->is(OpKind::constant) || bytes < kLarge || !has_used_outputs(*node) || !has_constant_inputs(*node) ||
          !seen_.insert(node).second)
        continue;
      if (!may_fold(*node, context_)) kept_.insert(node);
      if (kept_.contains(node) || !may_compute(*node, context_)) continue;
      nodes.push_back(node);
      total += bytes;
      if (total >= kMostOfRound) break;
    }
    return nodes;
  }

  ir::Graph& graph_;
  PassContext& context_;
  std::unordered_set<const ir::Node*> seen_, kept_;
};

}  // namespace

Result<bool> fold_constants(ir::Graph& graph, PassContext& context) {
  WeightsFolder weights(graph, context);
  LATHE_ASSIGN(bool changed, weights.run());
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    ir::Node* node = it->get();
    ++it;
    if (node->is(OpKind::constant) || weights.keeps(*node)) continue;
    LATHE_ASSIGN(const bool folded, fold(graph, node, context));
    changed |= folded;
  }
  return changed;
}

}  // namespace lathe
