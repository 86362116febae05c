// SPDX-License-Identifier: Apache-2.0
#include "ir/interpret.h"

#include <algorithm>

#include "ir/doubles.h"

namespace lathe::ir {
namespace {

Result<> check_input(const Graph& graph, const Value& value, const Tensor& tensor, std::vector<int64_t>& symbols) {
  const auto mismatch = [&] {
    return fail(ErrorCode::binding_invalid, "input '{}' is {}, got {}{}", value.name(), to_string(value.type(), graph),
                name_of(tensor.dtype()), lathe::to_string(to_shape(tensor.dims())));
  };
  if (!tensor.defined() || tensor.dtype() != value.dtype() || tensor.rank() != value.rank()) return mismatch();
  for (size_t d = 0; d < value.shape().size(); ++d) {
    const int64_t dim = tensor.dims()[d];
    if (const std::optional<SymbolId> id = value.shape()[d].as_symbol()) {
      if (symbols[*id] == Expr::kUnbound) symbols[*id] = dim;
      if (symbols[*id] != dim) return mismatch();
    } else if (value.shape()[d] != Expr(dim)) {
      return mismatch();
    }
  }
  return {};
}

// What bodies share with the graph around them.
struct Surroundings {
  const std::vector<int64_t>& symbols;  // Expr::kUnbound = only running tells
  const Observer& observe;
  Floats floats;
};

Result<std::vector<Tensor>> run_nodes(const Graph& graph, std::span<const Tensor> inputs, const Surroundings& around);

Result<std::vector<Tensor>> run_branch(const Node& node, std::span<const Tensor> inputs, const Surroundings& around) {
  const bool holds = inputs[0].as<bool>()[0];
  return run_nodes(*node.bodies()[holds ? 0 : 1], inputs.subspan(1), around);
}

// One index of an axis, without it.
Result<Tensor> slice_at(const Tensor& whole, int64_t axis, int64_t at) {
  GatherAttrs gather;
  gather.axis = axis;
  LATHE_ASSIGN(Tensor index, Tensor::allocate(DType::i64, {}));
  index.mutable_as<int64_t>()[0] = at;
  const Tensor operands[] = {whole, index};
  LATHE_ASSIGN(std::vector<Tensor> slices, run_op(gather, operands, 1));
  return slices[0];
}

class LoopRun {
 public:
  LoopRun(const Node& node, std::span<const Tensor> inputs, const Surroundings& around)
      : body_(*node.bodies()[0]),
        attrs_(node.attrs<LoopAttrs>()),
        inputs_(inputs),
        around_(around),
        carried_(static_cast<size_t>(attrs_.carried)),
        stacked_(attrs_.stack_axes.size()) {
    values_.assign(inputs.begin(), inputs.end());
    values_.resize(std::max(values_.size(), kControls));
  }

  Result<std::vector<Tensor>> run() {
    LATHE_ASSIGN(const int64_t rounds, most_rounds());
    bool holds = !values_[1].defined() || values_[1].as<bool>()[0];
    for (int64_t round = 0; round < rounds && holds; ++round) {
      LATHE_TRY(begin(round));
      LATHE_ASSIGN(std::vector<Tensor> results, run_nodes(body_, values_, around_));
      if (inputs_.size() > 1 && inputs_[1].defined()) holds = results[0].as<bool>()[0];
      std::copy_n(results.begin() + 1, carried_, values_.begin() + kControls);
      for (size_t i = 0; i < stacked_.size(); ++i) stacked_[i].push_back(results[1 + carried_ + i]);
    }
    std::vector<Tensor> outputs(values_.begin() + kControls,
                                values_.begin() + static_cast<ptrdiff_t>(kControls + carried_));
    for (size_t i = 0; i < stacked_.size(); ++i) {
      LATHE_ASSIGN(outputs.emplace_back(), joined(i));
    }
    return outputs;
  }

 private:
  static constexpr size_t kControls = 2;

  Result<int64_t> most_rounds() const {
    int64_t rounds = !inputs_.empty() && inputs_[0].defined() ? inputs_[0].at(0) : INT64_MAX;
    for (size_t i = 0; i < attrs_.scan_axes.size(); ++i)
      rounds = std::min(rounds, inputs_[kControls + carried_ + i].dims()[static_cast<size_t>(attrs_.scan_axes[i])]);
    return rounds;
  }

  Result<> begin(int64_t round) {
    LATHE_ASSIGN(values_[0], Tensor::allocate(DType::i64, {}));
    values_[0].mutable_as<int64_t>()[0] = round;
    LATHE_ASSIGN(values_[1], Tensor::allocate(DType::boolean, {}));
    values_[1].mutable_as<bool>()[0] = true;
    for (size_t i = 0; i < attrs_.scan_axes.size(); ++i) {
      const Tensor& whole = inputs_[kControls + carried_ + i];
      const int64_t axis = attrs_.scan_axes[i], last = whole.dims()[static_cast<size_t>(axis)] - 1;
      LATHE_ASSIGN(values_[kControls + carried_ + i],
                   slice_at(whole, axis, attrs_.scan_reversed[i] ? last - round : round));
    }
    return {};
  }

  // The slices of all rounds side by side.
  Result<Tensor> joined(size_t i) const {
    const ValueType& type = body_.outputs()[1 + carried_ + i].value->type();
    std::vector<Tensor> slices;
    for (const Tensor& slice : stacked_[i]) {
      Dims dims = slice.dims();
      dims.insert(dims.begin() + attrs_.stack_axes[i], 1);
      slices.push_back(slice.reshaped(dims));
    }
    if (slices.empty()) {
      Dims dims;
      for (const Expr& dim : type.shape) dims.push_back(dim.evaluate(around_.symbols).value_or(0));
      dims.insert(dims.begin() + attrs_.stack_axes[i], 0);
      return Tensor::allocate(type.dtype, std::move(dims));
    }
    if (attrs_.stack_reversed[i]) std::reverse(slices.begin(), slices.end());
    ConcatAttrs concat;
    concat.axis = attrs_.stack_axes[i];
    LATHE_ASSIGN(std::vector<Tensor> whole, run_op(concat, slices, 1));
    return whole[0];
  }

  const Graph& body_;
  const LoopAttrs& attrs_;
  std::span<const Tensor> inputs_;
  const Surroundings& around_;
  size_t carried_;
  std::vector<Tensor> values_;  // of the body's inputs
  std::vector<std::vector<Tensor>> stacked_;
};

Result<std::vector<Tensor>> run_node(const Node& node, std::span<const Tensor> operands, const Surroundings& around) {
  if (node.is(OpKind::loop)) return LoopRun(node, operands, around).run();
  if (node.is(OpKind::branch)) return run_branch(node, operands, around);
  if (around.floats == Floats::doubles) return run_in_doubles(node, operands);
  return run_op(node.attributes(), operands, node.num_outputs());
}

Result<std::vector<Tensor>> run_nodes(const Graph& graph, std::span<const Tensor> inputs, const Surroundings& around) {
  std::unordered_map<const Value*, Tensor> values;
  std::unordered_map<const Value*, size_t> readers;
  const auto define = [&](const Value* value, Tensor tensor) -> Result<> {
    if (around.floats == Floats::doubles) {
      LATHE_ASSIGN(tensor, as_doubles(tensor));
    }
    if (around.observe) LATHE_TRY(around.observe(*value, tensor));
    readers[value] = value->uses().size();
    values[value] = std::move(tensor);
    return {};
  };
  for (size_t i = 0; i < inputs.size(); ++i) LATHE_TRY(define(graph.inputs()[i], inputs[i]));
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (const Value* input : node->inputs()) operands.push_back(input ? values.at(input) : Tensor());
    Result<std::vector<Tensor>> results = run_node(*node, operands, around);
    if (!results)
      return fail(with_context(std::move(results).error(), fmt::format("{} '{}'", node->info().name, node->name())));
    operands.clear();
    for (size_t i = 0; i < results->size(); ++i) LATHE_TRY(define(node->output(i), std::move((*results)[i])));
    for (const Value* input : node->inputs())
      if (input && --readers[input] == 0 && !input->is_graph_output()) values.erase(input);
  }
  std::vector<Tensor> outputs;
  for (const Output& output : graph.outputs()) outputs.push_back(values.at(output.value));
  return outputs;
}

}  // namespace

Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs, const Observer& observe,
                                      Floats floats) {
  if (inputs.size() != graph.inputs().size())
    return fail(ErrorCode::invalid_argument, "network '{}' has {} inputs, got {}", graph.name(), graph.inputs().size(),
                inputs.size());
  std::vector<int64_t> symbols(graph.symbols().size(), Expr::kUnbound);
  for (size_t i = 0; i < inputs.size(); ++i) LATHE_TRY(check_input(graph, *graph.inputs()[i], inputs[i], symbols));
  return run_nodes(graph, inputs, {symbols, observe, floats});
}

}  // namespace lathe::ir
