// SPDX-License-Identifier: Apache-2.0
// The import of one model: its graph, the functions that nodes call, and the graphs that nodes hold.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "onnx/import.h"
#include "onnx/int64_weights.h"
#include "onnx/node_context.h"

namespace lathe::onnx {

using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload

// Names of one graph or function body, and the operator sets it imports.
struct Scope {
  std::unordered_map<std::string_view, Slot> values;
  std::unordered_map<std::string_view, const TensorData*> initializers;
  std::unordered_map<std::string_view, int64_t> versions;
  const CallAttributes* call = nullptr;
  ir::Graph* graph = nullptr;          // where nodes go: the network, or a body of its control flow
  ir::Captured* captured = nullptr;    // by a body, from outside
  Scope* outer = nullptr;              // of a nested graph: names it may capture
  std::string prefix;                  // of node names
  std::vector<std::string> functions;  // whose bodies this lies in, outermost first
  int depth = 0;
};

class GraphImporter {
 public:
  GraphImporter(const Model& model, ir::Graph& graph, const ImportOptions& options)
      : model_(model), graph_(graph), options_(options), int64_(options.int64_as_int32) {
    report_.branches = options.branches;
    max_nodes_ += 100 * model.graph.nodes.size();
    for (const FunctionProto& function : model.functions) {
      functions_[{normal_domain(function.domain), function.name, function.overload}] = &function;
      max_nodes_ += 100 * function.nodes.size();
    }
  }

  void run();
  ImportReport& report() { return report_; }
  std::vector<ImportProblem>& problems() { return problems_; }

 private:
  void import_inputs(Scope& scope);
  void import_outputs(Scope& scope);
  void import_output(const TypeProto& type, const std::string& name, ir::Value* value);
  void add_output(const std::string& name, ir::Value* value);
  void check_output_type(const TypeProto& type, const std::string& name, const ir::Value& tensor, bool is_text);
  void import_text_output(const TypeProto& type, const std::string& name, ir::Value* rows);
  void import_slot_output(const ValueInfo& output, const Slot& slot);
  void import_sequence_output(const ValueInfo& output, const Sequence& sequence);
  void import_parts_output(const ValueInfo& output, const std::vector<std::pair<std::string, ir::Value*>>& parts,
                           const TypeProto& type);
  Result<Slot> import_input(const ValueInfo& input);
  Result<Slot> import_sequence_input(const ValueInfo& input, const TypeProto& type, const InputElements* elements);
  Result<ir::Value*> import_tensor_input(const std::string& name, const TypeProto& type, const Dims* dims);
  Result<> check_input_elements() const;
  // False when the node failed or was blocked; then its outputs are blocked.
  bool import_node(const NodeProto& node, size_t index, Scope& scope);
  static void name_tensor(ir::Graph& graph, ir::Value* value, const std::string& name);
  bool import_call(const NodeProto& node, const std::string& name, const FunctionProto& function,
                   std::vector<Slot> inputs, Scope& scope);
  bool import_operator(const NodeProto& node, const std::string& name, size_t index, std::vector<Slot> inputs,
                       Scope& scope);
  std::optional<std::vector<Slot>> import_body(const GraphProto& body, const std::vector<Slot>& inputs,
                                               std::string prefix, Scope& outer);
  bool fill_body(const GraphProto& proto, ir::GraphBuilder& inside, ir::Captured& captured, const BodyEdge& edge,
                 std::string prefix, Scope& outer);
  bool attempt(const std::function<bool()>& work);  // see Attempt
  std::optional<std::vector<Slot>> import_nodes(const GraphProto& body, Scope& scope);
  bool is_custom(const NodeProto& node) const;
  const FunctionProto* find_function(const NodeProto& node) const;
  Slot resolve(std::string_view name, Scope& scope);
  static Slot captured(std::string_view name, Slot outside, Scope& scope);
  static Slot capture(std::string_view name, const Slot& outside, Scope& scope);
  static ir::Value* capture_value(std::string_view name, ir::Value* value, Scope& scope);
  static void block_outputs(const NodeProto& node, Scope& scope);
  void blame(const NodeProto& node, size_t index, const Scope& scope, const std::vector<Slot>& inputs, Error error,
             SourceLocation where = SourceLocation::current());
  void problem(Error error, SourceLocation where = SourceLocation::current());
  void add_problem(ImportProblem problem);
  void note_outputs(const Scope& scope);

  const Model& model_;
  ir::Graph& graph_;
  const ImportOptions& options_;
  Int64Weights int64_;
  std::map<FunctionKey, const FunctionProto*> functions_;
  ImportReport report_;
  std::vector<ImportProblem> problems_;
  NodeSupport* support_ = nullptr;  // of the main graph's node in work
  // Functions that call functions can grow without bound when inlined.
  size_t num_nodes_ = 0;
  size_t max_nodes_ = 50'000;
};

}  // namespace lathe::onnx
