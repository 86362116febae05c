// SPDX-License-Identifier: Apache-2.0
// Plugins whose tensors do not lie row-major.
#include <numeric>

#include "plugin_fixture.h"

namespace nvinfer1 {
namespace {

struct Layout {
  TensorFormat format;
  int64_t vector;
  bool channels_last;
};
constexpr Layout kLinear{TensorFormat::kLINEAR, 1, false};
constexpr Layout kLayouts[] = {kLinear,
                               {TensorFormat::kCHW2, 2, false},
                               {TensorFormat::kCHW4, 4, false},
                               {TensorFormat::kCHW16, 16, false},
                               {TensorFormat::kCHW32, 32, false},
                               {TensorFormat::kHWC, 1, true},
                               {TensorFormat::kHWC8, 8, true},
                               {TensorFormat::kHWC16, 16, true}};

const Layout* find(TensorFormat format) {
  const auto* it = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                [&](const Layout& layout) { return layout.format == format; });
  return it == std::end(kLayouts) ? nullptr : it;
}

// Where an element of [N, C, H, W] lies, as TensorFormat is documented.
int64_t place(const Layout& layout, const Dims& dims, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t height = dims.d[2], width = dims.d[3], v = layout.vector, groups = (dims.d[1] + v - 1) / v;
  if (layout.channels_last) return ((n * height + h) * width + w) * groups * v + c;
  return (((n * groups + c / v) * height + h) * width + w) * v + c % v;
}

// y = x + 1, each in a format of its own; `value` is 100 * that of x + that of y.
class FormatsPlugin : public HostPlugin {
 public:
  using HostPlugin::HostPlugin;
  HostPlugin* copy() const override { return new FormatsPlugin(*this); }
  bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc* all, int32_t, int32_t) noexcept override {
    return all[pos].desc.format == wanted(pos);
  }
  int32_t onShapeChange(const PluginTensorDesc* in, int32_t, const PluginTensorDesc* out, int32_t) noexcept override {
    return in[0].format == wanted(0) && out[0].format == wanted(1) ? 0 : 21;
  }
  int32_t run(const PluginTensorDesc* in, const PluginTensorDesc* out, const void* const* inputs,
              void* const* outputs) noexcept override {
    const Layout &from = *find(in[0].format), &to = *find(out[0].format);
    const Dims& dims = in[0].dims;
    if (dims.nbDims != 4 || dims.d[1] != 5 || out[0].dims.d[1] != 5 || out[0].dims.d[0] != dims.d[0]) return 22;
    const auto* x = static_cast<const float*>(inputs[0]);
    auto* y = static_cast<float*>(outputs[0]);
    for (int64_t n = 0; n < dims.d[0]; ++n)
      for (int64_t h = 0; h < dims.d[2]; ++h)
        for (int64_t w = 0; w < dims.d[3]; ++w) {
          for (int64_t c = 5; c % from.vector != 0; ++c)
            if (x[place(from, dims, n, c, h, w)] != 0) return 23;  // groups are filled up with zeros
          for (int64_t c = 0; c < 5; ++c) y[place(to, dims, n, c, h, w)] = x[place(from, dims, n, c, h, w)] + 1;
          for (int64_t c = 5; c % to.vector != 0; ++c) y[place(to, dims, n, c, h, w)] = 99;
        }
    return 0;
  }

 private:
  TensorFormat wanted(int32_t position) const {
    const int32_t both = static_cast<int32_t>(value_);
    return static_cast<TensorFormat>(position == 0 ? both / 100 : both % 100);
  }
};

class PluginFormats : public PluginV3 {
 protected:
  void SetUp() override {
    PluginV3::SetUp();
    ASSERT_TRUE(runtime->getPluginRegistry().registerCreator(creator_, "test"));
  }
  // x[n, 5, 2, 3], n from 1 to 3, times 2 and through the plugin.
  bool add_formats(IPluginV3& plugin, int64_t channels = 5) {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(-1, channels, 2, 3));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims4(1, channels < 0 ? 4 : 5, 2, 3));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims4(2, 5, 2, 3));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims4(3, 5, 2, 3));
    config->addOptimizationProfile(profile);
    ITensor* twice = network->addElementWise(*x, *x, ElementWiseOperation::kSUM)->getOutput(0);
    IPluginV3Layer* layer = network->addPluginV3(&twice, 1, nullptr, 0, plugin);
    if (!layer) return false;
    layer->setName("the layer");
    ITensor* y = network->addActivation(*layer->getOutput(0), ActivationType::kRELU)->getOutput(0);
    y->setName("y0");
    return network->markOutput(*y), true;
  }
  bool run_formats(int64_t rows) {
    x_.resize(static_cast<size_t>(rows) * 30);
    std::iota(x_.begin(), x_.end(), -20.0f);
    if (!context->setInputShape("x", Dims4(rows, 5, 2, 3)) || !context->setTensorAddress("x", x_.data()) ||
        !context->setOutputAllocator("y0", &allocators_["y0"]))
      return false;
    return context->enqueueV3(nullptr);
  }
  TestCreator<FormatsPlugin> creator_{"Formats"};
};

class EachPairOfFormats : public PluginFormats, public testing::WithParamInterface<std::tuple<Layout, Layout>> {};

TEST_P(EachPairOfFormats, IsAsDocumented) {
  const auto& [from, to] = GetParam();
  FormatsPlugin plugin("Formats", static_cast<float>(static_cast<int>(from.format) * 100 + static_cast<int>(to.format)),
                       Lie::none);
  ASSERT_TRUE(add_formats(plugin) && build() && load()) << logger.last();
  for (const int64_t rows : {2, 3, 2}) {
    ASSERT_TRUE(run_formats(rows)) << logger.last();
    std::vector<float> want;
    for (const float x : x_) want.push_back(std::max(2 * x + 1, 0.0f));
    EXPECT_EQ(result("y0"), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, EachPairOfFormats,
                         testing::Combine(testing::ValuesIn(kLayouts), testing::ValuesIn(kLayouts)));

TEST_F(PluginFormats, ThatNoTensorCanHaveAreRefused) {
  FormatsPlugin plugin("Formats", 100 * static_cast<float>(TensorFormat::kHWC) + 9, Lie::none);  // kDLA_LINEAR
  ASSERT_TRUE(add_formats(plugin));
  EXPECT_FALSE(build());
  ASSERT_EQ(logger.errors.size(), 1u);
  EXPECT_NE(logger.last().find("supportsFormatCombination() refuses output 0, of f32, in each format that it can have: "
                               "kLINEAR, kCHW2"),
            std::string::npos)
      << logger.last();
}

// How many groups there are is no question of run time.
TEST_F(PluginFormats, OfGroupsNeedAFixedNumberOfChannels) {
  FormatsPlugin plugin("Formats", 100 * static_cast<float>(TensorFormat::kCHW4), Lie::none);
  ASSERT_TRUE(add_formats(plugin, -1));
  EXPECT_FALSE(build());
  ASSERT_EQ(logger.errors.size(), 1u);
  EXPECT_NE(logger.last().find("refuses input 0, of f32, in each format that it can have: kLINEAR, kHWC, kDHWC"),
            std::string::npos)
      << logger.last();
}

// Asks for no more than its limit.
class EndlessPlugin final : public ScalePlugin {
 public:
  explicit EndlessPlugin(int& asked) : ScalePlugin("Scale", 1, Lie::none), asked_(asked) {}
  HostPlugin* copy() const override { return new EndlessPlugin(*this); }
  int32_t getFormatCombinationLimit() noexcept override { return 2; }
  bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc*, int32_t, int32_t) noexcept override {
    ++asked_;
    return pos == 0;
  }

 private:
  int& asked_;
};

TEST_F(PluginFormats, AreAskedForUpToTheLimit) {
  int asked = 0;
  EndlessPlugin plugin(asked);
  ASSERT_TRUE(add_formats(plugin));
  EXPECT_FALSE(build());
  EXPECT_EQ(asked, 4);  // of each of two tensors
}

}  // namespace
}  // namespace nvinfer1
