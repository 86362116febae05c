// SPDX-License-Identifier: Apache-2.0
#include "api/network/parser.h"

#include "api/network/model_loading.h"
#include "api/progress.h"
#include "onnx/reader.h"

namespace lathe::api {
template <class Body>
bool Parser::attempt(const char* where, Body&& body, SourceLocation place) noexcept {
  return guarded({*reporter_, use_}, where, [&]() -> Result<> {
    LATHE_ASSIGN(const Exclusive::Turn turn, network_.use().take());
    const size_t before = errors_.size();
    Result<> result = body();
    if (!result && errors_.size() == before)
      errors_.push_back(
          std::make_unique<ParserError>(onnx_code_for(result.error().code), result.error().to_string(), where, place));
    return result;
  });
}

Result<> Parser::import(const onnx::Model& model) {
  if (!network_.graph().nodes().empty() || !network_.graph().inputs().empty())
    return fail(ErrorCode::invalid_state, "the network is not empty; parse each model into a network of its own");
  std::vector<onnx::ImportProblem> problems;
  onnx::ImportOptions every = told();
  every.problems = &problems;
  const auto plugins = std::make_shared<PluginImport>(network_.core(), reporter_, overrides());
  every.custom = plugins.get();
  ProgressAdapter progress(config_ ? config_->getProgressMonitor() : nullptr);
  every.progress = [&](double fraction) { return progress("importing the model", fraction); };
  Result<onnx::ImportReport> report = onnx::import_model(model, network_.graph(), every);
  list(problems);
  if (!report) return fail(std::move(report).error());
  node_outputs_ = std::move(report->outputs);
  for (const std::string& warning : report->warnings) write(Severity::warning, warning);
  for (const std::string& library : plugins->libraries())
    plugin_libraries_.push_back(plugin_paths_.emplace_back(library).c_str());
  network_.set_plugins(plugins);
  network_.adopt_imported_nodes();
  network_.add_files(model);
  if (!report->branches.empty()) reimport_from(model);
  return {};
}

void Parser::reimport_from(onnx::Model model) {
  network_.set_reimport([model = std::move(model), plugins = network_.plugins(),
                         told = told()](const onnx::Branches& branches) -> Result<NetworkDefinition::Imported> {
    onnx::ImportOptions options = told;
    options.branches = branches;
    options.custom = plugins.get();
    NetworkDefinition::Imported imported;
    LATHE_ASSIGN(onnx::ImportReport found, onnx::import_model(model, imported.graph, options));
    imported.branches = std::move(found.branches);
    return imported;
  });
}

void Parser::list(const std::vector<onnx::ImportProblem>& problems) {
  for (const onnx::ImportProblem& problem : problems) errors_.push_back(std::make_unique<ParserError>(problem));
}

void Parser::put_flags(const char* where, nvonnxparser::OnnxParserFlags which,
                       nvonnxparser::OnnxParserFlags values) noexcept {
  guarded(Entry{*reporter_, use_}, where, [&]() -> Result<> {
    const nvonnxparser::OnnxParserFlags flags = (flags_ & ~which) | (values & which);
    LATHE_TRY(notices_.consult_flags<nvonnxparser::OnnxParserFlag>(flags, kFlags, reporter_->log()));
    flags_ = flags;
    return {};
  });
}

bool Parser::set_input_elements(const char* input, int32_t count, const nv::Dims* dims) noexcept {
  return guarded({*reporter_, use_}, "lathe::setInputElements",
                 [&]() -> Result<> { return tell_input_elements(input_elements_, input, count, dims); });
}

onnx::ImportOptions Parser::told() const {
  onnx::ImportOptions options;
  options.int64_as_int32 = int64_as_int32_;
  options.input_elements = input_elements_;
  return options;
}

bool Parser::setBuilderConfig(const nv::IBuilderConfig* const config) noexcept {
  return guarded(*reporter_, "IParser::setBuilderConfig", [&]() -> Result<> {
    config_ = config;
    return {};
  });
}

// What the file says of itself, in lines that people look for in logs.
void Parser::tell_of(const std::string& path, const onnx::Model& model) const {
  constexpr std::string_view kRule = "----------------------------------------------------------------";
  int64_t opset = 0;
  for (const onnx::OpsetImport& import : model.opset_imports)
    if (onnx::normal_domain(import.domain).empty()) opset = import.version;
  const std::string lines[] = {std::string(kRule),
                               fmt::format("Input filename:   {}", path),
                               fmt::format("ONNX IR version:  0.0.{}", model.ir_version),
                               fmt::format("Opset version:    {}", opset),
                               fmt::format("Producer name:    {}", model.producer_name),
                               fmt::format("Producer version: {}", model.producer_version),
                               fmt::format("Domain:           {}", model.domain),
                               fmt::format("Model version:    {}", model.model_version),
                               fmt::format("Doc string:       {}", model.doc),
                               std::string(kRule)};
  for (const std::string& line : lines) write(Severity::info, line);
}

bool Parser::parse(const void* model, size_t size, const char* model_path) noexcept {
  return attempt("IParser::parse", [&]() -> Result<> {
    verbosity_ = kEverything;
    LATHE_ASSIGN(const onnx::Model parsed, read_model(model, size, model_path, Bytes::borrowed));
    LATHE_TRY(import(parsed));
    if (!network_.reimport()) return {};
    LATHE_ASSIGN(onnx::Model kept, read_model(model, size, model_path, Bytes::copied));
    reimport_from(std::move(kept));
    return {};
  });
}

// Errors are told whatever the verbosity.
void Parser::write(Severity severity, std::string_view line) const {
  if (static_cast<int>(severity) <= verbosity_) reporter_->log().write(severity, line);
}

bool Parser::parseFromFile(const char* onnxModelFile, int verbosity) noexcept {
  return attempt("IParser::parseFromFile", [&]() -> Result<> {
    verbosity_ = verbosity;
    LATHE_ASSIGN(const std::string path, to_string(onnxModelFile, "model path"));
    LATHE_ASSIGN(const onnx::Model parsed, onnx::read_model_file(path));
    tell_of(path, parsed);
    return import(parsed);
  });
}

bool Parser::supportsOperator(const char* op_name) const noexcept {
  const Entry looking{*reporter_, use_, Exclusive::Call::looks};
  return guarded(looking, "IParser::supportsOperator", false, [&]() -> Result<bool> {
    LATHE_ASSIGN(const std::string name, to_string(op_name, "operator name"));
    return onnx::is_operator_known(name) || PluginImport(network_.core(), reporter_, overrides()).knows(name);
  });
}

const nvonnxparser::IParserError* Parser::getError(int index) const noexcept {
  return guarded({*reporter_, use_}, "IParser::getError", static_cast<const nvonnxparser::IParserError*>(nullptr),
                 [&]() -> Result<const nvonnxparser::IParserError*> {
                   if (index < 0 || static_cast<size_t>(index) >= errors_.size())
                     return fail(ErrorCode::invalid_argument, "there is no error {}: the list has {}", index,
                                 errors_.size());
                   return errors_[static_cast<size_t>(index)].get();
                 });
}

void Parser::clearErrors() noexcept {
  guarded({*reporter_, use_}, "IParser::clearErrors", [&]() -> Result<> {
    errors_.clear();
    return {};
  });
}

const char* const* Parser::getUsedVCPluginLibraries(int64_t& nbPluginLibs) const noexcept {
  nbPluginLibs = static_cast<int64_t>(plugin_libraries_.size());
  return plugin_libraries_.empty() ? nullptr : plugin_libraries_.data();
}

const nv::ITensor* Parser::getLayerOutputTensor(const char* name, int64_t i) noexcept {
  return guarded({*reporter_, use_}, "IParser::getLayerOutputTensor", static_cast<const nv::ITensor*>(nullptr),
                 [&]() -> Result<const nv::ITensor*> {
                   LATHE_ASSIGN(const std::string text, to_string(name, "layer name"));
                   LATHE_ASSIGN(const Exclusive::Turn turn, network_.use().take(Exclusive::Call::looks));
                   const auto node = node_outputs_.find(text);
                   if (node == node_outputs_.end()) return network_.output_of(text, i);
                   const std::vector<std::string>& outputs = node->second;
                   if (i < 0 || i >= static_cast<int64_t>(outputs.size()) || outputs[static_cast<size_t>(i)].empty())
                     return fail(ErrorCode::invalid_argument, "node '{}' has no output {}", text, i);
                   if (TensorView* tensor = network_.tensor_of(outputs[static_cast<size_t>(i)])) return tensor;
                   return fail(ErrorCode::invalid_state, "output {} of node '{}' is not in the network any more", i,
                               text);
                 });
}

void Parser::tell_of(const onnx::NodeSupport& node, bool is_supported, PluginImport& plugins) const {
  const bool is_plugin =
      is_supported && (overrides() || !onnx::is_operator_known(node.op_type)) && plugins.knows(node.op_type);
  reporter_->log().print(Severity::verbose, "node {} '{}' ({}): {}", node.index, node.name, node.op_type,
                         is_plugin                                ? "a plugin of the registry"
                         : is_supported                           ? "native"
                         : node.support == onnx::Support::blocked ? "not supported: it reads what such a node gives"
                                                                  : fmt::format("not supported: {}", node.reason));
}

bool Parser::supportsModelV2(const void* model, size_t size, const char* modelPath) noexcept {
  bool all = false;
  const bool judged = attempt("IParser::supportsModelV2", [&]() -> Result<> {
    subgraphs_.clear();
    LATHE_ASSIGN(const onnx::Model parsed, read_model(model, size, modelPath, Bytes::borrowed));
    std::vector<onnx::ImportProblem> problems;
    onnx::ImportOptions every = told();
    every.problems = &problems;
    PluginImport plugins(network_.core(), reporter_, overrides());
    every.custom = &plugins;
    LATHE_ASSIGN(const onnx::ImportReport report, onnx::query_support(parsed, every));
    list(problems);
    all = problems.empty();
    for (const onnx::NodeSupport& node : report.nodes) {
      const bool supported = node.support == onnx::Support::native || node.support == onnx::Support::generic;
      tell_of(node, supported, plugins);
      if (subgraphs_.empty() || subgraphs_.back().supported != supported) subgraphs_.push_back({supported, {}});
      subgraphs_.back().nodes.push_back(static_cast<int64_t>(node.index));
    }
    return {};
  });
  return judged && all;
}

bool Parser::isSubgraphSupported(const int64_t index) noexcept {
  return guarded({*reporter_, use_}, "IParser::isSubgraphSupported", false, [&]() -> Result<bool> {
    LATHE_ASSIGN(const Subgraph* subgraph, subgraph_at(index));
    return subgraph->supported;
  });
}

int64_t* Parser::getSubgraphNodes(const int64_t index, int64_t& subgraphLength) noexcept {
  subgraphLength = 0;
  return guarded({*reporter_, use_}, "IParser::getSubgraphNodes", static_cast<int64_t*>(nullptr),
                 [&]() -> Result<int64_t*> {
                   LATHE_ASSIGN(Subgraph * subgraph, subgraph_at(index));
                   subgraphLength = static_cast<int64_t>(subgraph->nodes.size());
                   return subgraph->nodes.data();
                 });
}

Result<Parser::Subgraph*> Parser::subgraph_at(int64_t index) {
  if (index >= 0 && index < static_cast<int64_t>(subgraphs_.size())) return &subgraphs_[static_cast<size_t>(index)];
  return fail(ErrorCode::invalid_argument, "there is no subgraph {}: supportsModelV2() found {}", index,
              subgraphs_.size());
}

bool Parser::loadModelProto(const void* model, size_t size, const char* modelPath) noexcept {
  return attempt("IParser::loadModelProto", [&]() -> Result<> {
    LATHE_ASSIGN(onnx::Model parsed, read_model(model, size, modelPath, Bytes::copied, Missing::comes_later));
    loaded_ = std::make_unique<onnx::Model>(std::move(parsed));
    return {};
  });
}

bool Parser::loadInitializer(const char* name, const void* data, size_t size) noexcept {
  return attempt("IParser::loadInitializer", [&]() -> Result<> {
    if (!loaded_) return fail(ErrorCode::invalid_state, "call loadModelProto() first");
    return give_initializer(*loaded_, name, data, size);
  });
}

bool Parser::parseModelProto() noexcept {
  return attempt("IParser::parseModelProto", [&]() -> Result<> {
    if (!loaded_) return fail(ErrorCode::invalid_state, "call loadModelProto() first");
    verbosity_ = kEverything;
    LATHE_TRY(check_initializers(*loaded_));  // those that are missing can still be given, and parsing tried again
    const std::unique_ptr<onnx::Model> model = std::move(loaded_);
    return import(*model);
  });
}

#if NV_TENSORRT_MAJOR < 11

bool Parser::supportsModel(const void* model, size_t size, SubGraphCollection_t& subgraphs, const char* path) noexcept {
  const bool all = supportsModelV2(model, size, path);
  const bool told = attempt("IParser::supportsModel", [&]() -> Result<> {
    subgraphs.clear();
    for (const Subgraph& part : subgraphs_)
      subgraphs.emplace_back(std::vector<size_t>(part.nodes.begin(), part.nodes.end()), part.supported);
    return {};
  });
  return all && told;
}

bool Parser::parseWithWeightDescriptors(const void*, size_t) noexcept {
  return attempt("IParser::parseWithWeightDescriptors", [&]() -> Result<> {
    return fail(ErrorCode::config_invalid,
                "weight descriptors are not read: give the model with its weights to parse(), or apart from it to "
                "loadModelProto() and loadInitializer()");
  });
}

#endif

}  // namespace lathe::api
