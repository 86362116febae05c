// SPDX-License-Identifier: Apache-2.0
#include "onnx/import.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "compose/text.h"
#include "onnx/checker.h"
#include "onnx/graph_importer.h"
#include "onnx/importer.h"
#include "onnx/plugins.h"
#include "onnx/text_moves.h"

namespace lathe::onnx {
namespace {

constexpr int kMaxCallDepth = 128;

Slot blocked_slot() {
  Slot slot;
  slot.blocked = true;
  return slot;
}

std::string describe(const Slot& slot, const ir::Graph& graph) {
  if (slot.value) return ir::to_brief_string(slot.value->type(), graph);
  if (slot.text) return fmt::format("strings {}", ir::to_brief_string(slot.text->type(), graph));
  if (slot.sequence) return fmt::format("sequence of {} tensors", slot.sequence->elements.size());
  if (slot.open) return slot.open->is_text ? "sequence of strings" : "sequence of tensors";
  if (slot.maybe) return "optional";
  return slot.is_empty_optional ? "optional without an element" : "(left out)";
}

Error unknown_operator(const NodeProto& node) {
  if (node.domain == "ai.onnx.preview.training" && node.op_type == "Gradient")
    return {ErrorCode::op_unsupported,
            "it differentiates the graph that computes its output 'y', which training does, and Lathe runs graphs as "
            "they are; have the framework that trains the model write the gradients as nodes, or remove the node",
            {}};
  if (node.domain.empty() && node.op_type == "ImageDecoder")
    return {
        ErrorCode::op_unsupported,
        "an engine decodes no pictures; decode them before it runs, remove the node, and make its output an input of "
        "the model: bytes of [height, width, channels]",
        {}};
  const auto text = [&](const char* name, std::string_view fallback) {
    const Attribute* attribute = node.find(name);
    return attribute && attribute->kind == AttributeKind::string ? attribute->string : fallback;
  };
  if (const std::optional<std::string> about = about_absent_plugin(node.op_type))
    return {
        ErrorCode::op_unsupported,
        fmt::format("'{}' is a plugin: {}, or load a library that has a creator of that name by loadLibrary() of the "
                    "builder's plugin registry before the model is parsed",
                    node.op_type, *about),
        {}};
  return {
      ErrorCode::op_unsupported,
      fmt::format("Lathe has no importer for this operator, nor is plugin '{}' one of the standard ones of "
                  "nvinfer_plugin (initLibNvInferPlugins()) that it has, nor has the builder's plugin registry a "
                  "creator of that name, version '{}', namespace '{}'; load the library that has it by loadLibrary() "
                  "of that registry before the model is parsed, rewrite it with supported operators or define it as "
                  "a model function",
                  node.op_type, text("plugin_version", "1"), text("plugin_namespace", "")),
      {}};
}

}  // namespace

void GraphImporter::problem(Error error, SourceLocation where) { add_problem({std::move(error), where}); }

void GraphImporter::add_problem(ImportProblem problem) {
  if (support_) {
    support_->support = Support::unsupported;
    if (support_->reason.empty()) support_->reason = problem.error.message;
    problem.node = support_->index;
  }
  problems_.push_back(std::move(problem));
}

Slot GraphImporter::resolve(std::string_view name, Scope& scope) {
  if (const auto known = scope.values.find(name); known != scope.values.end()) return known->second;
  const auto initializer = scope.initializers.find(name);
  if (initializer == scope.initializers.end()) {
    if (!scope.outer) return blocked_slot();
    const Slot outside = resolve(name, *scope.outer);
    return scope.graph == scope.outer->graph ? outside : capture(name, outside, scope);
  }
  const TensorData& data = *initializer->second;
  const bool is_text = data.type == ElementType::string;
  Result<Tensor> tensor = is_text ? text_tensor(data.dims, data.strings) : int64_.take(to_tensor(data), name);
  Result<ir::Value*> value =
      tensor ? scope.graph->add_constant(std::move(*tensor), std::string(name)) : fail(tensor.error());
  if (value) return scope.values[name] = is_text ? to_text_slot(*value) : to_slot(*value);
  problem(std::move(value).error());
  return scope.values[name] = blocked_slot();
}

void GraphImporter::block_outputs(const NodeProto& node, Scope& scope) {
  for (const std::string_view output : node.outputs)
    if (!output.empty()) scope.values[output] = blocked_slot();
}

const FunctionProto* GraphImporter::find_function(const NodeProto& node) const {
  const auto found = functions_.find({node.domain, node.op_type, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

void GraphImporter::blame(const NodeProto& node, size_t index, const Scope& scope, const std::vector<Slot>& inputs,
                          Error error, SourceLocation where) {
  std::string operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands += fmt::format("{}{}: {}", i ? ", " : "", i < node.inputs.size() ? node.inputs[i] : "",
                            describe(inputs[i], *scope.graph));
  const auto version = scope.versions.find(node.domain);
  error.message =
      fmt::format("{}{}, operator set {} {}: {}{}", scope.prefix, describe(node, index),
                  node.domain.empty() ? "ai.onnx" : node.domain, version == scope.versions.end() ? 0 : version->second,
                  error.message, operands.empty() ? "" : fmt::format(" [inputs: {}]", operands));
  add_problem({std::move(error), where, {}, std::string(node.name), std::string(node.op_type), scope.functions});
}

bool GraphImporter::is_custom(const NodeProto& node) const { return options_.custom && options_.custom->knows(node); }

bool GraphImporter::import_operator(const NodeProto& node, const std::string& name, size_t index,
                                    std::vector<Slot> inputs, Scope& scope) {
  const auto imported = scope.versions.find(node.domain);
  const int64_t version = imported == scope.versions.end() ? 0 : imported->second;
  const ImporterRow* other = nullptr;
  const ImporterRow* row = find_importer(node.domain, node.op_type, version, &other);
  const bool custom = (!row || (options_.custom && options_.custom->replaces(node))) && is_custom(node);
  const bool plugin = !row && !custom && is_standard_plugin(node.op_type);
  if (!row && !custom && !plugin) {
    Error error = unknown_operator(node);
    if (other && version > other->last_version)
      error =
          Error{ErrorCode::opset_unsupported,
                fmt::format("the operator was removed from the operator set after version {}; export the model again",
                            other->last_version),
                {}};
    else if (other)
      error =
          Error{ErrorCode::opset_unsupported,
                fmt::format("the operator exists from version {} on; export the model again with a newer operator set",
                            other->first_version),
                {}};
    blame(node, index, scope, inputs, std::move(error));
    return false;
  }
  const auto inline_graph = [&](const GraphProto& body, const std::vector<Slot>& values) {
    return import_body(body, values, name + "/", scope);
  };
  const auto make_body = [&](const GraphProto& proto, ir::GraphBuilder& inside, ir::Captured& captured,
                             const BodyEdge& edge) {
    return fill_body(proto, inside, captured, edge, name + "/", scope);
  };
  const auto attempt = [&](const std::function<bool()>& work) { return this->attempt(work); };
  NodeContext context(node, name, version, *scope.graph, inputs, scope.call, {inline_graph, make_body, attempt},
                      report_.branches, int64_);
  if (plugin) warn_of_deprecated(node.op_type, report_.warnings);
  if (custom)
    options_.custom->import(context);
  else if (plugin)
    import_standard_plugin(node.op_type, context);
  else if (context.has_texts() && moves_elements(node.op_type))
    import_by_codes(context, *row);
  else
    row->run(context);
  for (const std::string& warning : context.warnings()) {
    std::string text = fmt::format("{}: {}", name, warning);
    if (std::ranges::count(report_.warnings, text) == 0) report_.warnings.push_back(std::move(text));
  }
  context.refuse_unasked();
  if (const auto unread = context.unread_attributes(); !context.failed() && !unread.empty())
    context.invalid("attribute '{}' is unknown; it does not exist at this version of the operator", unread[0]);
  for (size_t i = 0; i < node.outputs.size() && !context.failed(); ++i)
    if (context.wants(i) && !context.outputs()[i].is_defined())
      context.unsupported("its output {} ('{}') is not supported", i, node.outputs[i]);
  if (context.failed()) {
    if (context.error()) blame(node, index, scope, inputs, *context.error(), context.where());
    return false;
  }
  if (context.num_added() > 1 && support_ && support_->support == Support::native) support_->support = Support::generic;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!context.wants(i)) continue;
    const Slot& output = context.outputs()[i];
    ir::Value* value = output.text ? output.text : output.value;
    const auto is_it = [&](const Slot& input) { return (input.text ? input.text : input.value) == value; };
    const bool fresh = value && value->producer() && std::none_of(inputs.begin(), inputs.end(), is_it);
    if (fresh) name_tensor(*scope.graph, value, scope.prefix + std::string(node.outputs[i]));
    scope.values[node.outputs[i]] = output;
  }
  return true;
}

// Names are the model's before they are ours: what an operator is made of may have taken this one from its node.
void GraphImporter::name_tensor(ir::Graph& graph, ir::Value* value, const std::string& name) {
  graph.rename(value, name);
  if (value->name() == name) return;
  if (ir::Value* part = graph.find_value(name)) graph.rename(part, name + ".part");
  graph.rename(value, name);
}

bool GraphImporter::import_node(const NodeProto& node, size_t index, Scope& scope) {
  block_outputs(node, scope);
  const std::string name = scope.prefix + name_of(node, index);
  if (++num_nodes_ > max_nodes_ || scope.depth > kMaxCallDepth) {
    if (num_nodes_ == max_nodes_ + 1 || scope.depth > kMaxCallDepth)
      blame(node, index, scope, {},
            Error{ErrorCode::model_limit, "the model's functions call each other too deeply or too often", {}});
    num_nodes_ = max_nodes_ + 1;
    return false;
  }
  const auto version = scope.versions.find(node.domain);
  const bool known = version != scope.versions.end() && is_operator_known(node.domain, node.op_type, version->second);
  const FunctionProto* function = known ? nullptr : find_function(node);
  std::vector<Slot> inputs;
  bool blocked = false;
  for (const std::string_view input : node.inputs) {
    inputs.push_back(input.empty() ? Slot{} : resolve(input, scope));
    blocked |= inputs.back().blocked;
  }
  if (blocked && (known || function || is_standard_plugin(node.op_type) || is_custom(node))) {
    if (support_ && support_->support != Support::unsupported) support_->support = Support::blocked;
    return false;
  }
  if (function) return import_call(node, name, *function, std::move(inputs), scope);
  return import_operator(node, name, index, std::move(inputs), scope);
}

void GraphImporter::run() {
  Scope scope;
  scope.graph = &graph_;
  for (const OpsetImport& import : model_.opset_imports) scope.versions[import.domain] = import.version;
  import_inputs(scope);
  report_.nodes.reserve(model_.graph.nodes.size());
  for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
    const NodeProto& node = model_.graph.nodes[i];
    if (options_.progress && !options_.progress(static_cast<double>(i) / static_cast<double>(report_.nodes.capacity())))
      return problem({ErrorCode::cancelled, "the import was cancelled", {}});
    support_ = &report_.nodes.emplace_back(NodeSupport{
        i, std::string(node.name), std::string(node.op_type), std::string(node.domain), Support::native, {}});
    import_node(node, i, scope);
  }
  support_ = nullptr;
  note_outputs(scope);
  import_outputs(scope);
  if (std::string warning = int64_.warning(); !warning.empty()) report_.warnings.push_back(std::move(warning));
}

void GraphImporter::note_outputs(const Scope& scope) {
  for (const NodeProto& node : model_.graph.nodes) {
    if (node.name.empty()) continue;
    std::vector<std::string>& outputs = report_.outputs[std::string(node.name)];
    if (!outputs.empty()) continue;  // of two nodes of one name the first counts
    for (const std::string_view output : node.outputs) {
      const auto slot = output.empty() ? scope.values.end() : scope.values.find(output);
      outputs.push_back(slot != scope.values.end() && slot->second.value ? slot->second.value->name() : "");
    }
  }
}

namespace {

struct Import {
  ir::Graph graph;
  ImportReport report;
  std::vector<ImportProblem> problems;
};

Import import_once(const Model& model, const ImportOptions& options) {
  Import result;
  if (options.custom) options.custom->begin();
  GraphImporter importer(model, result.graph, options);
  importer.run();
  result.report = std::move(importer.report());
  result.problems = std::move(importer.problems());
  return result;
}

// Most networks go on with one branch of an If only, where the branches are of different ranks. Where the rest fails
// with the branches guessed, the others are tried; the problems told are those of the first attempt.
Import import_any(const Model& model, const ImportOptions& options) {
  Import first = import_once(model, options);
  if (first.problems.empty() || first.report.branches.size() == options.branches.size()) return first;
  if (first.problems.back().error.code == ErrorCode::cancelled) return first;
  ImportOptions others = options;
  for (const auto& [name, taken] : first.report.branches) others.branches.emplace(name, !taken);
  Import second = import_once(model, others);
  return second.problems.empty() ? std::move(second) : std::move(first);
}

}  // namespace

Result<ImportReport> import_model(const Model& model, ir::Graph& graph, const ImportOptions& options) {
  LATHE_TRY(check_model(model));
  Import done = import_any(model, options);
  for (const auto& file : model.files) file->forget_pages();  // most weights lie askew there, and have been copied
  if (options.problems) *options.problems = done.problems;
  std::vector<Error> problems;
  for (ImportProblem& problem : done.problems) problems.push_back(std::move(problem.error));
  if (problems.empty()) {
    done.graph.set_name(model.graph.name.empty() ? graph.name() : std::string(model.graph.name));
    graph = std::move(done.graph);
    graph.erase_dead_nodes();  // constants that importers looked into and did not need, too
    return std::move(done.report);
  }
  if (problems.size() == 1) return fail(std::move(problems.front()));
  const ErrorCode code = problems.front().code;
  std::string message = fmt::format("the model has {} problems", problems.size());
  Error error{code, std::move(message), std::move(problems)};
  return fail(std::move(error));
}

Result<ImportReport> query_support(const Model& model, const ImportOptions& options) {
  LATHE_TRY(check_model(model));
  Import done = import_any(model, options);
  if (options.problems) *options.problems = std::move(done.problems);
  return std::move(done.report);
}

}  // namespace lathe::onnx
