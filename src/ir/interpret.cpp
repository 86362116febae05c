// SPDX-License-Identifier: Apache-2.0
#include "ir/interpret.h"

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

}  // namespace

Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs, const Observer& observe) {
  if (inputs.size() != graph.inputs().size())
    return fail(ErrorCode::invalid_argument, "network '{}' has {} inputs, got {}", graph.name(), graph.inputs().size(),
                inputs.size());
  std::unordered_map<const Value*, Tensor> values;
  std::unordered_map<const Value*, size_t> readers;
  std::vector<int64_t> symbols(graph.symbols().size(), Expr::kUnbound);
  const auto define = [&](const Value* value, Tensor tensor) -> Result<> {
    if (observe) LATHE_TRY(observe(*value, tensor));
    readers[value] = value->uses().size();
    values[value] = std::move(tensor);
    return {};
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    LATHE_TRY(check_input(graph, *graph.inputs()[i], inputs[i], symbols));
    LATHE_TRY(define(graph.inputs()[i], inputs[i]));
  }
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (const Value* input : node->inputs()) operands.push_back(input ? values.at(input) : Tensor());
    Result<std::vector<Tensor>> results = run_op(node->attributes(), operands, node->num_outputs());
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

}  // namespace lathe::ir
