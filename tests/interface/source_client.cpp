// SPDX-License-Identifier: Apache-2.0
// A program as its users write it, compiled against the headers of either generation and linked with the libraries of
// its names.
// source_client build <plan> <libnvinfer_vc_plugin.so>: writes a plan for y = relu(x * 2), x of a size known when it
// runs. source_client run <plan>: runs it. source_client count <ONNX model>: counts its layers. source_client compile
// <plan> <ONNX model>: writes a version-compatible plan of it, open sizes of its input being 4, without measuring.
// source_client creators <name>: lists the versions of the creators of that name, and the kinds that they have.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvInferPlugin.h"
#include "NvOnnxParser.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // kEXPLICIT_BATCH

using namespace nvinfer1;

namespace {

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kWARNING) std::printf("log: %s\n", text);
  }
};

#define CHECK(condition)                     \
  if (!(condition)) {                        \
    std::printf("failed: %s\n", #condition); \
    return 1;                                \
  }                                          \
  static_assert(true)

std::unique_ptr<INetworkDefinition> make_network(IBuilder& builder) {
#if NV_TENSORRT_MAJOR < 11
  const uint32_t flags = 1u << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
#else
  const uint32_t flags = 0;
#endif
  return std::unique_ptr<INetworkDefinition>(builder.createNetworkV2(flags));
}

int write(IBuilder& builder, INetworkDefinition& network, IBuilderConfig& config, const char* file) {
  const std::unique_ptr<IHostMemory> plan(builder.buildSerializedNetwork(network, config));
  CHECK(plan);
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(plan->data()), static_cast<std::streamsize>(plan->size()));
  return 0;
}

int build(IBuilder& builder, const char* file, const char* plugin_library) {
  const auto plugins = builder.getPluginRegistry().loadLibrary(plugin_library);
  CHECK(plugins);
  builder.getPluginRegistry().deregisterLibrary(plugins);
  const std::unique_ptr<INetworkDefinition> network = make_network(builder);
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims{1, {-1}});
  const float two = 2;
  ITensor* factor = network->addConstant(Dims{1, {1}}, Weights{DataType::kFLOAT, &two, 1})->getOutput(0);
  ITensor* product = network->addElementWise(*x, *factor, ElementWiseOperation::kPROD)->getOutput(0);
  ITensor* y = network->addActivation(*product, ActivationType::kRELU)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  const std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  profile->setDimensions("x", OptProfileSelector::kMIN, Dims{1, {1}});
  profile->setDimensions("x", OptProfileSelector::kOPT, Dims{1, {4}});
  profile->setDimensions("x", OptProfileSelector::kMAX, Dims{1, {8}});
  CHECK(config->addOptimizationProfile(profile) == 0);
  return write(builder, *network, *config, file);
}

int compile(IBuilder& builder, ILogger& logger, const char* file, const char* model) {
  const std::unique_ptr<INetworkDefinition> network = make_network(builder);
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  CHECK(parser && parser->parseFromFile(model, 0));
  Dims dims = network->getInput(0)->getDimensions();
  for (int32_t i = 0; i < dims.nbDims; ++i)
    if (dims.d[i] < 0) dims.d[i] = 4;
  const std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  for (const OptProfileSelector which : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    profile->setDimensions(network->getInput(0)->getName(), which, dims);
  CHECK(config->addOptimizationProfile(profile) == 0);
  config->setFlag(BuilderFlag::kVERSION_COMPATIBLE);
  config->setBuilderOptimizationLevel(0);
  return write(builder, *network, *config, file);
}

int run(ILogger& logger, const char* file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string plan{std::istreambuf_iterator<char>(stream), {}};
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  CHECK(engine && engine->getNbIOTensors() == 2);
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  CHECK(context->setInputShape("x", Dims{1, {3}}));
  std::vector<float> in{-1, 2, 3}, out(3);
  CHECK(context->setTensorAddress("x", in.data()) && context->setTensorAddress("y", out.data()));
  CHECK(context->enqueueV3(nullptr));
  std::printf("y = %g %g %g\n", out[0], out[1], out[2]);
  return 0;
}

int count(IBuilder& builder, ILogger& logger, const char* file) {
  const std::unique_ptr<INetworkDefinition> network = make_network(builder);
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  CHECK(parser && parser->parseFromFile(file, 0));
  std::printf("%d layers\n", network->getNbLayers());
  return 0;
}

int creators(const char* name) {
  for (int version = 1; version < 10; ++version) {
    IPluginCreatorInterface* found = getPluginRegistry()->getCreator(name, std::to_string(version).c_str(), "");
    if (found) std::printf("%d %s\n", version, found->getInterfaceInfo().kind);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Logger logger;
  CHECK(argc >= 3);
  CHECK(getInferLibVersion() == NV_TENSORRT_VERSION);
  CHECK(initLibNvInferPlugins(&logger, ""));
  CHECK(getPluginRegistry());
  const std::string mode = argv[1];
  if (mode == "run") return run(logger, argv[2]);
  if (mode == "creators") return creators(argv[2]);
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  CHECK(builder);
  if (mode == "count") return count(*builder, logger, argv[2]);
  CHECK(argc == 4);
  if (mode == "compile") return compile(*builder, logger, argv[2], argv[3]);
  CHECK(mode == "build");
  return build(*builder, argv[2], argv[3]);
}
