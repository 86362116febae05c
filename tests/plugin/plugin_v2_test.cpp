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

// What the older classes have in common, whose plugins are told of fixed sizes alone: y = 2 * x, once it is configured.
template <class Base>
class OldPlugin : public Base {
 public:
  OldPlugin() { ++g_existing; }
  OldPlugin(const OldPlugin& other) : Base(other), elements_(other.elements_) { ++g_existing; }
  ~OldPlugin() override { --g_existing; }
  OldPlugin& operator=(const OldPlugin&) = delete;

  const char* getPluginType() const noexcept override { return "Old"; }
  int32_t getNbOutputs() const noexcept override { return 1; }
  Dims getOutputDimensions(int32_t, const Dims* inputs, int32_t count) noexcept override {
    return count == 1 ? inputs[0] : Dims{-1, {}};
  }
  int32_t initialize() noexcept override { return g_story += 'i', 0; }
  void terminate() noexcept override { g_story += 't'; }
  size_t getWorkspaceSize(int32_t batch) const noexcept override { return static_cast<size_t>(batch) * 100; }
  int32_t enqueue(int32_t batch, const void* const* in, void* const* out, void* workspace,
                  cudaStream_t) noexcept override {
    if (batch != 1 || !workspace || elements_ == 0) return 3;
    std::memset(workspace, 7, 100);
    for (int64_t i = 0; i < elements_; ++i) static_cast<float*>(out[0])[i] = 2 * static_cast<const float*>(in[0])[i];
    return g_story += 'e', 0;
  }
  size_t getSerializationSize() const noexcept override { return sizeof elements_; }
  void serialize(void* buffer) const noexcept override { std::memcpy(buffer, &elements_, sizeof elements_); }
  void destroy() noexcept override { delete this; }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return "test"; }

  int64_t elements_ = 0;

 protected:
  void configure(const Dims& in, const Dims& out, DataType type, TensorFormat format, int32_t batch) {
    const bool expected = in.nbDims == 2 && out.nbDims == 2 && in.d[0] == 2 && out.d[1] == 3 && batch == 1;
    if (expected && type == DataType::kFLOAT && format == TensorFormat::kLINEAR) elements_ = in.d[0] * in.d[1];
  }
};

class Plain final : public OldPlugin<IPluginV2> {
 public:
  const char* getPluginVersion() const noexcept override { return "V2"; }
  IPluginV2* clone() const noexcept override { return new Plain(*this); }
  bool supportsFormat(DataType type, PluginFormat format) const noexcept override {
    return type == DataType::kFLOAT && format == TensorFormat::kLINEAR;
  }
  void configureWithFormat(const Dims* in, int32_t, const Dims* out, int32_t, DataType type, PluginFormat format,
                           int32_t batch) noexcept override {
    configure(in[0], out[0], type, format, batch);
  }
};

template <class Base>
class OldExtended : public OldPlugin<Base> {
 public:
  DataType getOutputDataType(int32_t, const DataType* types, int32_t) const noexcept override { return types[0]; }
  void attachToContext(cudnnContext*, cublasContext*, IGpuAllocator*) noexcept override { g_story += 'a'; }
  void detachFromContext() noexcept override { g_story += 'd'; }
};

class Extended final : public OldExtended<IPluginV2Ext> {
 public:
  const char* getPluginVersion() const noexcept override { return "V2Ext"; }
  IPluginV2Ext* clone() const noexcept override { return new Extended(*this); }
  bool supportsFormat(DataType type, PluginFormat format) const noexcept override {
    return type == DataType::kFLOAT && format == TensorFormat::kLINEAR;
  }
  void configurePlugin(const Dims* in, int32_t, const Dims* out, int32_t, const DataType* types,
                       const DataType* results, const bool* broadcast, const bool*, PluginFormat format,
                       int32_t batch) noexcept override {
    if (!broadcast[0] && types[0] == results[0]) configure(in[0], out[0], types[0], format, batch);
  }
};

class OfEachTensor final : public OldExtended<IPluginV2IOExt> {
 public:
  const char* getPluginVersion() const noexcept override { return "V2IOExt"; }
  IPluginV2Ext* clone() const noexcept override { return new OfEachTensor(*this); }
  bool supportsFormatCombination(int32_t i, const PluginTensorDesc* all, int32_t, int32_t) const noexcept override {
    return all[i].type == DataType::kFLOAT && all[i].format == TensorFormat::kLINEAR;
  }
  void configurePlugin(const PluginTensorDesc* in, int32_t, const PluginTensorDesc* out, int32_t) noexcept override {
    configure(in[0].dims, out[0].dims, in[0].type, out[0].format, 1);
  }
};

template <class P>
class OldCreator final : public IPluginCreator {
 public:
  const char* getPluginName() const noexcept override { return "Old"; }
  const char* getPluginVersion() const noexcept override { return version_.c_str(); }
  const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  IPluginV2* createPlugin(const char*, const PluginFieldCollection*) noexcept override { return nullptr; }
  IPluginV2* deserializePlugin(const char*, const void* data, size_t) noexcept override {
    auto* plugin = new P;
    std::memcpy(&plugin->elements_, data, sizeof plugin->elements_);
    return plugin;
  }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return "test"; }

 private:
  std::string version_ = P().getPluginVersion();
};

class OlderPlugins : public PluginV2 {
 protected:
  // x of `rows` rows through the plugin.
  bool add_old(IPluginV2& plugin, int64_t rows, DataType type = DataType::kFLOAT) {
    ITensor* x = network->addInput("x", type, Dims2(rows, 3));
    IPluginV2Layer* layer = network->addPluginV2(&x, 1, plugin);
    if (!layer) return false;
    layer->setName("the layer");
    layer->getOutput(0)->setName("y0");
    return network->markOutput(*layer->getOutput(0)), true;
  }
  template <class P>
  void run_old(const char* story) {
    OldCreator<P> creator;
    ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(creator, "test"));
    P plugin;
    ASSERT_TRUE(add_old(plugin, 2) && build() && load()) << logger.last();
    ASSERT_TRUE(run({1, 2, 3, 4, 5, 6}) && run({1, 2, 3, 4, 5, 6})) << logger.last();
    EXPECT_EQ(result("y0"), (std::vector<float>{2, 4, 6, 8, 10, 12}));
    context.reset(), engine.reset(), network.reset();
    EXPECT_EQ(g_story, story);
    EXPECT_EQ(g_existing, 1);  // the application's own
    runtime->getPluginRegistry().deregisterCreator(creator);
  }
};

TEST_F(OlderPlugins, OfClassV2Run) { run_old<Plain>("ieet"); }
TEST_F(OlderPlugins, OfClassV2ExtRun) { run_old<Extended>("aieetd"); }
TEST_F(OlderPlugins, OfClassV2IOExtRun) { run_old<OfEachTensor>("aieetd"); }

TEST_F(OlderPlugins, AreToldOfFixedSizesAlone) {
  Extended plugin;
  ASSERT_TRUE(add_old(plugin, -1));
  EXPECT_FALSE(build());
  ASSERT_EQ(logger.errors.size(), 1u);
  EXPECT_NE(logger.last().find("is an IPluginV2Ext, which is told of fixed sizes alone, and input 0 ('x')"),
            std::string::npos)
      << logger.last();
}

TEST_F(OlderPlugins, SayWhichTypesTheyTake) {
  Plain plugin;
  ASSERT_TRUE(add_old(plugin, 2, DataType::kINT32));
  EXPECT_FALSE(build());
  ASSERT_EQ(logger.errors.size(), 1u);
  EXPECT_NE(logger.last().find("supportsFormatCombination() refuses input 0"), std::string::npos) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
