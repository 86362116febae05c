// SPDX-License-Identifier: Apache-2.0
// What programs for generation 10 call and generation 11 has no more. Prints what each call gave, and the log's
// warnings and errors; generations_cli_test.py knows what they should be.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "NvInfer.h"
#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "interface/callbacks.h"
#include "interface/v2_plugin.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace nvinfer1;

namespace {

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity == Severity::kWARNING) std::printf("warning: %s\n", text);
    if (severity <= Severity::kERROR) std::printf("error: %s\n", text);
  }
};

class Calibrator final : public IInt8EntropyCalibrator2 {
 public:
  int32_t getBatchSize() const noexcept override { return 1; }
  bool getBatch(void**, const char**, int32_t) noexcept override { return false; }
  const void* readCalibrationCache(std::size_t& length) noexcept override {
    length = 0;
    return nullptr;
  }
  void writeCalibrationCache(const void*, std::size_t) noexcept override {}
};

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

struct Built {
  std::unique_ptr<INetworkDefinition> network;
  ILayer* layer;
};

constexpr bool kWeakly = false, kStrongly = true;

Built make_network(IBuilder& builder, bool strongly_typed) {
  const auto flag = NetworkDefinitionCreationFlag::kSTRONGLY_TYPED;
  auto network = own(builder.createNetworkV2(strongly_typed ? 1u << static_cast<uint32_t>(flag) : 0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims{1, {4}});
  ILayer* layer = network->addUnary(*x, UnaryOperation::kEXP);
  layer->setName("exp");
  layer->getOutput(0)->setName("y");
  network->markOutput(*layer->getOutput(0));
  return {std::move(network), layer};
}

void networks(IBuilder& builder) {
  Built built = make_network(builder, kWeakly);
  ILayer& layer = *built.layer;
  print("precision is set at first", layer.precisionIsSet());
  layer.setPrecision(DataType::kHALF);
  layer.setOutputType(0, DataType::kFLOAT);
  layer.setOutputType(7, DataType::kFLOAT);
  print("precision is half", layer.precisionIsSet() && layer.getPrecision() == DataType::kHALF);
  print("type of output 0 is set, not of 7", layer.outputTypeIsSet(0) && !layer.outputTypeIsSet(7));
  layer.resetPrecision();
  layer.resetOutputType(0);
  print("both are reset", !layer.precisionIsSet() && !layer.outputTypeIsSet(0));

  ITensor& y = *layer.getOutput(0);
  print("range is set", y.setDynamicRange(-3, 3) && y.dynamicRangeIsSet() && y.getDynamicRangeMax() == 3);
  print("range of NaN is set", y.setDynamicRange(NAN, 3));
  y.resetDynamicRange();
  print("range is reset", !y.dynamicRangeIsSet() && std::isnan(y.getDynamicRangeMin()));
  ITensor& x = *built.network->getInput(0);
  x.setType(DataType::kHALF);
  // Of its memory alone: the layer that reads it was added before.
  print("input is half", x.getType() == DataType::kHALF && y.getType() == DataType::kFLOAT);
  y.setType(DataType::kINT32);

  ITensor* scale = built.network->addConstant(Dims{0, {}}, Weights{DataType::kHALF, "\0<", 1})->getOutput(0);
  IQuantizeLayer* quantize = built.network->addQuantize(y, *scale);
  print("quantized is int8", quantize && quantize->getOutput(0)->getType() == DataType::kINT8);
  IFillLayer* fill = built.network->addFill(Dims{1, {3}}, FillOperation::kLINSPACE);
  print("fill is float", fill && fill->getOutput(0)->getType() == DataType::kFLOAT);
}

void builds(IBuilder& builder) {
  Calibrator calibrator;
  print("calibrator's algorithm", calibrator.getAlgorithm() == CalibrationAlgoType::kENTROPY_CALIBRATION_2);
  auto config = own(builder.createBuilderConfig());
  config->setFlag(BuilderFlag::kFP16);
  config->setFlag(BuilderFlag::kINT8);
  config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
  config->setInt8Calibrator(&calibrator);
  config->setInt8Calibrator(&calibrator);
  config->setQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
  print("flags are set", config->getFlag(BuilderFlag::kFP16) && config->getFlag(BuilderFlag::kINT8) &&
                             config->getFlag(BuilderFlag::kTF32) && config->getInt8Calibrator() == &calibrator &&
                             config->getQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION));
  Built weak = make_network(builder, kWeakly);
  print("a weakly typed network is built", own(builder.buildSerializedNetwork(*weak.network, *config)) != nullptr);
  Built strong = make_network(builder, kStrongly);
  strong.layer->setPrecision(DataType::kHALF);
  print("a strongly typed one with flags is built",
        own(builder.buildSerializedNetwork(*strong.network, *config)) != nullptr);
}

int engines(IBuilder& builder) {
  Built built = make_network(builder, kWeakly);
  auto config = own(builder.createBuilderConfig());
  auto engine = own(builder.buildEngineWithConfig(*built.network, *config));
  if (!engine) return 1;
  print("implicit batch", engine->hasImplicitBatchDimension());
  print("sizes agree", static_cast<int64_t>(engine->getDeviceMemorySize()) == engine->getDeviceMemorySizeV2() &&
                           static_cast<int64_t>(engine->getDeviceMemorySizeForProfile(0)) ==
                               engine->getDeviceMemorySizeForProfileV2(0));
  auto context = own(engine->createExecutionContextWithoutDeviceMemory());
  if (!context) return 1;
  struct alignas(256) Piece {
    char bytes[256];
  };
  std::vector<Piece> memory(engine->getDeviceMemorySize() / sizeof(Piece) + 1);
  context->setDeviceMemory(memory.data());
  print("all shapes are specified", context->allInputShapesSpecified());
  float x[4] = {0, 0, 0, 0}, y[4] = {};
  context->setTensorAddress("x", x);
  context->setTensorAddress("y", y);
  print("runs", context->enqueueV3(nullptr) && y[3] == 1);
  return 0;
}

void plugins(INetworkDefinition& network) {
  IPluginRegistry& registry = *getPluginRegistry();
  DoublingCreator creator;
  print("creator is registered", registry.registerCreator(creator, ""));
  int32_t number = 0;
  IPluginCreator* const* list = registry.getPluginCreatorList(&number);
  print("creator is listed", std::count(list, list + number, &creator) == 1);
  IPluginCreator* found = registry.getPluginCreator("Doubling", "1");
  print("creator is found", found == &creator);
  print("registered twice", registry.registerCreator(creator, ""));
  IPluginV2* plugin = creator.createPlugin("doubling", nullptr);
  print("its plugin says that inputs are broadcast",
        static_cast<IPluginV2Ext*>(plugin)->canBroadcastInputAcrossBatch(0));
  ITensor* input = network.getInput(0);
  print("a layer of the V2 family is added", network.addPluginV2(&input, 1, *plugin) != nullptr);
  plugin->destroy();
  registry.deregisterCreator(creator);
  print("creator is gone", registry.getPluginCreator("Doubling", "1") == nullptr);
}

}  // namespace

int main() {
  Logger logger;
  auto builder = own(createInferBuilder(logger));
  if (!builder) return 1;
  print("fast fp16", builder->platformHasFastFp16());
  print("fast int8", builder->platformHasFastInt8());
  print("tf32", builder->platformHasTf32());
  networks(*builder);
  builds(*builder);
  if (engines(*builder) != 0) return 1;
  plugins(*make_network(*builder, kWeakly).network);
  return 0;
}
