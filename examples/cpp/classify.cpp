// SPDX-License-Identifier: Apache-2.0
// From an ONNX file to an answer, with the public headers only:
//   classify digits.onnx digit.txt [plan file]
// builds a plan for the model, writes it, reads it back, runs it on the image in the text file (8 lines of 8 numbers
// from 0 to 16) and prints how likely each digit is.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "logger.h"

namespace {

// The model's input has a dynamic batch: one image at a time will do.
bool add_profile(nvinfer1::IBuilder& builder, const nvinfer1::INetworkDefinition& network,
                 nvinfer1::IBuilderConfig& config) {
  const nvinfer1::ITensor* input = network.getInput(0);
  nvinfer1::Dims dims = input->getDimensions();
  dims.d[0] = 1;
  nvinfer1::IOptimizationProfile* profile = builder.createOptimizationProfile();
  for (const auto select :
       {nvinfer1::OptProfileSelector::kMIN, nvinfer1::OptProfileSelector::kOPT, nvinfer1::OptProfileSelector::kMAX})
    if (!profile->setDimensions(input->getName(), select, dims)) return false;
  return config.addOptimizationProfile(profile) >= 0;
}

std::unique_ptr<nvinfer1::IHostMemory> build(const char* model, nvinfer1::ILogger& logger) {
  std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  if (!builder) return nullptr;
  std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  if (!parser->parseFromFile(model, static_cast<int>(nvinfer1::ILogger::Severity::kWARNING))) return nullptr;
  std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  if (!add_profile(*builder, *network, *config)) return nullptr;
  return std::unique_ptr<nvinfer1::IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

bool run(const std::vector<char>& plan, std::vector<float>& image, nvinfer1::ILogger& logger) {
  std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
  std::unique_ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  if (!engine) return false;
  std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
  const char* input = engine->getIOTensorName(0);
  const char* output = engine->getIOTensorName(1);
  nvinfer1::Dims dims = engine->getTensorShape(input);
  dims.d[0] = 1;
  if (!context->setInputShape(input, dims)) return false;
  std::vector<float> probabilities(static_cast<size_t>(context->getTensorShape(output).d[1]));
  context->setInputTensorAddress(input, image.data());
  context->setTensorAddress(output, probabilities.data());
  if (!context->enqueueV3(nullptr)) return false;  // a CPU engine is done when this returns

  size_t best = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    std::printf("%zu: %.4f\n", i, static_cast<double>(probabilities[i]));
    if (probabilities[i] > probabilities[best]) best = i;
  }
  std::printf("digit: %zu\n", best);
  return true;
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx IMAGE.txt [PLAN]\n", argv[0]);
    return 2;
  }
  const std::string plan_path = argc > 3 ? argv[3] : "digits.plan";
  Logger logger;

  const std::unique_ptr<nvinfer1::IHostMemory> plan = build(argv[1], logger);
  if (!plan) return 1;
  std::ofstream(plan_path, std::ios::binary)
      .write(static_cast<const char*>(plan->data()), static_cast<std::streamsize>(plan->size()));

  std::vector<float> image;
  std::ifstream numbers(argv[2]);
  for (float ink; numbers >> ink;) image.push_back(ink / 16);
  if (image.size() != 64) {
    std::fprintf(stderr, "%s: 64 numbers are needed, found %zu\n", argv[2], image.size());
    return 1;
  }
  return run(read_file(plan_path), image, logger) ? 0 : 1;
}
