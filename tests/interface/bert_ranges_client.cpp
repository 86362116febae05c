// SPDX-License-Identifier: Apache-2.0
// A program for generation 10 that has a layer of BERT in 8 bits, as NVIDIA's demonstration writes it: convolutions of
// 1 x 1 between plugins of 8 bits, packed sequences, and ranges of tensors. Prints how many layers multiply integers,
// and how far the answer is from sums in doubles.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "NvInfer.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace nvinfer1;

namespace {

constexpr int kHeads = 2, kHead = 8, kSize = kHeads * kHead, kTokens = 9;
constexpr int32_t kStarts[] = {0, 4, 4, 9};
using Floats = std::vector<float>;
using Rows = std::vector<double>;  // [size, tokens]

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kERROR) std::printf("error: %s\n", text);
    if (std::strstr(text, "multiply integers")) std::printf("info: %s\n", text);
  }
};

Floats values(size_t count, uint32_t seed, float deviation, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, deviation);
  Floats result(count);
  for (float& value : result) value = normal(random);
  return result;
}

struct Weights8 {
  Floats qkv = values(3 * kSize * kSize, 1, 0.25F), out = values(kSize * kSize, 2, 0.25F);
  Floats gamma = values(kSize, 3, 0.1F, 1), beta = values(kSize, 4, 0.1F), x = values(kSize * kTokens, 5, 1);
  Floats zeros = Floats(3 * kSize);
};

Rows product(const Floats& weights, const Rows& x) {
  const size_t rows = weights.size() / kSize;
  Rows y(rows * kTokens);
  for (size_t m = 0; m < rows; ++m)
    for (size_t k = 0; k < kSize; ++k)
      for (size_t t = 0; t < kTokens; ++t) y[m * kTokens + t] += weights[m * kSize + k] * x[k * kTokens + t];
  return y;
}

Rows attended(const Rows& qkv) {
  Rows y(kSize * kTokens);
  const auto at = [&](int part, int head, int d, int t) {
    return qkv[static_cast<size_t>(((part * kHeads + head) * kHead + d) * kTokens + t)];
  };
  for (size_t s = 0; s + 1 < std::size(kStarts); ++s)
    for (int head = 0; head < kHeads; ++head)
      for (int i = kStarts[s]; i < kStarts[s + 1]; ++i) {
        double total = 0;
        for (int j = kStarts[s]; j < kStarts[s + 1]; ++j) {
          double score = 0;
          for (int d = 0; d < kHead; ++d) score += at(0, head, d, i) * at(1, head, d, j);
          const double weight = std::exp(score / std::sqrt(kHead));
          total += weight;
          for (int d = 0; d < kHead; ++d)
            y[static_cast<size_t>((head * kHead + d) * kTokens + i)] += weight * at(2, head, d, j);
        }
        for (int d = 0; d < kHead; ++d) y[static_cast<size_t>((head * kHead + d) * kTokens + i)] /= total;
      }
  return y;
}

Rows reference(const Weights8& w) {
  const Rows x(w.x.begin(), w.x.end());
  Rows y = product(w.out, attended(product(w.qkv, x)));
  for (size_t t = 0; t < kTokens; ++t) {
    double mean = 0, square = 0;
    for (size_t e = 0; e < kSize; ++e) mean += (y[e * kTokens + t] += x[e * kTokens + t]) / kSize;
    for (size_t e = 0; e < kSize; ++e) square += std::pow(y[e * kTokens + t] - mean, 2) / kSize;
    for (size_t e = 0; e < kSize; ++e)
      y[e * kTokens + t] = (y[e * kTokens + t] - mean) / std::sqrt(square) * w.gamma[e] + w.beta[e];
  }
  return y;
}

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

IPluginV2* make(const char* name, const char* version, std::vector<PluginField> fields) {
  const PluginFieldCollection all{static_cast<int32_t>(fields.size()), fields.data()};
  auto* creator = static_cast<IPluginCreator*>(getPluginRegistry()->getCreator(name, version, ""));
  return creator ? creator->createPlugin("plugin", &all) : nullptr;
}

// Versions of the two plugins: 3, or 4 for the second, which has the sum as its second output.
std::unique_ptr<IHostMemory> build(IBuilder& builder, const Weights8& w, const char* normalization) {
  auto network = own(builder.createNetworkV2(0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4{1, kSize, kTokens, 1});
  ITensor* starts = network->addInput("starts", DataType::kINT32, Dims{1, {std::size(kStarts)}});
  ITensor* longest = network->addInput("longest", DataType::kINT32, Dims{1, {5}});
  const auto convolve = [&](ITensor& input, const Floats& weights) {
    const auto rows = static_cast<int64_t>(weights.size() / kSize);
    return network
        ->addConvolutionNd(input, rows, DimsHW{1, 1},
                           Weights{DataType::kFLOAT, weights.data(), static_cast<int64_t>(weights.size())},
                           Weights{DataType::kFLOAT, w.zeros.data(), rows})
        ->getOutput(0);
  };
  const auto add = [&](std::vector<ITensor*> inputs, IPluginV2* plugin) {
    ILayer* layer = network->addPluginV2(inputs.data(), static_cast<int32_t>(inputs.size()), *plugin);
    plugin->destroy();
    return layer;
  };
  const int32_t size = kSize, heads = kHeads;
  const float probabilities = 1.0F / 127;
  const std::vector<PluginField> attention = {{"hidden_size", &size, PluginFieldType::kINT32, 1},
                                              {"num_heads", &heads, PluginFieldType::kINT32, 1},
                                              {"dq_probs", &probabilities, PluginFieldType::kFLOAT32, 1}};
  const std::vector<PluginField> parameters = {{"beta", w.beta.data(), PluginFieldType::kFLOAT32, kSize},
                                               {"gamma", w.gamma.data(), PluginFieldType::kFLOAT32, kSize}};
  ITensor* qkv = convolve(*x, w.qkv);
  ITensor* context = add({qkv, starts, longest}, make("CustomQKVToContextPluginDynamic", "3", attention))->getOutput(0);
  ITensor* out = convolve(*context, w.out);
  ILayer* last = add({out, x}, make("CustomSkipLayerNormPluginDynamic", normalization, parameters));
  ITensor* y = last->getOutput(0);
  for (const auto& [tensor, range] : {std::pair(x, 4.0F), {qkv, 4.0F}, {context, 4.0F}, {out, 4.0F}, {y, 4.0F}})
    tensor->setDynamicRange(-range, range);
  if (last->getNbOutputs() > 1) last->getOutput(1)->setDynamicRange(-6, 6);
  y->setName("y");
  network->markOutput(*y);
  auto config = own(builder.createBuilderConfig());
  config->setFlag(BuilderFlag::kINT8);
  config->setBuilderOptimizationLevel(0);
  return own(builder.buildSerializedNetwork(*network, *config));
}

double error_of(IHostMemory& plan, Logger& logger, Weights8& w) {
  auto runtime = own(createInferRuntime(logger));
  auto engine = own(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  auto context = own(engine->createExecutionContext());
  Floats y(kSize * kTokens);
  int32_t starts[std::size(kStarts)], longest[5] = {};
  std::copy(std::begin(kStarts), std::end(kStarts), starts);
  context->setTensorAddress("x", w.x.data());
  context->setTensorAddress("starts", starts);
  context->setTensorAddress("longest", longest);
  context->setTensorAddress("y", y.data());
  if (!context->enqueueV3(nullptr)) return INFINITY;
  const Rows wanted = reference(w);
  double difference = 0, square = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    difference += std::pow(y[i] - wanted[i], 2);
    square += std::pow(wanted[i], 2);
  }
  return std::sqrt(difference / square);
}

}  // namespace

int main() {
  Logger logger;
  Weights8 weights;
  auto builder = own(createInferBuilder(logger));
  if (!builder) return 1;
  for (const char* version : {"3", "4"}) {
    auto plan = build(*builder, weights, version);
    const double error = plan ? error_of(*plan, logger, weights) : INFINITY;
    std::printf("version %s: %s\n", version, error == 0 ? "the same" : error < 0.03 ? "near" : "far");
  }
  return 0;
}
