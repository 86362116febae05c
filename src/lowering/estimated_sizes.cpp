// SPDX-License-Identifier: Apache-2.0
#include "lowering/estimated_sizes.h"

#include <algorithm>
#include <unordered_map>

#include "ir/known_content.h"
#include "ops/result_types.h"

namespace lathe {
namespace {

constexpr int64_t kMostElements = 1024;  // of what is evaluated: lists of sizes, and numbers
constexpr int64_t kMostSelected = 1000;  // as detectors keep

class SizeEstimator {
 public:
  SizeEstimator(std::span<const Symbol> symbols, std::vector<int64_t> sizes)
      : symbols_(symbols), sizes_(std::move(sizes)) {}

  void visit(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (const auto& [place, symbol] : node->carried_dims()) bind(symbol, 1);
      for (const auto& body : node->bodies()) visit(*body);
      evaluate(*node);
      for (size_t i = 0; i < node->num_outputs(); ++i)
        for (const Expr& dim : node->output(i)->shape())
          if (is_open(dim)) bind(dim, most_of(*node, dim));
    }
  }
  std::vector<int64_t> take() { return std::move(sizes_); }

 private:
  // Whether the dimension is a symbol that has no value yet.
  bool is_open(const Expr& dim) const {
    const std::optional<SymbolId> id = dim.as_symbol();
    return id && sizes_[*id] == Expr::kUnbound;
  }
  void bind(const Expr& dim, int64_t value) {
    if (!is_open(dim)) return;
    const SymbolId id = *dim.as_symbol();
    const Range& range = symbols_[id].range;
    sizes_[id] = std::clamp(value, range.min, range.max);
  }

  int64_t most_of(const ir::Node& node, const Expr& dim) const {
    std::optional<int64_t> most;
    for (const Constraint& constraint : node.constraints())
      if (constraint.relation == Relation::at_most && constraint.a == dim)
        if (const std::optional<int64_t> bound = constraint.b.evaluate(sizes_))
          most = std::min(most.value_or(*bound), *bound);
    return std::clamp<int64_t>(most.value_or(1), 1, kMostSelected);
  }

  std::optional<Dims> dims_of(const Shape& shape) const {
    Dims dims;
    for (const Expr& dim : shape) {
      const std::optional<int64_t> value = dim.evaluate(sizes_);
      if (!value) return std::nullopt;
      dims.push_back(*value);
    }
    return dims;
  }

  // Undefined where it is not known.
  Tensor content_of(const ir::Value& value) const {
    if (const Tensor* constant = value.content()) return *constant;
    if (const auto found = contents_.find(&value); found != contents_.end()) return found->second;
    Result<std::optional<Tensor>> inferred = ir::inferred_content(value, sizes_);
    return inferred && *inferred ? **std::move(inferred) : Tensor();
  }

  bool has_open_dim(const ir::Node& node) const {
    for (size_t i = 0; i < node.num_outputs(); ++i)
      if (!dims_of(node.output(i)->shape())) return true;
    return false;
  }

  void evaluate(const ir::Node& node) {
    constexpr uint32_t kNeverSame = kControlFlow | kFresh;
    if (node.is(OpKind::constant) || node.is(OpKind::plugin) || node.has_trait(kNeverSame)) return;
    std::vector<ValueType> types(node.num_inputs());
    std::vector<const ValueType*> given(node.num_inputs());
    std::vector<Tensor> contents(node.num_inputs());
    bool all_known = true;
    for (size_t i = 0; i < node.num_inputs(); ++i) {
      const ir::Value* input = node.input(i);
      if (!input) continue;
      const std::optional<Dims> dims = dims_of(input->shape());
      if (!dims) return;
      types[i] = {input->dtype(), to_shape(*dims)};
      given[i] = &types[i];
      contents[i] = content_of(*input);
      all_known = all_known && contents[i].defined() && contents[i].volume() <= kMostElements;
    }
    if (!all_known && !has_open_dim(node)) return;
    const auto results = result_types(node.attributes(), given, contents, node.num_outputs());
    if (!results) return;  // the sizes of the optimum do not fit: the constraints say so elsewhere
    for (size_t i = 0; i < results->size(); ++i) {
      const Shape& shape = (*results)[i].shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (const std::optional<int64_t> size = shape[d].as_constant()) bind(node.output(i)->shape()[d], *size);
      all_known = all_known && volume(shape).as_constant().value_or(kMostElements) <= kMostElements;
    }
    if (all_known) keep_contents(node, contents);
  }

  void keep_contents(const ir::Node& node, const std::vector<Tensor>& inputs) {
    Result<std::vector<Tensor>> outputs = run_op(node.attributes(), inputs, node.num_outputs());
    if (!outputs) return;
    for (size_t i = 0; i < outputs->size(); ++i) {
      const Dims& dims = (*outputs)[i].dims();
      for (size_t d = 0; d < dims.size(); ++d) bind(node.output(i)->shape()[d], dims[d]);
      contents_.emplace(node.output(i), std::move((*outputs)[i]));
    }
  }

  std::span<const Symbol> symbols_;
  std::vector<int64_t> sizes_;
  std::unordered_map<const ir::Value*, Tensor> contents_;
};

}  // namespace

std::vector<int64_t> estimate_sizes(const ir::Graph& graph, std::vector<int64_t> sizes) {
  SizeEstimator estimator(graph.symbols(), std::move(sizes));
  estimator.visit(graph);
  return estimator.take();
}

}  // namespace lathe
