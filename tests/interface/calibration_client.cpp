// SPDX-License-Identifier: Apache-2.0
// A program for generation 10 that has a float network quantised by calibrators and by ranges of its own. Prints, for
// each build, how many layers multiply integers and how far the answer is from that of floats, and the log's warnings
// and errors; generations_cli_test.py knows what they should be. `calibration_client device` calibrates once, with
// batches in memory of the GPU that LATHE_CUDA_DRIVER has, and prints the cache.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "NvInfer.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace nvinfer1;

namespace {

constexpr int kBatch = 2, kChannels = 8, kPixels = 64, kBatches = 4;
constexpr int kElements = kBatch * kChannels * kPixels;

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity == Severity::kWARNING) std::printf("warning: %s\n", text);
    if (severity <= Severity::kERROR) std::printf("error: %s\n", text);
    if (std::strstr(text, "multiply integers")) std::printf("info: %s\n", text);
  }
};

std::vector<float> values(size_t count, uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> result(count);
  for (float& value : result) value = normal(random);
  return result;
}

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

struct World {
  std::unique_ptr<IBuilder> builder;
  std::vector<float> weights[2] = {values(kChannels * kChannels * 9, 1, 0.1f), values(kChannels* kChannels, 2, 0.3f)};
};

// A convolution, a rectifier and a convolution.
std::unique_ptr<INetworkDefinition> make_network(World& world, bool dynamic) {
  auto network = own(world.builder->createNetworkV2(0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4{dynamic ? -1 : kBatch, kChannels, 8, 8});
  const auto convolve = [&](ITensor& input, const std::vector<float>& weights, DimsHW kernel) {
    auto* layer = network->addConvolutionNd(
        input, kChannels, kernel, {DataType::kFLOAT, weights.data(), static_cast<int64_t>(weights.size())}, {});
    layer->setPaddingNd(DimsHW{kernel.h() / 2, kernel.w() / 2});
    return layer->getOutput(0);
  };
  ITensor* hidden =
      network->addActivation(*convolve(*x, world.weights[0], {3, 3}), ActivationType::kRELU)->getOutput(0);
  hidden->setName("hidden");
  ITensor* y = convolve(*hidden, world.weights[1], {1, 1});
  y->setName("y");
  network->markOutput(*y);
  return network;
}

// A block of the first GPU's memory.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : driver_(dlopen(std::getenv("LATHE_CUDA_DRIVER"), RTLD_NOW)) {
    int device = 0;
    void* context = nullptr;
    call<int(unsigned)>("cuInit")(0);
    call<int(int*, int)>("cuDeviceGet")(&device, 0);
    call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
    call<int(void*)>("cuCtxPushCurrent_v2")(context);
    call<int(unsigned long long*, size_t)>("cuMemAlloc_v2")(&address_, bytes);
  }
  void copy(const std::vector<float>& from) {
    call<int(unsigned long long, const void*, size_t, void*)>("cuMemcpyHtoDAsync_v2")(
        address_, from.data(), from.size() * sizeof(float), nullptr);
    call<int(void*)>("cuStreamSynchronize")(nullptr);
  }
  void* address() const { return reinterpret_cast<void*>(address_); }

 private:
  template <class Function>
  Function* call(const char* name) {
    return reinterpret_cast<Function*>(dlsym(driver_, name));
  }
  void* driver_;
  unsigned long long address_ = 0;
};

// What all calibrators of this program have in common.
template <class Base>
class Calibrator : public Base {
 public:
  int32_t getBatchSize() const noexcept override { return kBatch; }
  bool getBatch(void* bindings[], const char* names[], int32_t count) noexcept override {
    ++asked;
    if (count != 1 || std::strcmp(names[0], "x") != 0 || asked > batches) return false;
    batch = values(kElements, static_cast<uint32_t>(10 + asked), deviation);
    bindings[0] = gives_address ? batch.data() : nullptr;
    if (device) {
      device->copy(batch);
      bindings[0] = device->address();
    }
    return true;
  }
  const void* readCalibrationCache(std::size_t& length) noexcept override {
    length = cache.size();
    return cache.empty() ? nullptr : cache.data();
  }
  void writeCalibrationCache(const void* text, std::size_t length) noexcept override {
    cache.assign(static_cast<const char*>(text), length);
    ++written;
  }

  int asked = 0, written = 0, batches = kBatches;
  bool gives_address = true;
  DeviceMemory* device = nullptr;  // where batches are given; null = memory of the host
  float deviation = 1;
  std::string cache;
  std::vector<float> batch;
};
using Entropy = Calibrator<IInt8EntropyCalibrator2>;
using EntropyOfOld = Calibrator<IInt8EntropyCalibrator>;
using MinMax = Calibrator<IInt8MinMaxCalibrator>;

class Legacy final : public Calibrator<IInt8LegacyCalibrator> {
 public:
  double getQuantile() const noexcept override { return quantile; }
  double getRegressionCutoff() const noexcept override { return 1; }
  const void* readHistogramCache(std::size_t& length) noexcept override {
    length = histograms.size();
    return histograms.empty() ? nullptr : histograms.data();
  }
  void writeHistogramCache(const void* text, std::size_t length) noexcept override {
    histograms.assign(static_cast<const char*>(text), length);
  }
  double quantile = 0.999;
  std::string histograms;
};

std::vector<float> run(IHostMemory& plan, Logger& logger) {
  auto runtime = own(createInferRuntime(logger));
  auto engine = own(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  auto context = own(engine->createExecutionContext());
  std::vector<float> x = values(kElements, 5), y(kElements);
  context->setInputShape("x", Dims4{kBatch, kChannels, 8, 8});
  context->setTensorAddress("x", x.data());
  context->setTensorAddress("y", y.data());
  return context->enqueueV3(nullptr) ? y : std::vector<float>();
}

struct Options {
  IInt8Calibrator* calibrator = nullptr;
  bool int8 = true, dynamic = false, ranges = false, refit = false, own_profile = false;
};

IOptimizationProfile* make_profile(IBuilder& builder, int32_t optimum) {
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  profile->setDimensions("x", OptProfileSelector::kMIN, Dims4{1, kChannels, 8, 8});
  profile->setDimensions("x", OptProfileSelector::kOPT, Dims4{optimum, kChannels, 8, 8});
  profile->setDimensions("x", OptProfileSelector::kMAX, Dims4{16, kChannels, 8, 8});
  return profile;
}

std::unique_ptr<IHostMemory> build(World& world, const Options& options) {
  auto network = make_network(world, options.dynamic);
  auto config = own(world.builder->createBuilderConfig());
  if (options.int8) config->setFlag(BuilderFlag::kINT8);
  if (options.refit) config->setFlag(BuilderFlag::kREFIT);
  config->setInt8Calibrator(options.calibrator);
  config->setBuilderOptimizationLevel(0);
  if (options.dynamic) config->addOptimizationProfile(make_profile(*world.builder, options.own_profile ? 7 : kBatch));
  if (options.own_profile) config->setCalibrationProfile(make_profile(*world.builder, kBatch));
  if (options.ranges) {
    network->getInput(0)->setDynamicRange(-4, 3);
    network->getLayer(1)->getOutput(0)->setDynamicRange(0, 4);
  }
  return own(world.builder->buildSerializedNetwork(*network, *config));
}

void report(World& world, Logger& logger, const char* what, const Options& options, const std::vector<float>& floats) {
  auto plan = build(world, options);
  if (!plan) {
    std::printf("%s: refused\n", what);
    return;
  }
  const std::vector<float> y = run(*plan, logger);
  double largest = 0, difference = 0;
  for (size_t i = 0; i < floats.size() && i < y.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::fabs(floats[i])));
    difference = std::max(difference, static_cast<double>(std::fabs(floats[i] - y[i])));
  }
  const double part = difference / largest;
  std::printf("%s: %s\n", what, y.empty() ? "fails" : part == 0 ? "the same" : part < 0.05 ? "near" : "far");
}

}  // namespace

int main(int argc, char** argv) {
  Logger logger;
  World world{own(createInferBuilder(logger))};
  if (!world.builder) return 1;
  if (argc > 1 && std::strcmp(argv[1], "device") == 0) {
    DeviceMemory memory(kElements * sizeof(float));
    Entropy calibrator;
    calibrator.device = &memory;
    auto plan = build(world, {&calibrator});
    std::printf("%s%d batches, plan: %s\n", calibrator.cache.c_str(), calibrator.asked - 1, plan ? "yes" : "no");
    return 0;
  }
  auto plain = build(world, {nullptr, false});
  if (!plain) return 1;
  const std::vector<float> floats = run(*plain, logger);

  Entropy entropy;
  report(world, logger, "entropy", {&entropy}, floats);
  std::printf("%s%d batches, %d written\n", entropy.cache.c_str(), entropy.asked - 1, entropy.written);
  report(world, logger, "entropy from the cache", {&entropy}, floats);
  std::printf("%d batches, %d written\n", entropy.asked - 1, entropy.written);
  Entropy dynamic, own_profile;
  report(world, logger, "dynamic sizes", {&dynamic, true, true}, floats);
  report(world, logger, "a profile of its own", {&own_profile, true, true, false, false, true}, floats);
  std::printf("caches agree: %s\n",
              dynamic.cache == entropy.cache && own_profile.cache == entropy.cache ? "yes" : "no");
  EntropyOfOld old;
  report(world, logger, "entropy of old", {&old}, floats);
  MinMax extremes;
  report(world, logger, "extremes", {&extremes}, floats);
  Legacy legacy;
  report(world, logger, "quantile", {&legacy}, floats);
  legacy.cache.clear();
  legacy.quantile = 0.5;
  report(world, logger, "half of the values", {&legacy}, floats);
  std::printf("%d batches in all\n", legacy.asked - 1);
  report(world, logger, "ranges", {nullptr, true, false, true}, floats);
  Entropy not_asked;
  report(world, logger, "ranges and a calibrator", {&not_asked, true, false, true}, floats);
  std::printf("asked %d times\n", not_asked.asked);

  report(world, logger, "without the flag", {&entropy, false}, floats);
  report(world, logger, "weights that can be replaced", {&entropy, true, false, false, true}, floats);
  extremes.cache = entropy.cache;
  extremes.asked = 0;
  report(world, logger, "a cache of another method", {&extremes}, floats);
  Entropy none, no_address, wrong_cache, infinite;
  none.batches = 0;
  report(world, logger, "no batch", {&none}, floats);
  no_address.gives_address = false;
  report(world, logger, "no address", {&no_address}, floats);
  wrong_cache.cache = "TRT-101600-EntropyCalibration2\nx: zero\n";
  report(world, logger, "a wrong cache", {&wrong_cache}, floats);
  infinite.deviation = INFINITY;
  report(world, logger, "infinite values", {&infinite}, floats);
  Legacy beyond;
  beyond.quantile = 2;
  report(world, logger, "a quantile of 2", {&beyond}, floats);
  return 0;
}
