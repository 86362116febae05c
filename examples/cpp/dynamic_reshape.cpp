// SPDX-License-Identifier: Apache-2.0
// Images of any size for a network of one size: a small engine made with the network API resizes, and its result stays
// where the engine of the model reads it.
//   dynamic_reshape digits.onnx image.txt [ROWSxCOLUMNS]
// draws the image in the text file (8 lines of 8 numbers from 0 to 16) with so many pixels, and classifies that.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

constexpr int64_t kSide = 8, kLargest = 256;

struct Image {
  int64_t rows = 0, columns = 0;
  std::vector<float> pixels;
};

std::unique_ptr<ICudaEngine> load(const IHostMemory* plan, IRuntime& runtime) {
  return std::unique_ptr<ICudaEngine>(plan ? runtime.deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
}

// From f32[1, 1, rows, columns] to f32[1, 1, 8, 8].
std::unique_ptr<ICudaEngine> build_resize(IBuilder& builder, IRuntime& runtime) {
  std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(0));
  ITensor* image = network->addInput("image", DataType::kFLOAT, Dims4(1, 1, -1, -1));
  IResizeLayer* resize = network->addResize(*image);
  resize->setOutputDimensions(Dims4(1, 1, kSide, kSide));
  resize->setResizeMode(InterpolationMode::kLINEAR);
  resize->setCoordinateTransformation(ResizeCoordinateTransformation::kHALF_PIXEL);
  resize->getOutput(0)->setName("resized");
  network->markOutput(*resize->getOutput(0));

  // The engine takes any size from kMIN to kMAX, and is fastest at kOPT.
  std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  profile->setDimensions("image", OptProfileSelector::kMIN, Dims4(1, 1, 1, 1));
  profile->setDimensions("image", OptProfileSelector::kOPT, Dims4(1, 1, 28, 28));
  profile->setDimensions("image", OptProfileSelector::kMAX, Dims4(1, 1, kLargest, kLargest));
  config->addOptimizationProfile(profile);
  return load(std::unique_ptr<IHostMemory>(builder.buildSerializedNetwork(*network, *config)).get(), runtime);
}

std::unique_ptr<ICudaEngine> build_model(const char* model, IBuilder& builder, IRuntime& runtime, ILogger& logger) {
  std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  if (!parser->parseFromFile(model, static_cast<int>(ILogger::Severity::kWARNING))) return nullptr;
  std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    profile->setDimensions("image", select, Dims4(1, 1, kSide, kSide));
  config->addOptimizationProfile(profile);
  return load(std::unique_ptr<IHostMemory>(builder.buildSerializedNetwork(*network, *config)).get(), runtime);
}

// Each pixel is that of the drawing which lies there.
Image draw(const std::vector<float>& drawing, int64_t rows, int64_t columns) {
  Image image{rows, columns, {}};
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < columns; ++x)
      image.pixels.push_back(drawing[static_cast<size_t>(y * kSide / rows * kSide + x * kSide / columns)]);
  return image;
}

// The likeliest digit, or -1.
int classify(const Image& image, ICudaEngine& resize, ICudaEngine& model) {
  std::unique_ptr<IExecutionContext> first(resize.createExecutionContext()), second(model.createExecutionContext());
  std::vector<float> resized(kSide * kSide), probabilities(10);
  if (!first->setInputShape("image", Dims4(1, 1, image.rows, image.columns))) return -1;
  first->setInputTensorAddress("image", image.pixels.data());
  first->setTensorAddress("resized", resized.data());
  second->setInputShape("image", Dims4(1, 1, kSide, kSide));
  second->setInputTensorAddress("image", resized.data());
  second->setTensorAddress("probabilities", probabilities.data());
  if (!first->enqueueV3(nullptr) || !second->enqueueV3(nullptr)) return -1;
  return static_cast<int>(std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
}

}  // namespace

int main(int argc, char** argv) {
  long rows = 28, columns = 28;
  if (argc < 3 || (argc > 3 && std::sscanf(argv[3], "%ldx%ld", &rows, &columns) != 2) || rows < 1 || columns < 1) {
    std::fprintf(stderr, "usage: %s MODEL.onnx IMAGE.txt [ROWSxCOLUMNS]\n", argv[0]);
    return 2;
  }
  std::vector<float> drawing;
  std::ifstream numbers(argv[2]);
  for (float ink; numbers >> ink;) drawing.push_back(ink / 16);
  if (drawing.size() != kSide * kSide) {
    std::fprintf(stderr, "%s: 64 numbers are needed, found %zu\n", argv[2], drawing.size());
    return 1;
  }
  Logger logger;
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  const std::unique_ptr<ICudaEngine> resize = build_resize(*builder, *runtime);
  const std::unique_ptr<ICudaEngine> model = build_model(argv[1], *builder, *runtime, logger);
  if (!resize || !model) return 1;
  const int digit = classify(draw(drawing, rows, columns), *resize, *model);
  if (digit < 0) return 1;
  std::printf("%ldx%ld pixels, digit: %d\n", rows, columns, digit);
  return 0;
}
