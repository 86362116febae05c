// SPDX-License-Identifier: Apache-2.0
// Plugins of the V2 family in networks and models.
#include "NvOnnxParser.h"
#include "onnx/model_bytes.h"
#include "plugin_fixture.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {
namespace {

using namespace lathe::onnx;  // what writes the models

// What happens to them, in order: n new or clone, c configure, a attach, i initialise, e enqueue, t terminate, d
// detach, x destroy. Only of those that are attached.
std::string g_story;
std::atomic<int> g_existing{0};

// y = value * x. Lies: clone_null, shapes_null, no_format, enqueue_fails, attach_null (initialize() fails).
class ScaleV2 final : public IPluginV2DynamicExt {
 public:
  ScaleV2(float value, Lie lie) : value_(value), lie_(lie) { ++g_existing; }
  ScaleV2(const ScaleV2& other)
      : IPluginV2DynamicExt(other), value_(other.value_), lie_(other.lie_), space_(other.space_) {
    ++g_existing;
  }
  ~ScaleV2() override { --g_existing; }
  ScaleV2& operator=(const ScaleV2&) = delete;

  const char* getPluginType() const noexcept override { return "ScaleV2"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  int32_t getNbOutputs() const noexcept override { return 1; }
  int32_t initialize() noexcept override { return tell('i'), lie_ == Lie::attach_null ? 5 : 0; }
  void terminate() noexcept override { tell('t'); }
  size_t getSerializationSize() const noexcept override { return sizeof value_ + sizeof lie_; }
  void serialize(void* buffer) const noexcept override {
    std::memcpy(buffer, &value_, sizeof value_);
    std::memcpy(static_cast<char*>(buffer) + sizeof value_, &lie_, sizeof lie_);
  }
  void destroy() noexcept override {
    tell('x');
    delete this;
  }
  IPluginV2DynamicExt* clone() const noexcept override {
    return lie_ == Lie::clone_null ? nullptr : new ScaleV2(*this);
  }
  void setPluginNamespace(const char* space) noexcept override { space_ = space; }
  const char* getPluginNamespace() const noexcept override { return space_.c_str(); }
  DataType getOutputDataType(int32_t, const DataType* types, int32_t) const noexcept override { return types[0]; }
  void attachToContext(cudnnContext*, cublasContext*, IGpuAllocator*) noexcept override {
    attached_ = true;
    tell('a');
  }
  void detachFromContext() noexcept override { tell('d'); }
  DimsExprs getOutputDimensions(int32_t, const DimsExprs* inputs, int32_t, IExprBuilder&) noexcept override {
    DimsExprs dims = inputs[0];
    if (lie_ == Lie::shapes_null) dims.d[0] = nullptr;
    return dims;
  }
  bool supportsFormatCombination(int32_t i, const PluginTensorDesc* all, int32_t, int32_t) noexcept override {
    return lie_ != Lie::no_format && all[i].type == DataType::kFLOAT && all[i].format == TensorFormat::kLINEAR;
  }
  void configurePlugin(const DynamicPluginTensorDesc* in, int32_t, const DynamicPluginTensorDesc*,
                       int32_t) noexcept override {
    tell('c');
    most_ = in[0].max.d[0];
    rows_ = in[0].desc.dims.d[0];
  }
  size_t getWorkspaceSize(const PluginTensorDesc* in, int32_t, const PluginTensorDesc*,
                          int32_t) const noexcept override {
    return static_cast<size_t>(in[0].dims.d[0] * in[0].dims.d[1]) * sizeof(float);  // of the largest input
  }
  int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const* inputs, void* const* outputs,
                  void* workspace, cudaStream_t) noexcept override {
    tell('e');
    if (lie_ == Lie::enqueue_fails) return 9;
    if (rows_ != in[0].dims.d[0] || most_ != rows_) return 12;  // configured with what it runs on
    const int64_t count = in[0].dims.d[0] * in[0].dims.d[1];
    auto* copy = static_cast<float*>(workspace);
    std::copy_n(static_cast<const float*>(inputs[0]), count, copy);
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(outputs[0])[i] = value_ * copy[i];
    return 0;
  }

 private:
  void tell(char what) const {
    if (attached_) g_story += what;
  }
  float value_;
  Lie lie_;
  std::string space_ = "test";
  bool attached_ = false;
  int64_t most_ = 0, rows_ = 0;
};

class CreatorV2 final : public IPluginCreator {
 public:
  const char* getPluginName() const noexcept override { return "ScaleV2"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  IPluginV2* createPlugin(const char*, const PluginFieldCollection* fields) noexcept override {
    for (int32_t i = 0; i < fields->nbFields; ++i)
      if (std::string_view(fields->fields[i].name) == "value")
        return new ScaleV2(*static_cast<const float*>(fields->fields[i].data), Lie::none);
    return nullptr;
  }
  IPluginV2* deserializePlugin(const char*, const void* data, size_t size) noexcept override {
    float value = 0;
    Lie lie = Lie::none;
    if (size != sizeof value + sizeof lie) return nullptr;
    std::memcpy(&value, data, sizeof value);
    std::memcpy(&lie, static_cast<const char*>(data) + sizeof value, sizeof lie);
    return new ScaleV2(value, lie);
  }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return "test"; }
};

class PluginV2 : public PluginV3 {
 protected:
  void SetUp() override {
    PluginV3::SetUp();
    ASSERT_TRUE(builder->getPluginRegistry().registerCreator(creator_v2_, "test"));
    ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(creator_v2_, "test"));
    g_story.clear();
  }
  IPluginV2Layer* add_v2(IPluginV2& plugin) {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 3));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(2, 3));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(6, 3));
    config->addOptimizationProfile(profile);
    IPluginV2Layer* layer = network->addPluginV2(&x, 1, plugin);
    if (!layer) return nullptr;
    layer->setName("the layer");
    layer->getOutput(0)->setName("y0");
    network->markOutput(*layer->getOutput(0));
    return layer;
  }
  CreatorV2 creator_v2_;
};

TEST_F(PluginV2, IsClonedConfiguredAndMadeAgain) {
  {
    ScaleV2 plugin(2.5F, Lie::none);
    IPluginV2Layer* layer = add_v2(plugin);
    ASSERT_NE(layer, nullptr) << logger.last();
    EXPECT_EQ(layer->getType(), LayerType::kPLUGIN_V2);
    EXPECT_NE(&layer->getPlugin(), &plugin) << "a clone is kept";
    EXPECT_STREQ(layer->getPlugin().getPluginType(), "ScaleV2");
  }
  ASSERT_TRUE(build()) << logger.last();
  network.reset();
  EXPECT_EQ(g_existing, 0);
  ASSERT_TRUE(load()) << logger.last();
  g_story.clear();
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{2.5, 5, 7.5, 10, 12.5, 15}));
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 7})) << logger.last();
  ASSERT_TRUE(run({1, 2, 3})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{2.5, 5, 7.5}));
  context.reset();
  engine.reset();
  EXPECT_EQ(g_story, "ceecetdx");
  EXPECT_EQ(g_existing, 0);
}

TEST_F(PluginV2, ContextsInitialiseTheirOwn) {
  ScaleV2 plugin(2, Lie::none);
  ASSERT_TRUE(add_v2(plugin) && build() && load()) << logger.last();
  EXPECT_EQ(g_story, "ai");
  const std::unique_ptr<IExecutionContext> second(engine->createExecutionContext());
  EXPECT_EQ(g_story, "aiai");
}

TEST_F(PluginV2, NodesOfModelsFindTheirCreators) {
  network.reset(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  const std::string bytes =
      model(graph({{node("ScaleV2", {"x"}, {"y0"},
                         {string_attribute("plugin_namespace", "test"), real_attribute("value", 3)}, "their.domain")},
                   {},
                   {value_info("x", 1, {2, 3})},
                   {value_info("y0", 1, {2, 3})}}),
            10, {opset(21), opset(1, "their.domain")});
  EXPECT_TRUE(parser->supportsOperator("ScaleV2"));
  ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << logger.last();
  EXPECT_EQ(network->getLayer(0)->getType(), LayerType::kPLUGIN_V2);
  ASSERT_TRUE(build() && load()) << logger.last();
  ASSERT_TRUE(run({1, 2, 3, 4, 5, 6})) << logger.last();
  EXPECT_EQ(result("y0"), (std::vector<float>{3, 6, 9, 12, 15, 18}));
}

class LiesOfV2 : public PluginV2, public testing::WithParamInterface<std::tuple<Lie, const char*>> {};

TEST_P(LiesOfV2, AreToldOnce) {
  {
    ScaleV2 plugin(2, std::get<0>(GetParam()));
    if (add_v2(plugin) && build() && load()) {
      EXPECT_FALSE(run({1, 2, 3}));
    }
  }
  ASSERT_EQ(logger.errors.size(), 1u);
  EXPECT_NE(logger.last().find(std::get<1>(GetParam())), std::string::npos) << logger.last();
  context.reset(), engine.reset(), network.reset();
  EXPECT_EQ(g_existing, 0);
}

INSTANTIATE_TEST_SUITE_P(Callbacks, LiesOfV2,
                         testing::Values(std::tuple(Lie::clone_null, "clone() gives null"),
                                         std::tuple(Lie::shapes_null, "a dimension 0 that is null"),
                                         std::tuple(Lie::no_format, "supportsFormatCombination() refuses input 0"),
                                         std::tuple(Lie::attach_null, "initialize() fails"),
                                         std::tuple(Lie::enqueue_fails, "enqueue() gives 9")));

// Of networks with an implicit batch dimension.
class OldPlugin final : public IPluginV2 {
 public:
  const char* getPluginType() const noexcept override { return "Old"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  int32_t getNbOutputs() const noexcept override { return 1; }
  Dims getOutputDimensions(int32_t, const Dims* inputs, int32_t) noexcept override { return inputs[0]; }
  bool supportsFormat(DataType, PluginFormat) const noexcept override { return true; }
  void configureWithFormat(const Dims*, int32_t, const Dims*, int32_t, DataType, PluginFormat,
                           int32_t) noexcept override {}
  int32_t initialize() noexcept override { return 0; }
  void terminate() noexcept override {}
  size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
  int32_t enqueue(int32_t, const void* const*, void* const*, void*, cudaStream_t) noexcept override { return 0; }
  size_t getSerializationSize() const noexcept override { return 0; }
  void serialize(void*) const noexcept override {}
  void destroy() noexcept override { delete this; }
  IPluginV2* clone() const noexcept override { return new OldPlugin; }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return ""; }
};

TEST_F(PluginV2, OfImplicitBatchesAreRefused) {
  OldPlugin plugin;
  EXPECT_EQ(add_v2(plugin), nullptr);
  EXPECT_NE(logger.last().find("plugin 'Old'"), std::string::npos) << logger.last();
  EXPECT_NE(logger.last().find("is an IPluginV2, of networks with an implicit batch"), std::string::npos);
}

}  // namespace
}  // namespace nvinfer1
