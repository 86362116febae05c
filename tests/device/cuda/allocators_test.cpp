// SPDX-License-Identifier: Apache-2.0
// Allocators of the application's: every byte of the device's memory comes from them, and goes back.
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

// Takes blocks from the driver, counts them, and misbehaves on demand.
class CountingAllocator final : public nv::IGpuAsyncAllocator {
 public:
  enum class Gives { blocks, misaligned, host_memory };

  ~CountingAllocator() override { EXPECT_TRUE(blocks_.empty()) << blocks_.size() << " blocks are left"; }
  void* allocateAsync(uint64_t size, uint64_t alignment, nv::AllocatorFlags, cudaStream_t stream) noexcept override {
    EXPECT_EQ(alignment, 256u);
    EXPECT_NE(stream, nullptr);
    EXPECT_TRUE(fake_cuda_is_current(0));
    if (refuses_from_ >= 0 && asked_++ >= refuses_from_) return nullptr;
    CUdeviceptr block = 0;
    EXPECT_EQ((*driver())->cuMemAlloc(&block, size + 256), CUDA_SUCCESS);
    const CUdeviceptr given = gives == Gives::blocks       ? block
                              : gives == Gives::misaligned ? block + 16
                                                           : reinterpret_cast<CUdeviceptr>(host_);
    blocks_[given] = block;
    live_ += size;
    most_ = std::max(most_, live_);
    sizes_[given] = size;
    return reinterpret_cast<void*>(given);
  }
  bool deallocateAsync(void* memory, cudaStream_t stream) noexcept override {
    EXPECT_NE(stream, nullptr);
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    EXPECT_EQ(blocks_.count(address), 1u);
    EXPECT_EQ((*driver())->cuMemFree(blocks_[address]), CUDA_SUCCESS);
    live_ -= sizes_[address];
    return blocks_.erase(address) == 1;
  }
  size_t live() const { return live_; }
  size_t most() const { return most_; }
  size_t blocks() const { return blocks_.size(); }
  bool has_refused() const { return refuses_from_ >= 0 && asked_ > refuses_from_; }
  void refuse_from(int n) {
    refuses_from_ = n;
    asked_ = 0;
  }

  Gives gives = Gives::blocks;

 private:
  std::map<CUdeviceptr, CUdeviceptr> blocks_;  // by the address given
  std::map<CUdeviceptr, size_t> sizes_;
  size_t live_ = 0, most_ = 0;
  int refuses_from_ = -1, asked_ = 0;
  alignas(256) std::byte host_[4096];
};

class AllocatorsTest : public EnqueueTest {
 protected:
  void SetUp() override {
    EnqueueTest::SetUp();
    plan_.reset(engine_->serialize());
  }
  void TearDown() override {
    plan_.reset();
    EnqueueTest::TearDown();
  }

  // An engine of its own, and a context with memory for the addresses of the fixture; null where either is refused.
  void load(nv::IGpuAllocator& allocator) {
    context_.reset();
    engine_.reset();
    runtime_->setGpuAllocator(&allocator);
    engine_.reset(runtime_->deserializeCudaEngine(plan_->data(), plan_->size()));
    if (engine_) context_.reset(engine_->createExecutionContext());
    if (!context_) return;
    EXPECT_TRUE(context_->setTensorAddress("x", x_.data()));
    EXPECT_TRUE(context_->setTensorAddress("y", y_.data()));
  }
  void unload() {
    context_.reset();
    engine_.reset();
  }
  static size_t calls_of(const std::string& name, size_t since) {
    size_t count = 0;
    for (size_t i = since; i < fake_cuda_calls(); ++i) count += name == fake_cuda_call(i);
    return count;
  }

  std::unique_ptr<nv::IHostMemory> plan_;
};

// S111, S122, S137.
TEST_F(AllocatorsTest, OfARuntimeGiveEveryBlock) {
  CountingAllocator allocator;
  const size_t before = fake_cuda_calls();
  load(allocator);
  ASSERT_TRUE(context_) << log_.text;
  for (int64_t rows : {4, 16, 1}) run(rows, static_cast<float>(rows));
  EXPECT_EQ(calls_of("cuMemAllocAsync", before), 0u);  // the library's own way
  EXPECT_EQ(calls_of("cuMemAlloc_v2", before), calls_of("cuMemFree_v2", before) + allocator.blocks());
  const size_t weights = static_cast<size_t>(engine_->getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE));
  EXPECT_GE(allocator.live(), weights + static_cast<size_t>(engine_->getDeviceMemorySizeV2()));
  const size_t with_one = allocator.live();
  std::unique_ptr<nv::IExecutionContext> second(engine_->createExecutionContext());
  const size_t of_a_context = allocator.live() - with_one;
  EXPECT_GE(of_a_context, static_cast<size_t>(engine_->getDeviceMemorySizeV2()));
  context_.reset();
  EXPECT_EQ(allocator.live(), (weights + 15) / 16 * 16 + of_a_context);
  second.reset();
  EXPECT_EQ(allocator.live(), (weights + 15) / 16 * 16);
  unload();
  EXPECT_EQ(allocator.live(), 0u);
}

// S104, S107.
TEST_F(AllocatorsTest, WeightsAreAllocatedWhileLoading) {
  CountingAllocator allocator;
  load(allocator);
  ASSERT_TRUE(context_) << log_.text;
  context_.reset(engine_->createExecutionContext(nv::ExecutionContextAllocationStrategy::kUSER_MANAGED));
  const size_t weights = allocator.live();
  EXPECT_GT(weights, 0u);
  // Memory of the application's: the library takes none besides.
  const auto memory = device_->allocate(static_cast<size_t>(std::max<int64_t>(1, engine_->getDeviceMemorySizeV2())));
  ASSERT_OK(memory);
  context_->setDeviceMemoryV2(memory->data(), engine_->getDeviceMemorySizeV2());
  context_->setTensorAddress("x", x_.data());
  context_->setTensorAddress("y", y_.data());
  run(16, 1);
  EXPECT_EQ(allocator.live(), weights);
  unload();
}

// S135.
TEST_F(AllocatorsTest, MayRefuseAtAnyTime) {
  CountingAllocator allocator;
  int refused = 0;
  for (; refused < 100; ++refused) {
    unload();
    ASSERT_EQ(allocator.live(), 0u);
    allocator.refuse_from(refused);
    log_.text.clear();
    load(allocator);
    if (context_) break;
    EXPECT_NE(log_.text.find("the application's allocator has no"), std::string::npos) << log_.text;
  }
  EXPECT_GE(refused, 2);  // weights and a context's memory
  allocator.refuse_from(-1);
  run(4, 1);
  unload();
}

TEST_F(AllocatorsTest, WrongMemoryIsRefused) {
  for (const auto& [gives, says] : {std::pair{CountingAllocator::Gives::misaligned, "not aligned"},
                                    std::pair{CountingAllocator::Gives::host_memory, "cannot use"}}) {
    CountingAllocator allocator;
    allocator.gives = gives;
    load(allocator);
    EXPECT_FALSE(engine_);
    EXPECT_NE(log_.text.find(says), std::string::npos) << log_.text;
  }
}

// S93, S122: layers are measured one after the other, and what they take at one time is within the limit.
TEST_F(AllocatorsTest, OfABuilderGiveWhatMeasuringTakes) {
  const auto measure = [&](int layers, size_t most) {
    CountingAllocator allocator;
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    builder->setGpuAllocator(&allocator);
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    for (int i = 0; i < layers; ++i) {
      const std::string name = "x" + std::to_string(i);
      nv::ITensor* x = network->addInput(name.c_str(), nv::DataType::kFLOAT, nv::Dims2(4, kIn - i));
      network->markOutput(*network->addSoftMax(*x)->getOutput(0));
    }
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    config->setMaxNbTactics(1);
    config->setMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_DRAM, most);
    setTarget(*config, "cuda");
    setBuildBudget(*config, 30);
    const size_t before = fake_cuda_calls();
    const std::unique_ptr<nv::ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    EXPECT_TRUE(engine) << log_.text;
    EXPECT_EQ(calls_of("cuMemAllocAsync", before), 0u);
    return allocator.most();
  };
  const size_t most = measure(1, SIZE_MAX);
  EXPECT_GT(most, 0u);
  EXPECT_EQ(measure(4, most), most);
  EXPECT_LE(measure(4, most / 2), most / 2);
}

// S98: a build without memory to measure in goes by the cost model, or fails and says so; nothing is left behind.
// S159.
TEST_F(AllocatorsTest, OfABuilderMayRefuseAtAnyTime) {
  CountingAllocator allocator;
  int refused = 0, built = 0;
  for (; refused < 60; ++refused) {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    builder->setGpuAllocator(&allocator);
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(4, kIn));
    network->markOutput(*network->addSoftMax(*x)->getOutput(0));
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    config->setMaxNbTactics(2);
    setTarget(*config, "cuda");
    setBuildBudget(*config, 30);
    allocator.refuse_from(refused);
    log_.text.clear();
    const std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_EQ(allocator.live(), 0u) << refused;
    built += plan != nullptr;
    const bool is_told = log_.text.find("the application's allocator has no") != std::string::npos;
    EXPECT_TRUE(plan || is_told) << log_.text;
    if (!allocator.has_refused()) break;
  }
  EXPECT_GE(refused, 3);  // operands, packed weights or workspace, the check
  EXPECT_LT(refused, 60);
  EXPECT_GE(built, 1);
}

// Knows how many threads are in it at one time, and waits a while for a second one.
class MeetingAllocator final : public nv::IGpuAsyncAllocator {
 public:
  void* allocateAsync(uint64_t size, uint64_t, nv::AllocatorFlags, cudaStream_t) noexcept override {
    const Visit visit(*this);
    CUdeviceptr block = 0;
    EXPECT_EQ((*driver())->cuMemAlloc(&block, size), CUDA_SUCCESS);
    return reinterpret_cast<void*>(block);
  }
  bool deallocateAsync(void* memory, cudaStream_t) noexcept override {
    const Visit visit(*this);
    return (*driver())->cuMemFree(reinterpret_cast<CUdeviceptr>(memory)) == CUDA_SUCCESS;
  }
  void expect_company() { alone_ = false; }
  int most() const { return most_; }
  int visits() const { return visits_; }

 private:
  struct Visit {
    explicit Visit(MeetingAllocator& allocator) : allocator(allocator) {
      std::unique_lock lock(allocator.mutex_);
      ++allocator.visits_;
      allocator.most_ = std::max(allocator.most_, ++allocator.inside_);
      allocator.came_.notify_all();
      if (!allocator.alone_)
        allocator.came_.wait_for(lock, std::chrono::seconds(5), [&] { return allocator.most_ >= 2; });
    }
    ~Visit() {
      const std::lock_guard lock(allocator.mutex_);
      --allocator.inside_;
    }
    MeetingAllocator& allocator;
  };
  std::mutex mutex_;
  std::condition_variable came_;
  int inside_ = 0, most_ = 0, visits_ = 0;
  bool alone_ = true;
};

// S159: contexts that threads make at one time ask it at one time, and nothing is asked once all is gone.
TEST_F(AllocatorsTest, AreAskedBySeveralThreads) {
  MeetingAllocator allocator;
  load(allocator);
  ASSERT_TRUE(context_) << log_.text;
  EXPECT_EQ(allocator.most(), 1);
  allocator.expect_company();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const std::unique_ptr<nv::IExecutionContext> context(engine_->createExecutionContext());
      EXPECT_TRUE(context);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(allocator.most(), 2);
  unload();
  runtime_.reset();
  const int visits = allocator.visits();
  releaseIdleDevices();
  EXPECT_EQ(allocator.visits(), visits);
}

// What is not zero, and where: a size that only running tells.
TEST_F(AllocatorsTest, OfTemporaryStorageGiveWhatOnlyRunningSizes) {
  const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
  const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
  nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(1, kIn));
  nv::ITensor* found = network->addNonZero(*x, nv::DataType::kINT64)->getOutput(0);
  nv::ITensor* sum = network->addElementWise(*found, *found, nv::ElementWiseOperation::kSUM)->getOutput(0);
  nv::ITensor* y = network->addReduce(*sum, nv::ReduceOperation::kSUM, 3, /*keepDimensions=*/true)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
  setTarget(*config, "cuda");
  setBuildBudget(*config, 0);
  unload();
  plan_.reset(builder->buildSerializedNetwork(*network, *config));
  ASSERT_TRUE(plan_) << log_.text;
  CountingAllocator main, temporary;
  load(main);
  ASSERT_TRUE(context_) << log_.text;
  std::fill_n(reinterpret_cast<float*>(x_.data()), kIn, 1.0f);
  const auto expect_run = [&] {
    ASSERT_TRUE(enqueue()) << log_.text;
    EXPECT_EQ(*reinterpret_cast<const int64_t*>(y_.data()), 2 * kIn * (kIn - 1) / 2);
  };
  expect_run();
  EXPECT_TRUE(context_->setTemporaryStorageAllocator(&temporary)) << log_.text;
  const size_t held = main.live();
  expect_run();
  EXPECT_GT(temporary.live(), 0u);
  EXPECT_EQ(main.live(), held);
  temporary.refuse_from(0);
  EXPECT_TRUE(context_->setTemporaryStorageAllocator(&temporary));
  EXPECT_EQ(temporary.live(), 0u);
  EXPECT_FALSE(enqueue());
  EXPECT_NE(log_.text.find("the application's allocator has no"), std::string::npos) << log_.text;
  EXPECT_TRUE(context_->setTemporaryStorageAllocator(nullptr));
  expect_run();
  EXPECT_EQ(temporary.live(), 0u);
  unload();
}

}  // namespace
}  // namespace lathe::cuda
