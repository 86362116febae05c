// SPDX-License-Identifier: Apache-2.0
// An engine as a framework keeps one: made of a model once, stored as a record, and made of the record from then on.
//   engine_wrapper digits.onnx digit.txt digits.record
// Prints the digit of the image in the text file (8 lines of 8 numbers from 0 to 16), and what the record holds.
#include "lathe_wrapper.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "NvOnnxParser.h"
#include "lathe.h"
#include "logger.h"

namespace {

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

// For a CPU: the image is in the host's memory.
std::string build(const char* model, nvinfer1::ILogger& logger) {
  const auto builder = own(nvinfer1::createInferBuilder(logger));
  const auto network = own(builder->createNetworkV2(0));
  const auto parser = own(nvonnxparser::createParser(*network, logger));
  const auto config = own(builder->createBuilderConfig());
  if (!parser->parseFromFile(model, static_cast<int>(nvinfer1::ILogger::Severity::kWARNING))) return {};
  nvinfer1::ITensor* const input = network->getInput(0);
  nvinfer1::Dims dims = input->getDimensions();
  nvinfer1::IOptimizationProfile* const profile = builder->createOptimizationProfile();
  for (const auto& [select, batch] :
       {std::pair(nvinfer1::OptProfileSelector::kMIN, 1), std::pair(nvinfer1::OptProfileSelector::kOPT, 1),
        std::pair(nvinfer1::OptProfileSelector::kMAX, 8)}) {
    dims.d[0] = batch;
    if (!profile->setDimensions(input->getName(), select, dims)) return {};
  }
  if (config->addOptimizationProfile(profile) < 0 || !lathe::setTarget(*config, "cpu")) return {};
  const auto plan = own(builder->buildSerializedNetwork(*network, *config));
  return plan ? std::string(static_cast<const char*>(plan->data()), plan->size()) : std::string();
}

// Strings of any content: each with its bytes before it.
lathe::EngineRecord read_record(const char* path) {
  lathe::EngineRecord record;
  std::ifstream file(path, std::ios::binary);
  for (size_t bytes; file >> bytes && file.get() == '\n';) {
    record.emplace_back(bytes, '\0');
    file.read(record.back().data(), static_cast<std::streamsize>(bytes));
  }
  return record;
}

void write_record(const char* path, const lathe::EngineRecord& record) {
  std::ofstream file(path, std::ios::binary);
  for (const std::string& slot : record) file << slot.size() << '\n' << slot;
}

std::unique_ptr<lathe::EngineWrapper> make(const char* model, std::shared_ptr<nvinfer1::IRuntime> runtime,
                                           nvinfer1::ILogger& logger) {
  lathe::EngineFields fields;
  fields.name = "examples.digits";
  fields.target.kind = lathe::EngineTarget::Kind::kCPU;
  fields.inputs = {"image"};
  fields.outputs = {"probabilities"};
  lathe::RuntimeSettings settings;
  settings.specialization = "none";
  if (!lathe::checkRuntimeSettings(settings)) return nullptr;  // before the build, which takes time
  return lathe::EngineWrapper::create(std::move(runtime), build(model, logger), fields, settings);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s MODEL.onnx IMAGE.txt RECORD\n", argv[0]);
    return 2;
  }
  Logger logger;
  const std::shared_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
  lathe::EngineRecord record = read_record(argv[3]);
  const bool is_stored = !record.empty();
  const auto engine = is_stored ? lathe::EngineWrapper::create(runtime, record) : make(argv[1], runtime, logger);
  if (!engine || !engine->record(record)) {
    std::fprintf(stderr, "%s\n", lathe::wrapperError());
    return 1;
  }
  if (!is_stored) write_record(argv[3], record);

  std::vector<float> image;
  std::ifstream numbers(argv[2]);
  for (float ink; numbers >> ink;) image.push_back(ink / 16);
  if (image.size() != 64) return 1;
  const lathe::InputTensor input{"image", image.data(), nvinfer1::DataType::kFLOAT, nvinfer1::Dims4(1, 1, 8, 8),
                                 nvinfer1::TensorLocation::kHOST};
  std::vector<lathe::OutputTensor> outputs;  // all of them, in memory of their own
  if (!engine->run({input}, outputs)) {
    std::fprintf(stderr, "%s\n", lathe::wrapperError());
    return 1;
  }
  const auto* const first = static_cast<const float*>(outputs[0].data);
  std::printf("%s: digit: %d\n", is_stored ? "from the record" : "from the model",
              static_cast<int>(std::max_element(first, first + outputs[0].dims.d[1]) - first));
  std::string text;
  if (lathe::describeRecord(record, text)) std::printf("%s", text.c_str());
  return 0;
}
