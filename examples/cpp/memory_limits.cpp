// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU within limits, in three layers.
//   memory_limits model.onnx MEBIBYTES [LEVEL]
// with the builder's optimization level, which says how long it measures: 0 to 5.
// 1. The builder takes no kernel that needs more workspace than a quarter of the limit.
// 2. An allocator gives the library no more than the limit, and writes each refusal as a line of JSON.
// 3. What goes past both, device code and the driver's own memory, is the partition's: start the program with
//    CUDA_VISIBLE_DEVICES=MIG-... for a slice of a GPU.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

// Memory of the driver, which is the file that LATHE_CUDA_DRIVER names, or the system's.
struct Driver {
  Driver() {
    const char* path = std::getenv("LATHE_CUDA_DRIVER");
    if (void* library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW)) {
      allocate = reinterpret_cast<int (*)(uint64_t*, size_t)>(dlsym(library, "cuMemAlloc_v2"));
      release = reinterpret_cast<int (*)(uint64_t)>(dlsym(library, "cuMemFree_v2"));
    }
  }
  int (*allocate)(uint64_t* address, size_t bytes) = nullptr;
  int (*release)(uint64_t address) = nullptr;
};

// The library calls it from any thread. nullptr means that there is no more: the build takes another tactic or fails,
// an engine is not loaded, a context not made, each with one report.
class Ceiling final : public IGpuAsyncAllocator {
 public:
  explicit Ceiling(uint64_t most) : most_(most) {}

  void* allocateAsync(const uint64_t size, const uint64_t, const AllocatorFlags, cudaStream_t) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t address = 0;
    if (size > most_ - used_ || !driver_.allocate || driver_.allocate(&address, size) != 0) {
      ++refusals_;
      std::printf("{\"event\": \"refused\", \"bytes\": %llu, \"used\": %llu, \"most\": %llu}\n",
                  static_cast<unsigned long long>(size), static_cast<unsigned long long>(used_),
                  static_cast<unsigned long long>(most_));
      return nullptr;
    }
    void* memory = reinterpret_cast<void*>(address);
    sizes_[memory] = size;
    used_ += size;
    peak_ = peak_ > used_ ? peak_ : used_;
    return memory;
  }

  bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return memory == nullptr;
    used_ -= found->second;
    sizes_.erase(found);
    return driver_.release(reinterpret_cast<uint64_t>(memory)) == 0;
  }

  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  int refusals() const { return refusals_; }

 private:
  Driver driver_;
  std::mutex mutex_;
  std::map<void*, uint64_t> sizes_;
  uint64_t most_, used_ = 0, peak_ = 0;
  int refusals_ = 0;
};

bool run(const char* model, uint64_t limit, int level, Ceiling& memory, ILogger& logger) {
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  builder->setGpuAllocator(&memory);
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  if (!parser->parseFromFile(model, static_cast<int>(ILogger::Severity::kWARNING))) return false;
  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  config->setBuilderOptimizationLevel(level);
  config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, limit / 4);
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  const ITensor* input = network->getInput(0);
  Dims dims = input->getDimensions();
  dims.d[0] = 1;
  for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    profile->setDimensions(input->getName(), select, dims);
  config->addOptimizationProfile(profile);
  std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
  if (!plan) return false;
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  runtime->setGpuAllocator(&memory);
  std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  if (!engine) return false;
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  return context != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx MEBIBYTES [LEVEL]\n", argv[0]);
    return 2;
  }
  Logger logger;
  const uint64_t limit = std::strtoull(argv[2], nullptr, 10) << 20;
  Ceiling memory(limit);
  const bool fits = run(argv[1], limit, argc > 3 ? std::atoi(argv[3]) : 3, memory, logger);
  std::printf("%s: at most %llu KiB were in use, %d times there was no more, %llu bytes are left\n",
              fits ? "the engine is ready" : "the engine does not fit",
              static_cast<unsigned long long>(memory.peak() >> 10), memory.refusals(),
              static_cast<unsigned long long>(memory.used()));
  if (fits && memory.peak() == 0) std::printf("it is for a CPU, whose memory cgroups limit\n");
  return fits || memory.refusals() > 0 ? 0 : 1;
}
