// SPDX-License-Identifier: Apache-2.0
// What the ONNX parser tells of models: which parts are supported, what is wrong with them and where, which tensors its
// nodes have become; and models whose weights come from memory.
#include <filesystem>

#include "api/layers_world.h"
#include "lathe_onnx.h"
#include "onnx/model_bytes.h"

namespace nvinfer1::layers {
namespace {

using namespace lathe::onnx;  // what writes the models
using OnnxCode = nvonnxparser::ErrorCode;

struct Lines : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    lines.emplace_back(message);
    errors += severity <= Severity::kERROR ? 1 : 0;
  }
  bool has(const std::string& part) const {
    for (const std::string& line : lines)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  std::vector<std::string> lines;
  int errors = 0;
};

struct ParsedModel {
  Lines log;
  std::unique_ptr<IBuilder> builder{createInferBuilder(log)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, log)};

  bool parse(const std::string& model) { return parser->parse(model.data(), model.size()); }
  bool supports(const std::string& model) { return parser->supportsModelV2(model.data(), model.size()); }
  std::vector<std::vector<int64_t>> nodes() {
    std::vector<std::vector<int64_t>> all;
    for (int64_t i = 0; i < parser->getNbSubgraphs(); ++i) {
      int64_t length = -1;
      const int64_t* first = parser->getSubgraphNodes(i, length);
      all.emplace_back(first, first + length);
    }
    return all;
  }
  std::vector<bool> supported() {
    std::vector<bool> all;
    for (int64_t i = 0; i < parser->getNbSubgraphs(); ++i) all.push_back(parser->isSubgraphSupported(i));
    return all;
  }
};

std::string named(const std::string& node_bytes, const char* name) {
  return node_bytes + message([&](Writer& w) { w.add_string(3, name); });
}

const std::string kInput = value_info("x", 1, {2, 2}), kOutput = value_info("y", 1, {2, 2});

// A sequence of tensors of f32.
const std::string kSequence = message([](Writer& w) {
  const std::string tensor = message([](Writer& type) { type.add_int32(1, 1); });
  const std::string element = message([&](Writer& holder) { holder.add_message(1, tensor); });
  const std::string held = message([&](Writer& sequence) { sequence.add_message(1, element); });
  w.add_string(1, "s"), w.add_message(2, message([&](Writer& type) { type.add_message(4, held); }));
});

// The tensors of sequence s below one another, times w.
std::string of_sequence(float w) {
  const std::string joined = node("ConcatFromSequence", {"s"}, {"j"}, {int_attribute("axis", 0)});
  return model(graph(
      {{joined, node("Mul", {"j", "w"}, {"y"})}, {raw_tensor<float>("w", 1, {2}, {w, w})}, {kSequence}, {kOutput}}));
}

std::string of_nodes(std::vector<std::string> nodes, std::vector<std::string> functions = {}) {
  return model(graph({std::move(nodes), {}, {kInput}, {kOutput}}), 10, {opset(21), opset(1, "f")},
               std::move(functions));
}

std::string function_of(const char* name, const std::string& node_bytes) {
  return message([&](Writer& w) {
    w.add_string(1, name), w.add_string(4, "a"), w.add_string(5, "b"), w.add_string(10, "f");
    w.add_message(7, node_bytes);
    w.add_message(9, opset(21)), w.add_message(9, opset(1, "f"));
  });
}

TEST(Parser, ToldWhatIsSupportedInRunsOfNodes) {
  ParsedModel parsed;
  EXPECT_EQ(parsed.parser->getNbSubgraphs(), 0);
  EXPECT_TRUE(parsed.supports(of_nodes({node("Relu", {"x"}, {"a"}), node("Abs", {"a"}, {"y"})})));
  EXPECT_EQ(parsed.nodes(), (std::vector<std::vector<int64_t>>{{0, 1}}));
  EXPECT_EQ(parsed.supported(), (std::vector<bool>{true}));
  EXPECT_EQ(parsed.parser->getNbErrors(), 0);
  // Node 3 reads what node 2 does not give: neither is supported. The other branch is.
  EXPECT_FALSE(parsed.supports(
      of_nodes({node("Relu", {"x"}, {"a"}), node("Abs", {"x"}, {"b"}), node("Frobnicate", {"a"}, {"c"}),
                node("Neg", {"c"}, {"d"}), node("Exp", {"b"}, {"e"}), node("Add", {"e", "d"}, {"y"})})));
  EXPECT_EQ(parsed.nodes(), (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}, {4}, {5}}));
  EXPECT_EQ(parsed.supported(), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(parsed.network->getNbLayers(), 0);  // asking builds nothing
  EXPECT_EQ(parsed.log.errors, 0);              // and is no failure
  int64_t length = -1;
  EXPECT_EQ(parsed.parser->getSubgraphNodes(4, length), nullptr);
  EXPECT_EQ(length, 0);
  EXPECT_FALSE(parsed.parser->isSubgraphSupported(-1));
}

TEST(Parser, ModelIsNotSupportedForItsInputsAlone) {
  const std::string bytes = model(graph({{node("Relu", {"x"}, {"y"})}, {}, {kInput, kSequence}, {kOutput}}));
  ParsedModel parsed;
  EXPECT_FALSE(parsed.supports(bytes));
  EXPECT_FALSE(parsed.parse(bytes));
  ASSERT_EQ(parsed.parser->getNbErrors(), 2);  // of either call
  EXPECT_EQ(parsed.parser->getError(0)->code(), OnnxCode::kUNSUPPORTED_NODE_DATATYPE);
  EXPECT_EQ(parsed.parser->getError(0)->node(), -1);
  EXPECT_STREQ(parsed.parser->getError(0)->nodeName(), "");
}

TEST(Parser, ErrorsTellNodeAndPlace) {
  ParsedModel parsed;
  EXPECT_FALSE(parsed.parse(
      of_nodes({node("Relu", {"x"}, {"a"}), named(node("Mod", {"a", "a"}, {"b"}), "remainder"),
                node("Frobnicate", {"b"}, {"c"}), node("Relu", {"x"}, {"y"}, {int_attribute("slope", 1)})})));
  ASSERT_EQ(parsed.parser->getNbErrors(), 3);
  const nvonnxparser::IParserError& mod = *parsed.parser->getError(0);
  EXPECT_EQ(mod.code(), OnnxCode::kINVALID_NODE);
  EXPECT_EQ(mod.node(), 1);
  EXPECT_STREQ(mod.nodeName(), "remainder");
  EXPECT_STREQ(mod.nodeOperator(), "Mod");
  EXPECT_NE(std::string(mod.desc()).find("fmod=1"), std::string::npos) << mod.desc();
  EXPECT_EQ(std::string(mod.file()).find("src/onnx/import_"), 0U) << mod.file();
  EXPECT_TRUE(std::filesystem::exists(std::string(LATHE_SOURCE_DIR) + "/" + mod.file()));
  EXPECT_GT(mod.line(), 0);
  EXPECT_NE(std::string(mod.func()).find("import_mod"), std::string::npos) << mod.func();
  EXPECT_EQ(mod.localFunctionStackSize(), 0);
  EXPECT_EQ(mod.localFunctionStack(), nullptr);
  EXPECT_EQ(parsed.parser->getError(1)->code(), OnnxCode::kUNSUPPORTED_NODE);
  EXPECT_EQ(parsed.parser->getError(1)->node(), 2);
  EXPECT_EQ(parsed.parser->getError(2)->code(), OnnxCode::kINVALID_NODE);
  EXPECT_EQ(parsed.parser->getError(2)->node(), 3);
  EXPECT_EQ(parsed.parser->getError(3), nullptr);
  parsed.parser->clearErrors();
  EXPECT_EQ(parsed.parser->getNbErrors(), 0);
}

TEST(Parser, ErrorsTellTheFunctionsAroundANode) {
  const std::string bytes = of_nodes({node("Relu", {"x"}, {"r"}), named(node("Outer", {"r"}, {"y"}, {}, "f"), "call")},
                                     {function_of("Outer", named(node("Inner", {"a"}, {"b"}, {}, "f"), "inner_call")),
                                      function_of("Inner", named(node("Frobnicate", {"a"}, {"b"}), "culprit"))});
  ParsedModel parsed;
  EXPECT_FALSE(parsed.supports(bytes));
  EXPECT_EQ(parsed.nodes(), (std::vector<std::vector<int64_t>>{{0}, {1}}));
  ASSERT_EQ(parsed.parser->getNbErrors(), 1);
  const nvonnxparser::IParserError& error = *parsed.parser->getError(0);
  EXPECT_EQ(error.node(), 1);  // of the graph
  EXPECT_STREQ(error.nodeName(), "culprit");
  EXPECT_STREQ(error.nodeOperator(), "Frobnicate");
  ASSERT_EQ(error.localFunctionStackSize(), 2);
  EXPECT_STREQ(error.localFunctionStack()[0], "Outer");
  EXPECT_STREQ(error.localFunctionStack()[1], "Inner");
}

TEST(Parser, ErrorsOfBytesAreTheModels) {
  ParsedModel parsed;
  EXPECT_FALSE(parsed.parse("no model"));
  ASSERT_EQ(parsed.parser->getNbErrors(), 1);
  EXPECT_EQ(parsed.parser->getError(0)->code(), OnnxCode::kMODEL_DESERIALIZE_FAILED);
  EXPECT_STREQ(parsed.parser->getError(0)->func(), "IParser::parse");
  EXPECT_STREQ(parsed.parser->getError(0)->file(), "src/api/network/parser.cpp");
  EXPECT_GT(parsed.parser->getError(0)->line(), 0);
  EXPECT_FALSE(parsed.parser->parseFromFile("/no/such/model.onnx", 3));
  EXPECT_EQ(parsed.parser->getError(1)->code(), OnnxCode::kMODEL_DESERIALIZE_FAILED);
  EXPECT_STREQ(parsed.parser->getError(1)->func(), "IParser::parseFromFile");
}

// Names are the model's: also of nodes that have become several layers, or none.
TEST(Parser, NodesOutputsAreFoundByName) {
  ParsedModel parsed;
  ASSERT_TRUE(parsed.parse(
      model(graph({{named(node("Mean", {"x", "x"}, {"m"}), "average"), named(node("Identity", {"m"}, {"i"}), "same"),
                    named(node("TopK", {"i", "k"}, {"v", "n"}), "best"), named(node("Relu", {"v"}, {"y"}), "relu")},
                   {raw_tensor<int64_t>("k", 7, {1}, {2})},
                   {kInput},
                   {kOutput}}))))
      << parsed.log.lines.back();
  const auto tensor = [&](const char* node_name, int64_t index) {
    return parsed.parser->getLayerOutputTensor(node_name, index);
  };
  const std::pair<const char*, const char*> expected[] = {{"average", "m"}, {"best", "v"}, {"relu", "y"}};
  for (const auto& [node_name, tensor_name] : expected) {
    ASSERT_NE(tensor(node_name, 0), nullptr) << node_name;
    EXPECT_STREQ(tensor(node_name, 0)->getName(), tensor_name);
  }
  ASSERT_NE(tensor("best", 1), nullptr);
  EXPECT_STREQ(tensor("best", 1)->getName(), "n");
  EXPECT_EQ(tensor("relu", 0), parsed.network->getOutput(0));
  ASSERT_NE(tensor("same", 0), nullptr);
  EXPECT_EQ(parsed.log.errors, 0);
  EXPECT_EQ(tensor("relu", 1), nullptr);
  EXPECT_EQ(tensor("relu", -1), nullptr);
  EXPECT_EQ(tensor("nobody", 0), nullptr);
  EXPECT_EQ(tensor(nullptr, 0), nullptr);
  EXPECT_EQ(parsed.log.errors, 4);
}

std::string external_tensor(const char* name, std::vector<int64_t> dims, const char* file) {
  const auto entry = [](const char* key, const char* value) {
    return message([&](Writer& w) { w.add_string(1, key), w.add_string(2, value); });
  };
  return message([&](Writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end()), w.add_int32(2, 1), w.add_string(8, name);
    w.add_message(13, entry("location", file)), w.add_int32(14, 1);
  });
}

TEST(Parser, WeightsComeFromMemory) {
  const std::string bytes = model(graph(
      {{node("Add", {"x", "w"}, {"a"}), node("Mul", {"a", "v"}, {"y"})},
       {external_tensor("w", {2, 2}, "weights_that_are_nowhere.bin"), raw_tensor<float>("v", 1, {2, 2}, {1, 1, 1, 1})},
       {kInput},
       {kOutput}}));
  ParsedModel parsed;
  const float w[] = {1, 2, 3, 4}, v[] = {5, 6, 7, 8};
  EXPECT_FALSE(parsed.parser->loadInitializer("w", w, sizeof(w)));  // of no model yet
  EXPECT_FALSE(parsed.parser->parseModelProto());
  EXPECT_FALSE(parsed.parse(bytes));  // its weights are nowhere
  ASSERT_TRUE(parsed.parser->loadModelProto(bytes.data(), bytes.size()));
  EXPECT_FALSE(parsed.parser->parseModelProto());  // they still are
  EXPECT_TRUE(parsed.log.has("loadInitializer() has not given it")) << parsed.log.lines.back();
  EXPECT_FALSE(parsed.parser->loadInitializer("w", w, sizeof(w) - 1));
  EXPECT_FALSE(parsed.parser->loadInitializer("w", nullptr, sizeof(w)));
  EXPECT_FALSE(parsed.parser->loadInitializer("u", w, sizeof(w)));
  EXPECT_EQ(parsed.parser->getError(parsed.parser->getNbErrors() - 1)->code(), OnnxCode::kINVALID_VALUE);
  EXPECT_TRUE(parsed.parser->loadInitializer("w", v, sizeof(v)));
  EXPECT_TRUE(parsed.parser->loadInitializer("w", w, sizeof(w)));  // the last one counts
  EXPECT_TRUE(parsed.parser->loadInitializer("v", v, sizeof(v)));  // of the model's own, too
  ASSERT_TRUE(parsed.parser->parseModelProto()) << parsed.log.lines.back();
  EXPECT_FALSE(parsed.parser->parseModelProto());  // it has been

  const std::unique_ptr<IBuilderConfig> config(parsed.builder->createBuilderConfig());
  lathe::setTarget(*config, "cpu");
  lathe::setBuildBudget(*config, 0);
  const std::unique_ptr<IHostMemory> plan(parsed.builder->buildSerializedNetwork(*parsed.network, *config));
  ASSERT_NE(plan, nullptr) << lathe::lastError();
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(parsed.log));
  const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  float x[] = {1, 1, 2, 2}, y[4] = {};
  void* bindings[] = {x, y};
  ASSERT_TRUE(context->executeV2(bindings));
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(y[i], (x[i] + w[i]) * v[i]);
}

TEST(Parser, KnowsOperatorsOfAnyVersionAndDomain) {
  ParsedModel parsed;
  for (const char* known : {"Conv", "Upsample", "Gelu"}) EXPECT_TRUE(parsed.parser->supportsOperator(known)) << known;
  for (const char* unknown : {"Frobnicate", "conv", ""})
    EXPECT_FALSE(parsed.parser->supportsOperator(unknown)) << unknown;
  EXPECT_FALSE(parsed.parser->supportsOperator(nullptr));
}

TEST(Parser, FilesTellOfThemselvesInTheLog) {
  const std::string path = std::string(LATHE_SOURCE_DIR) + "/examples/digits/digits.onnx";
  ParsedModel parsed;
  ASSERT_TRUE(parsed.parser->parseFromFile(path.c_str(), static_cast<int>(ILogger::Severity::kINFO)));
  EXPECT_TRUE(parsed.log.has("Input filename:   " + path));
  for (const char* line : {"ONNX IR version:  0.0.", "Opset version:    ", "Producer name:    ", "Doc string:"})
    EXPECT_TRUE(parsed.log.has(line)) << line;
}

// S32: lines beyond the verbosity are left out, and errors are not. They name the file.
TEST(Parser, TellsNoMoreOfFilesThanItsVerbosity) {
  const std::string path = std::string(LATHE_SOURCE_DIR) + "/examples/digits/digits.onnx";
  ParsedModel parsed;
  ASSERT_TRUE(parsed.parser->parseFromFile(path.c_str(), static_cast<int>(ILogger::Severity::kWARNING)));
  EXPECT_FALSE(parsed.log.has("Input filename:"));
  EXPECT_FALSE(parsed.parser->parseFromFile("/nowhere.onnx", static_cast<int>(ILogger::Severity::kINTERNAL_ERROR)));
  EXPECT_TRUE(parsed.log.has("/nowhere.onnx"));
}

// S29.
TEST(Parser, AQueryTellsHowEachNodeIsDone) {
  const std::string bytes =
      model(graph({{node("Relu", {"x"}, {"a"}), node("Frobnicate", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})},
                   {},
                   {kInput},
                   {kOutput}}));
  ParsedModel parsed;
  EXPECT_FALSE(parsed.parser->supportsModelV2(bytes.data(), bytes.size(), nullptr));
  EXPECT_TRUE(parsed.log.has("node 0 '' (Relu): native"));
  EXPECT_TRUE(parsed.log.has("node 1 '' (Frobnicate): not supported: "));
  EXPECT_TRUE(parsed.log.has("node 2 '' (Relu): not supported: it reads what such a node gives"));
}

TEST(Parser, SequencesThatComeInAreAsManyInputsAsItIsTold) {
  const std::string bytes = of_sequence(1);
  ParsedModel untold, told;
  EXPECT_FALSE(untold.parse(bytes));
  EXPECT_TRUE(untold.log.has("lathe::setInputElements()"));
  const Dims dims{2, {1, 2}}, none{2, {1, -2}};
  EXPECT_FALSE(lathe::setInputElements(*told.parser, "s", -2));
  EXPECT_FALSE(lathe::setInputElements(*told.parser, nullptr, 1));
  EXPECT_FALSE(lathe::setInputElements(*told.parser, "s", 1, &none));
  EXPECT_EQ(told.log.errors, 3);
  EXPECT_TRUE(lathe::setInputElements(*told.parser, "s", 2, &dims));
  EXPECT_TRUE(told.supports(bytes));
  ASSERT_TRUE(told.parse(bytes));
  ASSERT_EQ(told.network->getNbInputs(), 2);
  EXPECT_STREQ(told.network->getInput(1)->getName(), "s_1");
  EXPECT_EQ(told.network->getInput(1)->getDimensions().d[1], 2);
}

TEST(Parser, ARefitFromAModelWithSequencesIsToldOfThem) {
  ParsedModel parsed;
  const Dims dims{2, {1, 2}};
  EXPECT_TRUE(lathe::setInputElements(*parsed.parser, "s", 2, &dims));
  ASSERT_TRUE(parsed.parse(of_sequence(1)));
  const std::unique_ptr<IBuilderConfig> config(parsed.builder->createBuilderConfig());
  config->setFlag(BuilderFlag::kREFIT);
  const std::unique_ptr<IHostMemory> plan(parsed.builder->buildSerializedNetwork(*parsed.network, *config));
  ASSERT_NE(plan, nullptr);
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(parsed.log));
  const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, parsed.log));
  const std::unique_ptr<nvonnxparser::IParserRefitter> models(
      nvonnxparser::createParserRefitter(*refitter, parsed.log));
  const std::string other = of_sequence(3);
  EXPECT_FALSE(models->refitFromBytes(other.data(), other.size()));
  EXPECT_TRUE(parsed.log.has("lathe::setInputElements()"));
  EXPECT_FALSE(lathe::setInputElements(*models, nullptr, 2));
  EXPECT_TRUE(lathe::setInputElements(*models, "s", 2, &dims));
  EXPECT_TRUE(models->refitFromBytes(other.data(), other.size()));
  EXPECT_TRUE(refitter->refitCudaEngine());
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  float first[] = {1, 2}, second[] = {3, 4}, y[4] = {};
  void* const bindings[] = {first, second, y};
  EXPECT_TRUE(context->executeV2(bindings));
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{3, 6, 9, 12}));
}

// The configuration's monitor is told of the import, and may end it at each node.
TEST(Parser, ProgressMonitorsOfTheConfigurationSeeTheImport) {
  struct Monitor : IProgressMonitor {
    void phaseStart(const char* phase, const char*, int32_t steps) noexcept override {
      phases.emplace_back(phase);
      EXPECT_GT(steps, 0);
      ++open;
    }
    bool stepComplete(const char*, int32_t) noexcept override { return left-- > 0; }
    void phaseFinish(const char*) noexcept override { --open; }
    std::vector<std::string> phases;
    int left = 0, open = 0;
  } monitor;
  const std::string bytes = of_nodes({node("Relu", {"x"}, {"a"}), node("Abs", {"a"}, {"y"})});
  for (int left = 0; left < 3; ++left) {
    ParsedModel parsed;
    const std::unique_ptr<IBuilderConfig> config(parsed.builder->createBuilderConfig());
    config->setProgressMonitor(&monitor);
    EXPECT_TRUE(parsed.parser->setBuilderConfig(config.get()));
    monitor.left = left;
    EXPECT_EQ(parsed.parse(bytes), left == 2);
    EXPECT_EQ(monitor.open, 0);
    EXPECT_EQ(parsed.log.has("LATHE-3301"), left < 2);
    EXPECT_EQ(parsed.parser->getNbErrors(), left < 2);
    EXPECT_EQ(parsed.network->getNbLayers(), left < 2 ? 0 : 2);
  }
  EXPECT_EQ(monitor.phases, std::vector<std::string>(3, "importing the model"));
  ParsedModel parsed;
  const std::unique_ptr<IBuilderConfig> config(parsed.builder->createBuilderConfig());
  EXPECT_TRUE(parsed.parser->setBuilderConfig(config.get()));  // without a monitor
  EXPECT_TRUE(parsed.parse(bytes));
  config->setProgressMonitor(&monitor);
  ParsedModel other;
  EXPECT_TRUE(other.parser->setBuilderConfig(config.get()) && other.parser->setBuilderConfig(nullptr));
  EXPECT_TRUE(other.parse(bytes));
  EXPECT_EQ(monitor.phases.size(), 3u);
}

TEST(Parser, NoPluginLibrariesAreUsed) {
  ParsedModel parsed;
  int64_t count = -1;
  EXPECT_EQ(parsed.parser->getUsedVCPluginLibraries(count), nullptr);  // S31
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace nvinfer1::layers
