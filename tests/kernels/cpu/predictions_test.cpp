// SPDX-License-Identifier: Apache-2.0
// What tactics of convolutions predict: times that follow from the work of each configuration and from the target.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cpu/target.h"
#include "tuning/tactic.h"

namespace lathe::cpu {
const Tactic& conv_tactic();
const Tactic& depthwise_tactic();

namespace {

constexpr std::string_view kTargets[] = {"cpu-x86_64-baseline", "cpu-x86_64-avx2", "cpu-x86_64-avx512",
                                         "cpu-arm64-baseline"};

struct Layer {
  int64_t inputs, outputs, kernel, size;
  bool by_channel = false;  // one filter for each

  double products() const {
    return static_cast<double>(outputs * kernel * kernel * size * size) * static_cast<double>(by_channel ? 1 : inputs);
  }
};

Operand image(int64_t channels, int64_t size) {
  Operand operand;
  operand.opt_dims = {1, channels, size, size};
  operand.opt_strides = dense_strides(operand.opt_dims, Layout::channels_last);
  operand.dims = to_shape(operand.opt_dims), operand.strides = to_shape(operand.opt_strides);
  return operand;
}

std::vector<Config> configs_for(const Layer& layer, std::string_view target, int cores) {
  ConvolutionAttrs attrs;
  attrs.groups = layer.by_channel ? layer.inputs : 1;
  attrs.pads_begin = attrs.pads_end = {layer.kernel / 2, layer.kernel / 2};
  const Tensor weights =
      *Tensor::allocate(DType::f32, {layer.outputs, layer.inputs / attrs.groups, layer.kernel, layer.kernel});
  Problem problem;
  problem.attributes = &attrs;
  problem.target = describe(*find_processor(target), cores);
  problem.program = {1, {}, {0}};
  Operand w;
  w.opt_dims = weights.dims();
  w.opt_strides = dense_strides(w.opt_dims, Layout::linear);
  w.dims = to_shape(w.opt_dims), w.strides = to_shape(w.opt_strides);
  w.constant = w.weights = &weights;
  problem.inputs = {image(layer.inputs, layer.size), w};
  problem.outputs = {image(layer.outputs, layer.size)};
  const Tactic& tactic = layer.by_channel ? depthwise_tactic() : conv_tactic();
  const Matched match = tactic.match(problem);
  EXPECT_TRUE(match.has_value());
  return match ? (*match)->configs() : std::vector<Config>();
}

double best_us(const Layer& layer, std::string_view target, int cores) {
  const std::vector<Config> configs = configs_for(layer, target, cores);
  return configs.empty() ? 0 : configs.front().predicted_us;
}

bool is_winograd(const Config& config) { return config.text.starts_with("winograd"); }

TEST(Predictions, AreOfTheWorkThatEachConfigurationDoes) {
  for (const std::string_view name : kTargets)
    for (const Layer& layer : {Layer{64, 64, 3, 56}, Layer{256, 100, 1, 14}, Layer{144, 144, 5, 28, true}})
      for (const int cores : {1, 4}) {
        const Target target = describe(*find_processor(name), cores);
        const double at_peak = layer.products() / (target.products.f32 * target.clock_mhz * cores);
        const std::vector<Config> configs = configs_for(layer, name, cores);
        ASSERT_GT(configs.size(), 1u);
        EXPECT_TRUE(std::is_sorted(configs.begin(), configs.end(),
                                   [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; }));
        for (const Config& config : configs) {
          EXPECT_LT(config.predicted_us, 60 * at_peak + 20) << name << " " << config.text;
          const double least = is_winograd(config) ? 0 : at_peak;
          EXPECT_GT(config.predicted_us, least) << name << " " << config.text;
        }
      }
}

TEST(Predictions, KnowThatWinogradMultipliesLess) {
  for (const std::string_view target : kTargets) {
    const std::vector<Config> large = configs_for({64, 64, 3, 56}, target, 1);
    ASSERT_FALSE(large.empty());
    EXPECT_TRUE(large.front().text.starts_with("winograd4")) << target << " " << large.front().text;
    // A tile is larger than the image, and its transforms are work for few channels.
    const std::vector<Config> small = configs_for({8, 8, 3, 3}, target, 1);
    ASSERT_FALSE(small.empty());
    EXPECT_FALSE(is_winograd(small.front())) << target << " " << small.front().text;
  }
}

TEST(Predictions, GrowWithTheWorkAndShrinkWithTheCores) {
  for (const std::string_view target : kTargets) {
    const double once = best_us({128, 128, 1, 28}, target, 1), twice = best_us({256, 128, 1, 28}, target, 1);
    EXPECT_GT(twice, 1.5 * once) << target;
    EXPECT_LT(twice, 2.5 * once) << target;
    EXPECT_LT(best_us({128, 128, 1, 28}, target, 4), 0.5 * once) << target;
  }
}

// Columns are computed in whole vectors: of 17, a tile of AVX-512 computes 32.
TEST(Predictions, CountPaddingOfTiles) {
  for (const std::string_view target : kTargets)
    EXPECT_LT(best_us({256, 16, 1, 56}, target, 1), 0.9 * best_us({256, 20, 1, 56}, target, 1)) << target;
}

}  // namespace
}  // namespace lathe::cpu
