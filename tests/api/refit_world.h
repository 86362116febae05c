// SPDX-License-Identifier: Apache-2.0
// A model of a convolution, a batch normalisation and a product, with weights from a seed; builds of it, and refits.
#pragma once

#include <functional>

#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "onnx/model_bytes.h"
#include "ops/rules.h"

namespace nvinfer1::refits {

enum class Batch { fixed, open };

struct ModelForm {
  lathe::DType type = lathe::DType::f32;
  Batch batch = Batch::fixed;
  float scale = 0.5f;    // of a single number, which a plan is optimised for
  float largest = 1.0f;  // of the product's weights
  bool equal = false;    // the convolution's biases are zeros, as the normalisation's means are
};

inline constexpr int64_t kBatch = 2, kChannels = 3, kSide = 6, kMaps = 20, kClasses = 5;

inline lathe::Tensor random_weights(lathe::DType type, lathe::Dims dims, uint32_t seed, double low, double high) {
  lathe::Tensor tensor = *lathe::Tensor::allocate(type, std::move(dims));
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (double& value : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    value = low + (high - low) * static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
  }
  lathe::from_doubles(values, tensor);
  return tensor;
}

// By name, as the model has them.
inline std::vector<std::pair<std::string, lathe::Tensor>> weights_of(const ModelForm& form, uint32_t seed) {
  const auto random = [&](const char* name, lathe::Dims dims, double low, double high) {
    return std::pair(std::string(name), random_weights(form.type, std::move(dims), seed++, low, high));
  };
  const double bias = form.equal ? 0 : 1, mean = form.equal ? 0 : 0.5;
  seed *= 100;
  return {random("conv.w", {kMaps, kChannels, 3, 3}, -0.4, 0.4),
          random("conv.b", {kMaps}, -bias, bias),
          random("bn.scale", {kMaps}, 0.5, 1.5),
          random("bn.bias", {kMaps}, -1, 1),
          random("bn.mean", {kMaps}, -mean, mean),
          random("bn.var", {kMaps}, 0.5, 2),
          random("fc.w", {kClasses, kMaps * kSide * kSide}, -form.largest, form.largest),
          random("fc.b", {kClasses}, -1, 1)};
}

inline std::string model(const ModelForm& form, uint32_t seed) {
  using namespace lathe::onnx;
  const int type = form.type == lathe::DType::f16 ? 10 : 1;
  const auto info = [&](const char* name, std::vector<int64_t> dims) {
    const std::string shape = message([&](Writer& w) {
      for (size_t i = 0; i < dims.size(); ++i)
        w.add_message(1, message([&](Writer& d) {
                        if (i == 0 && form.batch == Batch::open)
                          d.add_string(2, "n");
                        else
                          d.add_int64(1, dims[i]);
                      }));
    });
    const std::string tensor = message([&](Writer& w) { w.add_int32(1, type), w.add_message(2, shape); });
    const std::string type_proto = message([&](Writer& w) { w.add_message(1, tensor); });
    return message([&](Writer& w) { w.add_string(1, name), w.add_message(2, type_proto); });
  };
  GraphParts parts;
  parts.nodes = {node("Conv", {"x", "conv.w", "conv.b"}, {"c"}, {ints_attribute("pads", {1, 1, 1, 1})}),
                 node("BatchNormalization", {"c", "bn.scale", "bn.bias", "bn.mean", "bn.var"}, {"n1"}),
                 node("Relu", {"n1"}, {"r"}),
                 node("Mul", {"r", "half"}, {"h"}),
                 node("Flatten", {"h"}, {"f"}),
                 node("Gemm", {"f", "fc.w", "fc.b"}, {"y"}, {int_attribute("transB", 1)})};
  const auto add = [&](const std::string& name, const lathe::Tensor& tensor) {
    const auto* bytes = static_cast<const char*>(tensor.data());
    parts.initializers.push_back(
        raw_tensor<char>(name, type, tensor.dims(), std::vector<char>(bytes, bytes + tensor.bytes())));
  };
  for (const auto& [name, tensor] : weights_of(form, seed)) add(name, tensor);
  lathe::Tensor half = *lathe::Tensor::allocate(form.type, {});
  lathe::from_doubles(std::vector<double>{form.scale}, half);
  add("half", half);
  parts.inputs = {info("x", {kBatch, kChannels, kSide, kSide})};
  parts.outputs = {info("y", {kBatch, kClasses})};
  return lathe::onnx::model(graph(parts));
}

class RefitTest : public testing::Test {
 protected:
  std::unique_ptr<IHostMemory> build(const std::string& model, std::vector<BuilderFlag> flags,
                                     DataType precision = DataType::kFLOAT) {
    const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    EXPECT_TRUE(parser->parse(model.data(), model.size())) << logger.last();
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    if (network->getInput(0)->getDimensions().d[0] < 0) {
      for (const auto& [select, n] :
           {std::pair(OptProfileSelector::kMIN, 1), {OptProfileSelector::kOPT, 2}, {OptProfileSelector::kMAX, 4}})
        profile->setDimensions("x", select, Dims4(n, kChannels, kSide, kSide));
      EXPECT_EQ(config->addOptimizationProfile(profile), 0);
    }
    lathe::setBuildBudget(*config, 0);
    lathe::setPrecision(*config, precision);
    for (const BuilderFlag flag : flags) config->setFlag(flag);
    if (change) change(*network);
    for (const std::string& name : marked) EXPECT_TRUE(network->markWeightsRefittable(name.c_str())) << logger.last();
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
  }

  std::unique_ptr<ICudaEngine> load(const IHostMemory& plan) {
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    EXPECT_NE(engine, nullptr) << logger.last();
    return engine;
  }

  // The bytes of y for an input from a seed; none after a failure.
  static std::vector<std::byte> run(IExecutionContext& context, lathe::DType type) {
    const lathe::Tensor x = random_weights(type, {kBatch, kChannels, kSide, kSide}, 7, -1, 1);
    std::vector<std::byte> y(static_cast<size_t>(kBatch * kClasses) * lathe::size_of(type));
    EXPECT_TRUE(context.setInputShape("x", Dims4(kBatch, kChannels, kSide, kSide)));
    void* bindings[] = {const_cast<void*>(x.data()), y.data()};
    return context.executeV2(bindings) ? y : std::vector<std::byte>();
  }
  static std::vector<std::byte> run(ICudaEngine& engine, lathe::DType type) {
    const std::unique_ptr<IExecutionContext> context(engine.createExecutionContext());
    return context ? run(*context, type) : std::vector<std::byte>();
  }
  std::vector<std::byte> run(const IHostMemory& plan, lathe::DType type) { return run(*load(plan), type); }

  bool refit_from(ICudaEngine& engine, const std::string& model) {
    const std::unique_ptr<IRefitter> refitter(createInferRefitter(engine, logger));
    const std::unique_ptr<nvonnxparser::IParserRefitter> parser(nvonnxparser::createParserRefitter(*refitter, logger));
    return parser->refitFromBytes(model.data(), model.size()) && refitter->refitCudaEngine();
  }

  // The only report, which holds these words.
  void expect_report(const std::vector<std::string>& words) {
    ASSERT_EQ(logger.text.size(), 1u) << logger.last();
    for (const std::string& word : words)
      EXPECT_NE(logger.last().find(word), std::string::npos) << word << " is not in " << logger.last();
    logger.text.clear();
  }

  static Weights as_weights(const lathe::Tensor& tensor) {
    return {tensor.dtype() == lathe::DType::f16 ? DataType::kHALF : DataType::kFLOAT, tensor.data(), tensor.volume()};
  }

  Errors logger;
  std::vector<std::string> marked;
  std::function<void(INetworkDefinition&)> change;  // of the parsed network
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
};

}  // namespace nvinfer1::refits
