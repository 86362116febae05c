// SPDX-License-Identifier: Apache-2.0
// Turns an ONNX model into the graph IR.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/source_location.h"
#include "ir/graph.h"
#include "onnx/branches.h"
#include "onnx/model.h"

namespace lathe::onnx {

// Something that is wrong with a model, or that we cannot do.
struct ImportProblem {
  Error error;
  SourceLocation where;                  // in this library it was found
  std::optional<size_t> node{};          // of the main graph, that is to blame or holds the one that is
  std::string name{}, op_type{};         // of the node that is to blame, which may be one of a function or nested graph
  std::vector<std::string> functions{};  // of the model, whose calls lead to it, outermost first
};

class NodeContext;

// Operators that the application brings along: plugins.
class CustomOperators {
 public:
  CustomOperators() = default;
  CustomOperators(const CustomOperators&) = delete;
  CustomOperators& operator=(const CustomOperators&) = delete;
  virtual ~CustomOperators() = default;
  virtual void begin() = 0;  // of an import, which may be one of several of the same model
  // Whether it is one of them. They go before standard plugins.
  virtual bool knows(const NodeProto& node) = 0;
  // Whether it goes before the operator's importer, too.
  virtual bool replaces(const NodeProto& node) = 0;
  virtual void import(NodeContext& context) = 0;  // of a node that it knows
};

// What the network has for an input of the model that is a sequence or an optional, which say too little of themselves.
struct InputElements {
  static constexpr int64_t kNone = -1;  // an optional that has no element
  int64_t count = 1;                    // of the tensors of a sequence; 1 for an optional tensor that is there
  std::optional<Dims> dims{};           // of each tensor, -1 = open; none = as the model declares them
};

struct ImportOptions {
  // Inputs whose dims are fixed here rather than by the model; -1 keeps the model's symbol.
  std::vector<std::pair<std::string, Dims>> input_dims{};
  std::map<std::string, InputElements> input_elements{};  // lathe::setInputElements()
  Branches branches{};                                    // that are not to be guessed
  CustomOperators* custom = nullptr;                      // not owned
  bool int64_as_int32 = false;                            // weights, inputs and outputs: lathe::setInt64AsInt32()
  std::function<bool(double fraction)> progress{};        // false = stop; empty = nobody wants to know
  std::vector<ImportProblem>* problems = nullptr;         // where all of them go, too, in the model's order
};

enum class Support {
  native,       // one IR op
  generic,      // composed of several IR ops, or a model function
  unsupported,  // see reason
  blocked,      // could not be judged in full: it reads the output of an unsupported node
};

struct NodeSupport {
  size_t index = 0;  // in the main graph
  std::string name;  // of the node, may be empty
  std::string op_type;
  std::string domain;
  Support support = Support::native;
  std::string reason;  // when unsupported: the error's message
};

struct ImportReport {
  std::vector<NodeSupport> nodes;
  std::vector<std::string> warnings;
  // The graph's values that are the outputs of the main graph's nodes which have a name; "" for those not wanted.
  std::unordered_map<std::string, std::vector<std::string>> outputs;
  Branches branches;  // those given, and those guessed: the condition false, or true where the rest fails otherwise
};

// Checks the model and adds its inputs, nodes and outputs to the (empty) graph. Every problem of every node is found
// and listed in the error's notes: node, operator, tensors with types and shapes, reason, remedy. After an error the
// graph is of no use.
Result<ImportReport> import_model(const Model& model, ir::Graph& graph, const ImportOptions& options = {});

// What import_model would say, for each node; fails only when the model itself is invalid.
Result<ImportReport> query_support(const Model& model, const ImportOptions& options = {});

// Is there an importer for the operator at this operator-set version?
bool is_operator_known(std::string_view domain, std::string_view op_type, int64_t version);
// ... in any domain, at any version, or a standard plugin of that name?
bool is_operator_known(std::string_view op_type);

}  // namespace lathe::onnx
