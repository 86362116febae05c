// SPDX-License-Identifier: Apache-2.0
// An engine for a GPU keeps no copy of its weights on the host, and gives its plan back all the same.
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "device/cuda/enqueue_fixture.h"
#include "plan/writer.h"
#include "sanitized.h"

namespace lathe::cuda {
namespace {

class HostCopyTest : public EnqueueTest {};

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

// Pages that can be made unreadable.
class Pages {
 public:
  explicit Pages(std::span<const std::byte> content) : size_(content.size()) {
    data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(data_, content.data(), size_);
  }
  ~Pages() { munmap(data_, size_); }
  const void* data() const { return data_; }
  void hide() { EXPECT_EQ(mprotect(data_, size_, PROT_NONE), 0); }

 private:
  size_t size_;
  void* data_;
};

// S103.
TEST_F(HostCopyTest, ThePlanMayGoOnceItIsLoaded) {
  const std::unique_ptr<nv::IHostMemory> plan(engine_->serialize());
  Pages pages({static_cast<const std::byte*>(plan->data()), plan->size()});
  const std::unique_ptr<nv::ICudaEngine> engine(runtime_->deserializeCudaEngine(pages.data(), plan->size()));
  ASSERT_TRUE(engine) << log_.text;
  pages.hide();
  EXPECT_EQ(engine->getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE),
            engine_->getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE));
  const std::unique_ptr<nv::IHostMemory> again(engine->serialize());
  ASSERT_TRUE(again) << log_.text;
  ASSERT_EQ(again->size(), plan->size());
  EXPECT_EQ(std::memcmp(again->data(), plan->data(), plan->size()), 0);
  context_.reset(engine->createExecutionContext());
  ASSERT_TRUE(context_) << log_.text;
  ASSERT_TRUE(context_->setTensorAddress("x", x_.data()));
  ASSERT_TRUE(context_->setTensorAddress("y", y_.data()));
  run(4, 2);
  context_.reset();
}

// The emulated device's memory is the host's, too: the weights are there once for it, and no second time.
TEST_F(HostCopyTest, LargeWeightsAreThereOnce) {
  constexpr size_t kSize = 64 << 20;
  plan::Plan plan;
  plan.target = device_->target();
  plan.profiles.emplace_back();
  std::vector<std::byte> weights(kSize, std::byte{7});
  plan.constants.push_back({"w", 0, kSize, digest_of(weights)});
  plan.weights = weights;
  Result<std::vector<std::byte>> bytes = plan::write_plan(plan);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const size_t before = resident_bytes();
  const std::unique_ptr<nv::ICudaEngine> engine(runtime_->deserializeCudaEngine(bytes->data(), bytes->size()));
  ASSERT_TRUE(engine) << log_.text;
  EXPECT_GE(resident_bytes(), before + kSize / 2);
  if (!kIsSanitized) {
    EXPECT_LT(resident_bytes(), before + kSize + kSize / 4);
  }
  const std::unique_ptr<nv::IHostMemory> again(engine->serialize());
  ASSERT_TRUE(again) << log_.text;
  ASSERT_EQ(again->size(), bytes->size());
  EXPECT_EQ(std::memcmp(again->data(), bytes->data(), bytes->size()), 0);
}

struct InfoLines final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity == Severity::kINFO) lines.emplace_back(message);
  }
  bool has(const std::string& pattern) const {
    return std::ranges::any_of(lines,
                               [&](const std::string& line) { return std::regex_match(line, std::regex(pattern)); });
  }
  std::vector<std::string> lines;
};

// The log counts a GPU's memory apart: of the driver, and of this library's allocators.
TEST_F(HostCopyTest, TheLogTellsWhatTheDeviceHolds) {
  constexpr size_t kSize = 64 << 20;
  plan::Plan plan;
  plan.target = device_->target();
  plan.profiles.emplace_back();
  std::vector<std::byte> weights(kSize, std::byte{7});
  plan.constants.push_back({"w", 0, kSize, digest_of(weights)});
  plan.weights = weights;
  const std::vector<std::byte> bytes = *plan::write_plan(plan);
  InfoLines log;
  const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(log));
  const std::unique_ptr<nv::ICudaEngine> engine(runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
  ASSERT_TRUE(engine);
  EXPECT_TRUE(log.has("Loaded engine size: 64 MiB"));
  EXPECT_TRUE(log.has(R"(\[MemUsageChange\] Init CUDA: CPU [+-]\d+, GPU \+0, now: CPU [1-9]\d*, GPU \d+ \(MiB\))"));
  EXPECT_TRUE(log.has(R"(\[MemUsageChange\] TensorRT-managed allocation in engine deserialization: )"
                      R"(CPU \+0, GPU \+64, now: CPU \d+, GPU \d+ \(MiB\))"));
}

// S128: one line, and none where there is a limit.
TEST_F(HostCopyTest, BuildsAdviseToLimitTheWorkspace) {
  InfoLines log;
  const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log));
  const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
  nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(2, 3));
  network->markOutput(*network->addActivation(*x, nv::ActivationType::kRELU)->getOutput(0));
  const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
  setTarget(*config, "cuda");
  setBuildBudget(*config, 0);
  const auto hints = [&] {
    log.lines.clear();
    const std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_TRUE(plan);
    return std::ranges::count_if(log.lines,
                                 [](const std::string& line) { return line.find("kWORKSPACE has no limit") < 99; });
  };
  EXPECT_EQ(hints(), 1);
  EXPECT_EQ(config->getMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE), size_t{16} << 30);  // the stand-in's
  config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, 1 << 20);
  EXPECT_EQ(hints(), 0);
}

}  // namespace
}  // namespace lathe::cuda
