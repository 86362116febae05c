// SPDX-License-Identifier: Apache-2.0
// A layer of the application's own, as a plugin: the places of the elements of a matrix that are not zero. How many
// there are is only known when it has run.
//   nonzero_plugin [ROW...]
// e.g. `nonzero_plugin 1,0,2 0,0,3` prints the places, a row and a column for each. The plugin is for CPUs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "lathe.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

constexpr char kName[] = "ExampleNonZero", kVersion[] = "1", kNamespace[] = "";
constexpr int64_t kMostRows = 16, kMostColumns = 16;

// One object has all three capabilities: what it is, how networks are built with it, and how it runs.
class NonZero final : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime {
 public:
  IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
    if (type == PluginCapabilityType::kCORE) return static_cast<IPluginV3OneCore*>(this);
    if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild*>(this);
    return static_cast<IPluginV3OneRuntime*>(this);
  }
  IPluginV3* clone() noexcept override { return new NonZero(*this); }

  const char* getPluginName() const noexcept override { return kName; }
  const char* getPluginVersion() const noexcept override { return kVersion; }
  const char* getPluginNamespace() const noexcept override { return kNamespace; }

  // Output 0 has the places, output 1 their number.
  int32_t getNbOutputs() const noexcept override { return 2; }
  int32_t getOutputDataTypes(DataType* types, int32_t, const DataType*, int32_t) const noexcept override {
    types[0] = DataType::kINT32;
    types[1] = DataType::kINT64;
    return 0;
  }
  // The number of places is between none and all; half of them is what the builder may expect.
  int32_t getOutputShapes(const DimsExprs* inputs, int32_t, const DimsExprs*, int32_t, DimsExprs* outputs, int32_t,
                          IExprBuilder& builder) noexcept override {
    const IDimensionExpr* all = builder.operation(DimensionOperation::kPROD, *inputs[0].d[0], *inputs[0].d[1]);
    const IDimensionExpr* half = builder.operation(DimensionOperation::kCEIL_DIV, *all, *builder.constant(2));
    outputs[0].nbDims = 2;
    outputs[0].d[0] = builder.declareSizeTensor(1, *half, *all);
    outputs[0].d[1] = builder.constant(2);
    outputs[1].nbDims = 0;
    return 0;
  }
  bool supportsFormatCombination(int32_t position, const DynamicPluginTensorDesc* all, int32_t,
                                 int32_t) noexcept override {
    const DataType types[] = {DataType::kFLOAT, DataType::kINT32, DataType::kINT64};
    return all[position].desc.format == PluginFormat::kLINEAR && all[position].desc.type == types[position];
  }
  int32_t configurePlugin(const DynamicPluginTensorDesc*, int32_t, const DynamicPluginTensorDesc*,
                          int32_t) noexcept override {
    return 0;
  }

  // On a CPU the pointers are the host's and the work is done when this returns; on a GPU it would be queued on the
  // stream.
  int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const* inputs, void* const* outputs,
                  void*, cudaStream_t) noexcept override {
    if (!on_host_) return 1;
    const auto* x = static_cast<const float*>(inputs[0]);
    auto* places = static_cast<int32_t*>(outputs[0]);
    int64_t count = 0;
    for (int64_t row = 0; row < in[0].dims.d[0]; ++row)
      for (int64_t column = 0; column < in[0].dims.d[1]; ++column) {
        if (*x++ == 0) continue;
        places[2 * count] = static_cast<int32_t>(row);
        places[2 * count + 1] = static_cast<int32_t>(column);
        ++count;
      }
    *static_cast<int64_t*>(outputs[1]) = count;
    return 0;
  }
  int32_t onShapeChange(const PluginTensorDesc*, int32_t, const PluginTensorDesc*, int32_t) noexcept override {
    return 0;
  }
  IPluginV3* attachToContext(IPluginResourceContext* context) noexcept override {
    auto* attached = new NonZero(*this);
    attached->on_host_ = lathe::runsOnHost(*context);
    return attached;
  }
  const PluginFieldCollection* getFieldsToSerialize() noexcept override { return &no_fields_; }

 private:
  bool on_host_ = false;
  PluginFieldCollection no_fields_{0, nullptr};
};

// A plan has the plugin's name, by which the runtime finds this.
class NonZeroCreator final : public IPluginCreatorV3One {
 public:
  IPluginV3* createPlugin(const char*, const PluginFieldCollection*, TensorRTPhase) noexcept override {
    return new NonZero;
  }
  const PluginFieldCollection* getFieldNames() noexcept override { return &no_fields_; }
  const char* getPluginName() const noexcept override { return kName; }
  const char* getPluginVersion() const noexcept override { return kVersion; }
  const char* getPluginNamespace() const noexcept override { return kNamespace; }

 private:
  PluginFieldCollection no_fields_{0, nullptr};
};

std::unique_ptr<IHostMemory> build(ILogger& logger) {
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, -1));
  NonZero plugin;
  IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);  // keeps a clone
  if (!layer) return nullptr;
  layer->getOutput(0)->setName("places");
  layer->getOutput(1)->setName("count");
  for (int32_t output : {0, 1}) network->markOutput(*layer->getOutput(output));
  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  lathe::setTarget(*config, "cpu");
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 1));
  profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(4, 4));
  profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(kMostRows, kMostColumns));
  config->addOptimizationProfile(profile);
  return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

// "1,0,2" and "0,0,3" are x[2, 3].
std::vector<float> read_matrix(int rows, char** texts, Dims2& dims) {
  std::vector<float> x;
  for (int row = 0; row < rows; ++row) {
    char* at = texts[row];
    x.push_back(std::strtof(at, &at));
    while (*at == ',') x.push_back(std::strtof(at + 1, &at));
  }
  dims = Dims2(rows, static_cast<int64_t>(x.size()) / rows);
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  Logger logger;
  NonZeroCreator creator;
  getPluginRegistry()->registerCreator(creator, kNamespace);
  char first[] = "1,0,2", second[] = "0,0,3";
  char* given[] = {first, second};
  Dims2 dims;
  std::vector<float> x = argc > 1 ? read_matrix(argc - 1, argv + 1, dims) : read_matrix(2, given, dims);
  const std::unique_ptr<IHostMemory> plan = build(logger);
  if (!plan) return 1;
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  if (!engine) return 1;
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  std::vector<int32_t> places(2 * kMostRows * kMostColumns);
  int64_t count = 0;
  if (!context->setInputShape("x", dims) || !context->setTensorAddress("x", x.data()) ||
      !context->setTensorAddress("places", places.data()) || !context->setTensorAddress("count", &count) ||
      !context->enqueueV3(nullptr))
    return 1;
  std::printf("%lld places:", static_cast<long long>(count));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) std::printf(" (%d, %d)", places[2 * i], places[2 * i + 1]);
  std::printf("\n");
  context.reset(), engine.reset(), runtime.reset();
  getPluginRegistry()->deregisterCreator(creator);
  return 0;
}
