// SPDX-License-Identifier: Apache-2.0
#include "api/builder/boundary.h"

namespace lathe::api {
namespace {

Result<> error_of(const ir::GraphBuilder& b, const char* what) {
  if (!b.failed()) return {};
  return fail(b.error().value_or(Error{ErrorCode::internal, what, {}}));
}

}  // namespace

Result<> convert_input(ir::Graph& graph, ir::Value* input, ValueType memory, const Conversion& convert) {
  const std::vector<ir::Use> uses = input->uses();
  graph.set_input_type(input, std::move(memory));
  ir::Node* const first = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  ir::GraphBuilder b(graph, {fmt::format("reformat {}", input->name()), {}, {}}, first);
  ir::Value* const value = convert(b, input);
  LATHE_TRY(error_of(b, "an input cannot be reformatted"));
  for (const ir::Use& use : uses) LATHE_TRY(graph.set_input(use.node, use.index, value));
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i].value == input) graph.set_output(i, value);
  return {};
}

Result<> convert_output(ir::Graph& graph, size_t output, const Conversion& convert) {
  ir::GraphBuilder b(graph, {fmt::format("reformat {}", graph.outputs()[output].name), {}, {}});
  ir::Value* const value = convert(b, graph.outputs()[output].value);
  LATHE_TRY(error_of(b, "an output cannot be reformatted"));
  graph.set_output(output, value);
  return {};
}

}  // namespace lathe::api
