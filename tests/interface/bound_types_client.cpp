// SPDX-License-Identifier: Apache-2.0
// A program for generation 10 that says of a weakly typed network's inputs and outputs which type their memory has,
// after the layers were added, and sets the precision of each layer of a model. Prints what came of it.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "interface/callbacks.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace nvinfer1;

namespace {

constexpr int32_t kSize = 4;
constexpr uint16_t kHalves[kSize] = {0x0000, 0x3c00, 0x4000, 0xc200};   // 0, 1, 2, -3
constexpr uint16_t kBfloats[kSize] = {0x0000, 0x3f80, 0x4000, 0xc040};  // the same
constexpr int8_t kLevels[kSize] = {0, 2, 4, -6};                        // of a step of a half
constexpr float kFloats[kSize] = {0, 1, 2, -3};

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kERROR) std::printf("error: %s\n", text);
  }
};

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

// y = x + 2, in float32.
std::unique_ptr<INetworkDefinition> make_network(IBuilder& builder) {
  static constexpr float kTwos[kSize] = {2, 2, 2, 2};
  auto network = own(builder.createNetworkV2(0));
  const Dims dims{1, {kSize}};
  ITensor* x = network->addInput("x", DataType::kFLOAT, dims);
  ITensor* two = network->addConstant(dims, Weights{DataType::kFLOAT, kTwos, kSize})->getOutput(0);
  ITensor* y = network->addElementWise(*x, *two, ElementWiseOperation::kSUM)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  return network;
}

struct Memory {
  DataType type;
  const void* values;  // of x
};

void put(DataType type, const std::array<char, sizeof(kFloats)>& memory) {
  for (int32_t i = 0; i < kSize; ++i) {
    float value;
    uint16_t half;
    std::memcpy(&value, memory.data() + i * sizeof value, sizeof value);
    std::memcpy(&half, memory.data() + i * sizeof half, sizeof half);
    if (type == DataType::kFLOAT) std::printf(" %g", static_cast<double>(value));
    if (type == DataType::kINT8) std::printf(" %d", memory[i]);
    if (type == DataType::kHALF || type == DataType::kBF16) std::printf(" %04x", half);
  }
  std::printf("\n");
}

void run(IBuilder& builder, const char* name, Memory in, DataType out, float range = 0) {
  const auto network = make_network(builder);
  ITensor &x = *network->getInput(0), &y = *network->getOutput(0);
  x.setType(in.type);
  y.setType(out);
  for (ITensor* tensor : {&x, &y})
    if (range > 0) tensor->setDynamicRange(-range, range);
  const bool is_told = x.getType() == in.type && y.getType() == out;
  const auto config = own(builder.createBuilderConfig());
  const auto engine = own(builder.buildEngineWithConfig(*network, *config));
  std::printf("%s: told %s, ", name, is_told ? "yes" : "no");
  if (!engine) return void(std::printf("no engine\n"));
  const bool has_types = engine->getTensorDataType("x") == in.type && engine->getTensorDataType("y") == out;
  const auto context = own(engine->createExecutionContext());
  std::array<char, sizeof(kFloats)> x_memory{}, y_memory{};
  std::memcpy(x_memory.data(), in.values,
              kSize * (in.type == DataType::kFLOAT  ? 4
                       : in.type == DataType::kINT8 ? 1
                                                    : 2));
  context->setTensorAddress("x", x_memory.data());
  context->setTensorAddress("y", y_memory.data());
  if (!context->enqueueV3(nullptr)) return void(std::printf("no run\n"));
  std::printf("engine has them %s, y =", has_types ? "yes" : "no");
  put(out, y_memory);
}

// Each of a model's layers has a name that its precision can be set by.
void set_precisions(IBuilder& builder, ILogger& logger, const char* model) {
  const auto network = own(builder.createNetworkV2(0));
  const auto parser = own(nvonnxparser::createParser(*network, logger));
  if (!parser->parseFromFile(model, 0)) return;
  for (int32_t i = 0; i < network->getNbLayers(); ++i) {
    network->getLayer(i)->setPrecision(DataType::kFLOAT);
    for (int32_t o = 0; o < network->getLayer(i)->getNbOutputs(); ++o)
      if (network->getLayer(i)->getOutput(o)->getType() == DataType::kFLOAT)
        network->getLayer(i)->setOutputType(o, DataType::kFLOAT);
  }
  const auto config = own(builder.createBuilderConfig());
  config->setFlag(BuilderFlag::kFP16);
  config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    profile->setDimensions(network->getInput(0)->getName(), select, Dims{4, {1, 1, 8, 8}});
  config->addOptimizationProfile(profile);
  print("precisions of all layers are obeyed", own(builder.buildSerializedNetwork(*network, *config)) != nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  Logger logger;
  const auto builder = own(createInferBuilder(logger));
  if (!builder) return 1;
  run(*builder, "halves", {DataType::kHALF, kHalves}, DataType::kHALF);
  run(*builder, "bfloats to floats", {DataType::kBF16, kBfloats}, DataType::kFLOAT);
  run(*builder, "floats to halves", {DataType::kFLOAT, kFloats}, DataType::kHALF);
  run(*builder, "levels", {DataType::kINT8, kLevels}, DataType::kINT8, 63.5F);
  run(*builder, "levels without ranges", {DataType::kINT8, kLevels}, DataType::kFLOAT);
  set_precisions(*builder, logger, argv[1]);
  return 0;
}
