// SPDX-License-Identifier: Apache-2.0
// 8-bit inputs and outputs in a vectorised format, so that nothing is converted or reordered at the engine's border.
//   int8_formats
// builds a quantised convolution twice: with plain rows, and with inputs in groups of 4 channels and outputs in groups
// of 32. Both give the same levels.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "NvInfer.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

constexpr int64_t kIn = 3, kOut = 40, kSide = 8, kPixels = kSide * kSide;

struct Parameters {
  std::vector<float> kernel = std::vector<float>(static_cast<size_t>(kOut * kIn * 9));
  float pixel = 1 / 128.F, weight = 1 / 64.F, result = 1 / 16.F;  // one level of each is worth this
  Parameters() {
    for (size_t i = 0; i < kernel.size(); ++i) kernel[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11) / 16;
  }
};

// Levels of x become numbers, are convolved with quantised weights, and become levels of y. The builder makes one
// convolution of 8-bit integers of it.
std::unique_ptr<IHostMemory> build(IBuilder& builder, const Parameters& of, TensorFormat input, TensorFormat output) {
  std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(0));
  const auto number = [&](const float& value) {
    return network->addConstant(Dims{0, {}}, {DataType::kFLOAT, &value, 1})->getOutput(0);
  };
  const auto dequantize = [&](ITensor& levels, const float& scale) {
    return network->addDequantize(levels, *number(scale), DataType::kFLOAT)->getOutput(0);
  };
  ITensor* x = network->addInput("x", DataType::kINT8, Dims4(1, kIn, kSide, kSide));
  ITensor* kernel = network
                        ->addConstant(Dims4(kOut, kIn, 3, 3),
                                      {DataType::kFLOAT, of.kernel.data(), static_cast<int64_t>(of.kernel.size())})
                        ->getOutput(0);
  ITensor* levels = network->addQuantize(*kernel, *number(of.weight), DataType::kINT8)->getOutput(0);
  IConvolutionLayer* convolution =
      network->addConvolutionNd(*dequantize(*x, of.pixel), kOut, Dims2(3, 3), Weights{DataType::kFLOAT, nullptr, 0},
                                Weights{DataType::kFLOAT, nullptr, 0});
  convolution->setInput(1, *dequantize(*levels, of.weight));
  convolution->setPaddingNd(Dims2(1, 1));
  ITensor* y = network->addQuantize(*convolution->getOutput(0), *number(of.result), DataType::kINT8)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  x->setAllowedFormats(1U << static_cast<uint32_t>(input));
  y->setAllowedFormats(1U << static_cast<uint32_t>(output));
  std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
  return std::unique_ptr<IHostMemory>(builder.buildSerializedNetwork(*network, *config));
}

// Where a channel of a pixel lies when channels are in groups of so many: the groups one behind another, each of all
// pixels.
size_t place(int64_t channel, int64_t pixel, int64_t group) {
  return static_cast<size_t>((channel / group * kPixels + pixel) * group + channel % group);
}

size_t bytes_of(int64_t channels, int64_t group) {
  return static_cast<size_t>((channels + group - 1) / group * group * kPixels);
}

// The levels of y, with groups of one channel, when input and output have groups of so many.
std::vector<int8_t> run(const IHostMemory* plan, ILogger& logger, int64_t in_group, int64_t out_group) {
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
  if (!engine) return {};
  std::printf("x: %s\ny: %s\n", engine->getTensorFormatDesc("x"), engine->getTensorFormatDesc("y"));
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  std::vector<int8_t> x(bytes_of(kIn, in_group)), y(bytes_of(kOut, out_group)), levels;
  for (int64_t channel = 0; channel < kIn; ++channel)
    for (int64_t pixel = 0; pixel < kPixels; ++pixel)
      x[place(channel, pixel, in_group)] = static_cast<int8_t>((channel * 50 + pixel * 13) % 255 - 127);
  if (!context->setTensorAddress("x", x.data()) || !context->setTensorAddress("y", y.data()) ||
      !context->enqueueV3(nullptr))
    return {};
  for (int64_t channel = 0; channel < kOut; ++channel)
    for (int64_t pixel = 0; pixel < kPixels; ++pixel) levels.push_back(y[place(channel, pixel, out_group)]);
  return levels;
}

}  // namespace

int main() {
  Logger logger;
  const Parameters parameters;
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  const auto rows = build(*builder, parameters, TensorFormat::kLINEAR, TensorFormat::kLINEAR);
  const auto groups = build(*builder, parameters, TensorFormat::kCHW4, TensorFormat::kCHW32);
  const std::vector<int8_t> wanted = run(rows.get(), logger, 1, 1), given = run(groups.get(), logger, 4, 32);
  if (wanted.empty() || given != wanted) return 1;
  const auto [least, most] = std::minmax_element(wanted.begin(), wanted.end());
  std::printf("the same %zu levels from %d to %d\n", wanted.size(), *least, *most);
  return 0;
}
